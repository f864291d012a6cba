#include <gtest/gtest.h>
#include <string>

#include "tests/support/script.hpp"

/// Jobs as a whole: window, messages, cancellation, counts. See script.hpp for the words.
namespace heddle::simulation {
namespace {

class JobTest : public testing::Test {};

}  // namespace

// ---- window ----------------------------------------------------------------------------------

TEST_F(JobTest, window_counts_what_is_generated_and_unfinished) {
  Script s({.nodes = 1, .places = 1, .window = 2});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("A", {s.write(a)});
  EXPECT_FALSE(s.job(0).window_is_full());
  s.append("B", {s.write(b)});
  EXPECT_TRUE(s.job(0).window_is_full());
  s.carry_out(0, "run A");
  EXPECT_FALSE(s.job(0).window_is_full());
}

TEST_F(JobTest, full_window_reopens_when_an_eighth_of_it_is_over) {
  Script s({.nodes = 1, .places = 1, .window = 17});
  std::vector<protocol::TileId> tiles;
  for (int i = 0; i < 17; ++i) tiles.push_back(s.tile(fmt::format("t{}", i), 0, 0));
  for (int i = 0; i < 17; ++i)
    s.append(fmt::format("T{}", i), {s.write(tiles[static_cast<std::size_t>(i)])});
  EXPECT_TRUE(s.job(0).window_is_full());
  s.carry_out(0, "run T0");
  EXPECT_FALSE(s.job(0).window_is_full());
  EXPECT_FALSE(s.job(0).window_reopens());
  s.carry_out(0, "run T1");
  EXPECT_TRUE(s.job(0).window_reopens());
}

TEST_F(JobTest, window_of_one_reopens_when_it_is_empty) {
  Script s({.nodes = 1, .places = 1, .window = 1});
  s.append("T", {s.write(s.tile("t", 0, 0))});
  EXPECT_FALSE(s.job(0).window_reopens());
  s.carry_out(0, "run T");
  EXPECT_TRUE(s.job(0).window_reopens());
}

TEST_F(JobTest,
       window_counts_minor_outputs_to_receive_but_no_messages_and_nothing_that_is_elsewhere) {
  Script s({.nodes = 3, .places = 1, .window = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  s.append("T", {s.write(a), s.read_write(b)});
  EXPECT_EQ(s.job(0).unfinished, 1);
  EXPECT_EQ(s.job(1).unfinished, 1);     // the new b to receive
  EXPECT_EQ(s.job(1).pending_sends, 1);  // the old b
  EXPECT_EQ(s.job(2).unfinished, 0);
  EXPECT_TRUE(s.job(1).window_is_full());
  s.carry_out_all();
  EXPECT_EQ(s.job(1).unfinished, 0);
}

TEST_F(JobTest, statement_may_exceed_the_window_by_its_own_items) {
  Script s({.nodes = 2, .places = 1, .window = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  s.append("T", {s.write(a), s.read_write(b), s.read_write(c)});
  EXPECT_EQ(s.job(1).unfinished, 2);
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
}

// ---- messages --------------------------------------------------------------------------------

TEST_F(JobTest, version_travels_once_to_each_node_that_reads_it) {
  Script s({.nodes = 3, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto c = s.tile("c", 2, 0);
  const auto b = s.tile("b", 1, 0);
  s.append("T", {s.write(a), s.read(b)});
  s.append("U", {s.write(d), s.read(b)});
  s.append("V", {s.write(c), s.read(b)});
  s.append("W", {s.read_write(a), s.read(b)});
  EXPECT_EQ(s.instances(1),
            (Lines{"internode alien input b for 0", "internode alien input b for 2"}));
  s.carry_out_all();
  s.append("X", {s.read_write(a), s.read(b)});  // it is there already
  EXPECT_EQ(s.instances(1), Lines{});
  s.append("write", {s.write(b)});
  s.append("Y", {s.read_write(a), s.read(b)});  // another version
  EXPECT_EQ(s.instances(1), (Lines{"owner b", "internode alien input b for 0"}));
  s.end();
  s.carry_out_all();
  EXPECT_EQ(s.job(1).counters.sends, 3);
  EXPECT_EQ(s.job(0).counters.receives, 2);
  EXPECT_EQ(s.job(2).counters.receives, 1);
  EXPECT_TRUE(s.drained());
}

TEST_F(JobTest, version_that_is_read_at_two_places_of_a_node_travels_to_the_first_of_them) {
  Script s({.nodes = 2, .places = 3});
  const auto d = s.tile("d", 0, 1);
  const auto e = s.tile("e", 0, 2);
  const auto b = s.tile("b", 1, 2);
  s.append("D", {s.write(d), s.read(b)});
  s.append("E", {s.write(e), s.read(b)});
  EXPECT_EQ(s.pending(0), Lines{"grant b.0 at 1 from 1"});
  s.append("B", {s.write(b)});
  s.append("E again", {s.read_write(e), s.read(b)});  // another version, another first reader
  s.append("D again", {s.read_write(d), s.read(b)});
  EXPECT_EQ(s.pending(0), (Lines{"grant b.0 at 1 from 1", "grant b.1 at 2 from 1"}));
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
  EXPECT_EQ(s.job(0).counters.receives, 2);
  EXPECT_EQ(s.job(0).counters.copies, 2);  // 1>2 of the old version, 2>1 of the new one
  EXPECT_EQ(s.job(1).counters.sends, 2);
  EXPECT_EQ(s.job(1).counters.copies, 0);
}

TEST_F(JobTest, version_travels_once_however_often_its_reader_is_announced) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  s.append_at(0, "T", {s.write(a), s.read(b)});
  s.announce(1, b, 0);
  s.announce(1, b, 0);
  EXPECT_EQ(s.instances(1), Lines{"internode alien input b for 0"});
  s.carry_out_all();
  s.announce(1, b, 0);
  EXPECT_EQ(s.instances(1), Lines{});
  EXPECT_EQ(s.pending(0), Lines{});
}

TEST_F(JobTest, grant_may_arrive_before_the_sender_has_come_to_the_reader) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  s.append_at(0, "write", {s.write(b)});
  s.append_at(0, "T", {s.write(a), s.read(b)});
  s.carry_out(0, "grant b.1 from 1");
  EXPECT_EQ(s.pending(1), Lines{});
  s.append_at(1, "write", {s.write(b)});
  s.append_at(1, "T", {s.write(a), s.read(b)});
  EXPECT_EQ(s.pending(1), Lines{"run write"});
  s.carry_out(1, "run write");
  EXPECT_EQ(s.pending(1), Lines{"send b.1 to 0"});
}

TEST_F(JobTest, grant_may_arrive_before_the_task_that_writes_a_minor_output) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  s.append_at(1, "T", {s.write(a), s.write(b)});
  s.carry_out(1, "grant b.1 from 0");
  s.append_at(0, "T", {s.write(a), s.write(b)});
  s.carry_out(0, "run T");
  EXPECT_EQ(s.pending(0), Lines{"send b.1 to 1"});
}

TEST_F(JobTest, grants_wait_for_free_blocks_in_program_order) {
  Script s({.nodes = 2, .places = 1, .blocks = 1, .minimum = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  const auto d = s.tile("d", 1, 0);
  for (const auto tile : {b, c, d}) {
    s.append("T", {s.read_write(a), s.read(tile)});
    s.release(tile);
  }
  EXPECT_EQ(s.pending(0), Lines{"grant b.0 from 1"});
  s.carry_out(0, "grant b.0 from 1");
  s.carry_out(1, "send b.0 to 0");
  s.carry_out(0, "run T");
  EXPECT_EQ(s.pending(0), Lines{"grant c.0 from 1"});
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
}

TEST_F(JobTest, grants_wait_for_free_blocks_only_at_the_place_of_the_first_reader) {
  Script s({.nodes = 2, .places = 2, .blocks = 1, .minimum = 1});
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 1);
  const auto e = s.tile("e", 1, 1);
  s.append("T", {s.write(d), s.read(b)});
  s.append("U", {s.read_write(d), s.read(c)});
  s.append("V", {s.write(a), s.read(e)});
  s.release(b);
  EXPECT_EQ(s.pending(0), Lines{"grant b.0 at 1 from 1"});
  s.carry_out(0, "grant b.0 at 1 from 1");
  s.carry_out(1, "send b.0 to 0");
  s.carry_out(0, "run T");
  EXPECT_EQ(s.pending(0), Lines{"grant c.0 at 1 from 1"});  // V's is not the oldest one's
  EXPECT_EQ(s.job(0).pools[host_place].free(), 1);
  s.carry_out(0, "grant c.0 at 1 from 1");
  s.carry_out(1, "send c.0 at 1 to 0");
  s.carry_out(0, "run U");
  EXPECT_EQ(s.pending(0), Lines{"grant e.0 from 1"});
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
}

TEST_F(JobTest, blocks_beyond_the_minimum_are_granted_ahead_of_need_and_no_others) {
  Script s({.nodes = 2, .places = 1, .blocks = 3, .minimum = 2});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  const auto d = s.tile("d", 1, 0);
  s.append("first", {s.read_write(a)});  // the oldest, needs none
  s.append("B", {s.read_write(a), s.read(b)});
  s.append("C", {s.read_write(a), s.read(c)});
  s.append("D", {s.read_write(a), s.read(d)});
  EXPECT_EQ(s.pending(0), (Lines{"grant b.0 from 1", "run first"}));
  s.carry_out(0, "run first");  // b is now the oldest one's, so that c is granted ahead
  EXPECT_EQ(s.pending(0), (Lines{"grant b.0 from 1", "grant c.0 from 1"}));
}

TEST_F(JobTest, block_granted_ahead_becomes_an_ordinary_one_when_older_items_are_finished) {
  Script s({.nodes = 2, .places = 1, .blocks = 3, .minimum = 2});
  const auto x = s.tile("x", 0, 0);
  const auto y = s.tile("y", 0, 0);
  const auto z = s.tile("z", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  s.append("old", {s.write(x)});
  s.append("ahead", {s.write(y), s.read(b)});
  s.carry_out(0, "grant b.0 from 1");
  s.carry_out(1, "send b.0 to 0");
  s.carry_out(0, "run ahead");
  EXPECT_EQ(s.job(0).pools[host_place].extra(), 1);
  s.carry_out(0, "run old");
  EXPECT_EQ(s.job(0).pools[host_place].extra(), 1);  // nothing is older or younger
  s.append("next", {s.write(x)});
  EXPECT_EQ(s.job(0).pools[host_place].extra(), 0);
  s.append("ahead again", {s.write(z), s.read(c)});
  EXPECT_EQ(s.pending(0), (Lines{"grant c.0 from 1", "run next"}));
  EXPECT_EQ(s.job(0).pools[host_place].free(), 1);
  s.release(b);
  EXPECT_EQ(s.job(0).pools[host_place].free(), 2);
}

TEST_F(JobTest, record_of_a_message_is_dropped_with_its_version) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  s.append("T", {s.write(a), s.read(b)});
  s.carry_out_all();
  EXPECT_EQ(s.protocol(1).records_in_use(), 1U);  // should another task of node 0 read it
  s.append("B", {s.write(b)});
  s.carry_out_all();
  EXPECT_EQ(s.protocol(1).records_in_use(), 0U);
}

// ---- counts, end, cancellation ---------------------------------------------------------------

TEST_F(JobTest, counts_come_out_at_the_end) {
  Script s({.nodes = 2, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto b = s.tile("b", 1, 1);
  s.append("A", {s.write(a)});
  s.append("D", {s.write(d), s.read(a), s.read(b)});
  s.append("B", {s.read_write(b), s.write(a)});
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
  const protocol::JobCounters& zero = s.job(0).counters;
  EXPECT_EQ(zero.tasks, 2);
  EXPECT_EQ(zero.finished, 2);
  EXPECT_EQ(zero.skipped, 0);
  EXPECT_EQ(zero.receives, 2);  // b for D, a from B
  EXPECT_EQ(zero.sends, 0);
  EXPECT_EQ(zero.copies, 1);  // a to the device; b lands there
  const protocol::JobCounters& one = s.job(1).counters;
  EXPECT_EQ(one.tasks, 1);
  EXPECT_EQ(one.finished, 1);
  EXPECT_EQ(one.skipped, 1);
  EXPECT_EQ(one.receives, 0);
  EXPECT_EQ(one.sends, 2);
  EXPECT_EQ(one.copies, 0);  // b and the minor output a leave from the device
  for (const std::int32_t node : {0, 1}) {
    EXPECT_EQ(s.protocol(node).records_in_use(), 0U);
    EXPECT_EQ(s.blockage(node), "");
  }
}

TEST_F(JobTest, is_drained_when_its_program_has_ended_and_all_is_finished) {
  Script s({.nodes = 1, .places = 1});
  const auto a = s.tile("a", 0, 0);
  s.append("A", {s.write(a)});
  s.carry_out_all();
  EXPECT_FALSE(s.drained());
  s.append("B", {s.write(a)});
  s.end();
  EXPECT_FALSE(s.drained());
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
  s.protocol(0).forget(s.job(0));
  EXPECT_EQ(s.blockage(0), "");
}

TEST_F(JobTest, cancelled_on_one_node_reaches_the_others_with_the_data_and_drains_everywhere) {
  Script s({.nodes = 3, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 2, 1);
  s.append("A", {s.write(a)});
  s.append("B", {s.write(b), s.read(a), s.write(c)});
  s.append("C", {s.read_write(c), s.read(b)});
  s.cancel(0);
  s.carry_out(0, "run A");
  s.carry_out(1, "grant a.1 from 0");
  EXPECT_EQ(s.pending(0), Lines{"send empty a.1 to 1"});
  EXPECT_FALSE(s.job(1).cancelled);
  s.carry_out(0, "send empty a.1 to 1");
  EXPECT_TRUE(s.job(1).cancelled);
  EXPECT_FALSE(s.job(2).cancelled);
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.job(2).cancelled);
  EXPECT_TRUE(s.drained());
  for (const std::int32_t node : {0, 1, 2}) {
    EXPECT_EQ(s.job(node).counters.finished, s.job(node).counters.tasks);
  }
}

TEST_F(JobTest, cancelled_on_one_node_reaches_others_with_minor_outputs) {
  for (const std::int32_t place : {0, 1}) {
    Script s({.nodes = 2, .places = 2});
    const auto a = s.tile("a", 0, 0);
    const auto b = s.tile("b", 1, place);
    s.append("T", {s.write(a), s.write(b)});
    s.cancel(0);
    s.carry_out(0, "run T");
    s.carry_out(1, place == 0 ? "grant b.1 from 0" : "grant b.1 at 1 from 0");
    s.carry_out(0, "send empty b.1 to 1");
    EXPECT_TRUE(s.job(1).cancelled);
    s.end();
    s.carry_out_all();
    EXPECT_TRUE(s.drained());
  }
}

TEST_F(JobTest, jobs_that_read_the_same_tiles_at_once_have_copies_and_messages_of_their_own) {
  Script s({.nodes = 2, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto e = s.tile("e", 0, 1);
  const auto r = s.tile("r", 1, 0);
  const auto q = s.tile("q", 1, 0);
  s.append("D", {s.write(d), s.read(a)});
  s.append("R", {s.write(r), s.read(a)});
  s.begin_job();
  s.append("E", {s.write(e), s.read(a)});
  s.append("Q", {s.write(q), s.read(a)});
  EXPECT_EQ(s.pending(0), (Lines{"copy a.0 0>1", "copy a.0 0>1"}));
  EXPECT_EQ(s.pending(1), (Lines{"grant a.0 from 0", "grant a.0 from 0"}));
  s.carry_out(0, "copy a.0 0>1");
  s.carry_out(0, "copy a.0 0>1");
  s.carry_out(0, "run D");
  s.carry_out(0, "run E");
  s.release(a);  // of the second job
  EXPECT_EQ(s.freed(0), Lines{"job 1"});
}

TEST_F(JobTest, later_job_counts_versions_from_its_own_beginning) {
  Script s({.nodes = 2, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto r = s.tile("r", 1, 0);
  s.append("A", {s.write(a)});
  s.append("B", {s.read_write(a)});
  s.end();
  s.begin_job();
  s.append("D", {s.write(d), s.read(a)});
  s.append("R", {s.write(r), s.read(a)});
  s.append("C", {s.read_write(a)});
  s.append("E", {s.read_write(d), s.read(a)});
  s.carry_out(0, "run A");
  s.carry_out(0, "run B");
  EXPECT_EQ(s.pending(0), Lines{"copy a.0 0>1"});
  EXPECT_EQ(s.pending(1), Lines{"grant a.0 from 0"});
  s.carry_out(1, "grant a.0 from 0");
  EXPECT_EQ(s.pending(0), (Lines{"copy a.0 0>1", "send a.0 to 1"}));
  for (const char* line : {"copy a.0 0>1", "send a.0 to 1", "sent a.0 to 1", "run C"}) {
    s.carry_out(0, line);
  }
  EXPECT_EQ(s.pending(0), (Lines{"copy a.1 0>1", "run D"}));
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
}

// ---- contracts and memory --------------------------------------------------------------------

TEST_F(JobTest, unfinished_task_costs_at_most_a_kibibyte) {
  Script s({.nodes = 1, .places = 1, .window = 100000});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  const auto c = s.tile("c", 0, 0);
  constexpr int count = 1024;
  for (int i = 0; i < count; ++i) {
    s.append_at(0, "T", {s.read_write(a), s.read(b), s.read(c)});
  }
  EXPECT_EQ(s.job(0).unfinished, count);
  EXPECT_LE(s.protocol(0).bytes() / count, 1024U + 64U);  // 64: chunks begun for single records
  s.end();
  s.carry_out_all();
}

TEST_F(JobTest, protocol_gives_up_everything_when_it_is_abandoned) {
  Script s({.nodes = 2, .places = 2});
  const auto a = s.tile("a", 0, 1);
  const auto b = s.tile("b", 1, 1);
  s.append("T", {s.read_write(a), s.read_write(b)});
  s.protocol(0).abandon();
  EXPECT_EQ(s.protocol(0).records_in_use(), 0U);
}

using JobDeathTest = JobTest;

TEST_F(JobDeathTest, program_that_breaks_its_contract_is_stopped_with_what_is_wrong) {
  testing::FLAGS_gtest_death_test_style = "fast";
  Script s({.nodes = 2, .places = 1, .window = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto t = s.temporary("t", 0, 0);
  const protocol::Work work;
  protocol::Actions actions;
  const auto append = [&](std::vector<protocol::Access> accesses) {
    s.protocol(0).append(s.job(0), work, 0, accesses, actions);
  };
  EXPECT_DEATH(append({s.read_write(t)}), "temporary tile 0 is read before it is written");
  EXPECT_DEATH(append({s.read(a)}), "a task needs a main output");
  EXPECT_DEATH(append({}), "a task needs a main output");
  s.append("T", {s.write(a)});
  EXPECT_DEATH(append({s.write(a)}), "window_is_full");
  EXPECT_DEATH(s.protocol(0).forget(s.job(0)), "job 0 is not drained");
  EXPECT_DEATH(s.protocol(0).remove_matrix(protocol::MatrixId{0}),
               "matrix 0 is removed while a task uses it");
  s.end();
  EXPECT_DEATH(append({s.write(b)}), "generation_ended");
  s.carry_out_all();
}

TEST_F(JobDeathTest, leak_is_an_error_when_the_protocol_ends) {
  testing::FLAGS_gtest_death_test_style = "fast";
  const auto end_with_unfinished = [] {
    Script s({.nodes = 1, .places = 1});
    const auto a = s.tile("a", 0, 0);
    s.append("T", {s.write(a)});
    protocol::Protocol other({NodeId{0}, 1});
    protocol::JobOptions options;
    options.pools.push_back({0, 0, 0});
    other.begin_job(options);
  };
  EXPECT_DEATH(end_with_unfinished(), "job 0 is destroyed with 0 unfinished items");
  const auto end_with_stray_grant = [] {
    protocol::Protocol protocol({NodeId{0}, 1});
    protocol::Actions actions;
    protocol.grant_arrived(protocol::JobId{0}, {protocol::MatrixId{0}, 3}, Version{1}, NodeId{2}, 0,
                           false, actions);
  };
  EXPECT_DEATH(end_with_stray_grant(), "tile 3 version 1 was granted by node 2 and never sent");
}

}  // namespace heddle::simulation
