#include <fmt/core.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>

#include "tests/support/script.hpp"

/// The eight kinds of instances of 001 section 6: what each leaves where when a task is appended,
/// and what it sets in motion when it is fired. See script.hpp for the words.
namespace heddle::simulation {
namespace {

using protocol::AccessMode;
using protocol::BlockRef;

class InstanceKinds : public testing::Test {
 protected:
  static std::string at(std::int32_t place) {
    return place == 0 ? "" : fmt::format(" at {}", place);
  }

  Script s_{{.nodes = 3, .places = 3}};
};

}  // namespace

// ---- 1: owner --------------------------------------------------------------------------------

TEST_F(InstanceKinds, owner_is_left_only_at_the_node_of_the_main_output) {
  const auto a = s_.tile("a", 1, 0);
  s_.append("T", {s_.read_write(a)});
  EXPECT_EQ(s_.instances(0), Lines{});
  EXPECT_EQ(s_.instances(1), Lines{"owner a"});
  EXPECT_EQ(s_.instances(2), Lines{});
  EXPECT_EQ(s_.job(0).counters.skipped, 1);
  EXPECT_EQ(s_.job(1).counters.skipped, 0);
  EXPECT_EQ(s_.job(1).counters.tasks, 1);
}

TEST_F(InstanceKinds, owner_runs_at_the_place_of_the_main_output) {
  const auto a = s_.tile("a", 0, 2);
  s_.append("T", {s_.write(a)});
  EXPECT_EQ(s_.instances(0), Lines{"owner a at 2"});
  EXPECT_EQ(s_.pending(0), Lines{"run T"});
  EXPECT_EQ(s_.ready(0, "T").place, PlaceId{2});
  s_.carry_out(0, "run T");
  EXPECT_EQ(s_.instances(0), Lines{});
}

TEST_F(InstanceKinds, owner_stops_the_scan_of_the_list) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 0, 0);
  s_.append("first", {s_.read_write(a)});
  s_.append("second", {s_.read_write(a)});
  s_.append("reader of second", {s_.write(b), s_.read(a)});
  s_.carry_out(0, "run first");
  EXPECT_EQ(s_.pending(0), Lines{"run second"});
  s_.carry_out(0, "run second");
  EXPECT_EQ(s_.pending(0), Lines{"run reader of second"});
}

// ---- 2, 3, 4: inputs -------------------------------------------------------------------------

TEST_F(InstanceKinds, native_input_makes_its_owner_ready_at_once) {
  for (const std::int32_t place : {0, 1}) {
    Script t({.nodes = 2, .places = 2});
    const auto a = t.tile("a", 0, place);
    const auto b = t.tile("b", 0, place);
    t.append("write", {t.write(b)});
    t.append("read", {t.write(a), t.read(b)});
    EXPECT_EQ(t.instances(0),
              (Lines{"owner b" + at(place), "owner a" + at(place), "native input b" + at(place)}));
    EXPECT_EQ(t.instances(1), Lines{});
    t.carry_out(0, "run write");
    EXPECT_EQ(t.pending(0), Lines{"run read"});
  }
}

TEST_F(InstanceKinds, intranode_alien_input_copies_and_then_makes_its_owner_ready) {
  const auto a = s_.tile("a", 0, 2);
  const auto b = s_.tile("b", 0, 1);
  s_.append("write", {s_.write(b)});
  s_.append("read", {s_.write(a), s_.read(b)});
  EXPECT_EQ(s_.instances(0),
            (Lines{"owner b at 1", "owner a at 2", "intranode alien input b at 1"}));
  EXPECT_EQ(s_.pending(0), Lines{"run write"});
  s_.carry_out(0, "run write");
  EXPECT_EQ(s_.pending(0), Lines{"copy b.1 1>2"});
  s_.carry_out(0, "copy b.1 1>2");
  EXPECT_EQ(s_.pending(0), Lines{"run read"});
}

TEST_F(InstanceKinds, intranode_alien_input_is_copied_once_for_all_readers_at_a_place) {
  const auto b = s_.tile("b", 0, 0);
  const auto a1 = s_.tile("a1", 0, 1);
  const auto c1 = s_.tile("c1", 0, 1);
  const auto a2 = s_.tile("a2", 0, 2);
  s_.append("A", {s_.write(a1), s_.read(b)});
  s_.append("B", {s_.write(a2), s_.read(b)});
  s_.append("C", {s_.write(c1), s_.read(b)});
  EXPECT_EQ(s_.pending(0), (Lines{"copy b.0 0>1", "copy b.0 0>2"}));
  s_.carry_out(0, "copy b.0 0>1");
  EXPECT_EQ(s_.pending(0), (Lines{"copy b.0 0>2", "run A", "run C"}));
}

TEST_F(InstanceKinds, internode_alien_input_is_left_where_the_input_lives_and_becomes_a_message) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 1, 0);
  s_.append("write", {s_.write(b)});
  s_.append("read", {s_.write(a), s_.read(b)});
  EXPECT_EQ(s_.instances(1), (Lines{"owner b", "internode alien input b for 0"}));
  EXPECT_EQ(s_.instances(0), (Lines{"owner a", "native input b"}));  // of the arrival record
  EXPECT_EQ(s_.instances(2), Lines{});
  EXPECT_EQ(s_.pending(0), Lines{"grant b.1 from 1"});
  s_.carry_out(1, "run write");
  EXPECT_EQ(s_.pending(1), Lines{});  // the data is present, the receiver's block is not known yet
  s_.carry_out(0, "grant b.1 from 1");
  EXPECT_EQ(s_.pending(1), Lines{"send b.1 to 0"});
  s_.carry_out(1, "send b.1 to 0");
  EXPECT_EQ(s_.pending(0), Lines{"run read"});
  EXPECT_EQ(s_.instances(1), Lines{"internode alien input b for 0"});
  s_.carry_out(1, "sent b.1 to 0");
  EXPECT_EQ(s_.instances(1), Lines{});
}

TEST_F(InstanceKinds, internode_alien_input_goes_straight_from_its_place_to_that_of_its_reader) {
  for (const auto& [from, to] : {std::pair{0, 2}, std::pair{1, 0}, std::pair{1, 2}}) {
    Script t({.nodes = 2, .places = 3});
    const auto a = t.tile("a", 0, to);
    const auto b = t.tile("b", 1, from);
    t.append("write", {t.write(b)});
    t.append("T", {t.write(a), t.read(b)});
    EXPECT_EQ(t.instances(1),
              (Lines{"owner b" + at(from), "internode alien input b" + at(from) + " for 0"}));
    EXPECT_EQ(t.instances(0), (Lines{"owner a" + at(to), "native input b" + at(from)}));
    t.carry_out(1, "run write");
    const std::string grant = "grant b.1" + at(to) + " from 1";
    EXPECT_EQ(t.pending(0), Lines{grant});
    const BlockRef landing = t.block(0, grant);
    EXPECT_EQ(Script::pool_of(landing), fmt::format("job {}", to));
    t.carry_out(0, grant);
    const std::string message = "b.1" + at(from) + " to 0";
    EXPECT_EQ(t.pending(1), Lines{"send " + message});
    EXPECT_EQ(t.block(1, "send " + message), t.protocol(1).current_block(b, PlaceId{from}));
    t.carry_out(1, "send " + message);
    EXPECT_EQ(t.pending(0), Lines{"run T"});
    EXPECT_EQ(t.ready(0, "T").operands[1].block, landing);
    EXPECT_EQ(t.pending(1), Lines{"sent " + message});
    t.carry_out(1, "sent " + message);
    EXPECT_EQ(t.freed(1), Lines{});  // there was no other block on the way
  }
}

TEST_F(InstanceKinds,
       internode_alien_input_is_copied_from_the_place_of_its_first_reader_to_others) {
  for (const std::int32_t first : {0, 1, 2}) {
    Script t({.nodes = 2, .places = 3});
    const std::int32_t second = (first + 1) % 3;
    const std::int32_t third = (first + 2) % 3;
    const auto a = t.tile("a", 0, first);
    const auto b = t.tile("b", 0, second);
    const auto c = t.tile("c", 0, third);
    const auto d = t.tile("d", 0, second);
    const auto x = t.tile("x", 1, 0);
    t.append("A", {t.write(a), t.read(x)});
    t.append("B", {t.write(b), t.read(x)});
    t.append("C", {t.write(c), t.read(x)});
    t.append("D", {t.write(d), t.read(x)});
    EXPECT_EQ(t.instances(0),
              (Lines{"owner a" + at(first), "native input x", "owner b" + at(second),
                     "intranode alien input x", "owner c" + at(third), "intranode alien input x",
                     "owner d" + at(second), "intranode alien input x"}));
    const std::string grant = "grant x.0" + at(first) + " from 1";
    EXPECT_EQ(t.pending(0), Lines{grant});
    t.carry_out(0, grant);
    t.carry_out(1, "send x.0 to 0");
    const std::string to_second = fmt::format("copy x.0 {}>{}", first, second);
    const std::string to_third = fmt::format("copy x.0 {}>{}", first, third);
    EXPECT_EQ(t.pending_in_order(0), (Lines{"run A", to_second, to_third}));
    t.carry_out(0, to_third);
    EXPECT_EQ(t.pending_in_order(0), (Lines{"run A", to_second, "run C"}));
    t.carry_out(0, to_second);
    EXPECT_EQ(t.pending_in_order(0), (Lines{"run A", "run C", "run B", "run D"}));
  }
}

// ---- 5: native minor output ------------------------------------------------------------------

TEST_F(InstanceKinds, native_minor_output_fires_after_the_main_output) {
  for (const std::int32_t place : {0, 2}) {
    Script t({.nodes = 2, .places = 3});
    const auto a = t.tile("a", 0, place);
    const auto b = t.tile("b", 0, place);
    const auto c = t.tile("c", 0, place);
    t.append("T", {t.write(a), t.write(b)});
    t.append("U", {t.read_write(c), t.read(b)});
    EXPECT_EQ(t.instances(0), (Lines{"owner a" + at(place), "native minor output b" + at(place),
                                     "owner c" + at(place), "native input b" + at(place)}));
    EXPECT_EQ(t.instances(1), Lines{});
    EXPECT_EQ(t.pending(0), Lines{"run T"});
    t.carry_out(0, "run T");
    EXPECT_EQ(t.pending(0), Lines{"run U"});
  }
}

TEST_F(InstanceKinds, native_minor_output_that_is_updated_waits_for_its_old_content) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 0, 0);
  const auto c = s_.tile("c", 0, 0);
  s_.append("write", {s_.write(b)});
  s_.append("update", {s_.write(a), s_.read_write(b)});
  s_.append("read", {s_.write(c), s_.read(b)});
  EXPECT_EQ(s_.pending(0), Lines{"run write"});
  s_.carry_out(0, "run write");
  EXPECT_EQ(s_.pending(0), Lines{"run update"});  // a native minor output stops the scan
  s_.carry_out(0, "run update");
  EXPECT_EQ(s_.pending(0), Lines{"run read"});
}

// ---- 6, 7: minor output at another place of the node -----------------------------------------

TEST_F(InstanceKinds, intranode_source_is_copied_to_its_sink_which_then_fires) {
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 2}}) {
    Script t({.nodes = 2, .places = 3});
    const auto a = t.tile("a", 0, from);
    const auto b = t.tile("b", 0, to);
    const auto c = t.tile("c", 0, to);
    t.append("T", {t.write(a), t.write(b)});
    t.append("U", {t.write(c), t.read(b)});
    EXPECT_EQ(
        t.instances(0),
        (Lines{"owner a" + at(from), "intranode source minor output b" + at(to),
               "sink minor output b" + at(to), "owner c" + at(to), "native input b" + at(to)}));
    EXPECT_EQ(t.instances(1), Lines{});
    EXPECT_EQ(t.pending(0), Lines{"run T"});
    t.carry_out(0, "run T");
    const std::string sink = fmt::format("sink b.1 {}>{}", from, to);
    EXPECT_EQ(t.pending(0), Lines{sink});
    t.carry_out(0, sink);
    EXPECT_EQ(t.pending(0), Lines{"run U"});
    EXPECT_EQ(t.freed(0), Lines{fmt::format("job {}", from)});
  }
}

TEST_F(InstanceKinds, intranode_source_that_is_updated_reads_its_old_content_first) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 0, 1);
  s_.append("T", {s_.write(a), s_.read_write(b)});
  EXPECT_EQ(s_.instances(0),
            (Lines{"owner a", "intranode alien input b at 1",
                   "intranode source minor output b at 1", "sink minor output b at 1"}));
  EXPECT_EQ(s_.pending(0), Lines{"copy b.0 1>0"});
  s_.carry_out(0, "copy b.0 1>0");
  const auto& operand = s_.ready(0, "T").operands[1];
  EXPECT_EQ(operand.copy_from, operand.in->block);  // into the block that the kernel updates
  EXPECT_NE(operand.block, operand.copy_from);
  s_.carry_out(0, "run T");
  EXPECT_EQ(s_.pending(0), Lines{"sink b.1 0>1"});
  s_.carry_out(0, "sink b.1 0>1");
  EXPECT_EQ(s_.freed(0), (Lines{"job 0", "job 0"}));
}

TEST_F(InstanceKinds, sink_of_a_task_waits_for_readers_of_what_it_replaces) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 0, 1);
  const auto c = s_.tile("c", 0, 1);
  s_.append("R", {s_.write(c), s_.read(b)});
  s_.append("T", {s_.write(a), s_.write(b)});
  EXPECT_EQ(s_.pending(0), (Lines{"run R", "run T"}));
  s_.carry_out(0, "run T");
  EXPECT_EQ(s_.pending(0), Lines{"run R"});
  s_.carry_out(0, "run R");
  EXPECT_EQ(s_.pending(0), Lines{"sink b.1 0>1"});
}

// ---- 6, 8: minor output on another node ------------------------------------------------------

TEST_F(InstanceKinds, internode_source_is_one_message_from_the_place_of_its_task_into_the_tile) {
  for (const auto& [from, to] :
       {std::pair{0, 0}, std::pair{0, 1}, std::pair{2, 0}, std::pair{2, 1}}) {
    Script t({.nodes = 3, .places = 3});
    const auto a = t.tile("a", 0, from);
    const auto b = t.tile("b", 1, to);
    const auto c = t.tile("c", 1, to);
    t.append("T", {t.write(a), t.write(b)});
    t.append("U", {t.write(c), t.read(b)});
    const Lines source{"owner a" + at(from), "internode source minor output b" + at(to)};
    EXPECT_EQ(t.instances(0), source);
    EXPECT_EQ(t.instances(1), (Lines{"sink minor output b" + at(to) + " from 0", "owner c" + at(to),
                                     "native input b" + at(to)}));
    EXPECT_EQ(t.instances(2), Lines{});
    const std::string grant = "grant b.1" + at(to) + " from 0";
    EXPECT_EQ(t.pending(1), Lines{grant});
    EXPECT_EQ(t.block(1, grant), t.protocol(1).current_block(b, PlaceId{to}));
    EXPECT_EQ(Script::pool_of(t.block(1, grant)), fmt::format("own {}", to));
    t.carry_out(1, grant);
    EXPECT_EQ(t.pending(0), Lines{"run T"});
    const BlockRef written = t.ready(0, "T").operands[1].block;
    EXPECT_EQ(Script::pool_of(written), fmt::format("job {}", from));
    t.carry_out(0, "run T");
    const std::string message = "b.1" + at(from) + " to 1";
    EXPECT_EQ(t.pending(0), Lines{"send " + message});
    EXPECT_EQ(t.block(0, "send " + message), written);
    t.carry_out(0, "send " + message);
    EXPECT_EQ(t.pending(1), Lines{"run U"});
    EXPECT_EQ(t.instances(0), source);
    EXPECT_EQ(t.freed(0), Lines{});
    t.carry_out(0, "sent " + message);
    EXPECT_EQ(t.instances(0), Lines{});
    EXPECT_EQ(t.freed(0), Lines{fmt::format("job {}", from)});
    EXPECT_EQ(t.freed(1), Lines{});
  }
}

TEST_F(InstanceKinds, internode_source_that_is_updated_also_leaves_an_internode_alien_input) {
  const auto a = s_.tile("a", 0, 0);
  const auto b = s_.tile("b", 1, 0);
  s_.append("T", {s_.write(a), s_.read_write(b)});
  EXPECT_EQ(s_.instances(1),
            (Lines{"sink minor output b from 0", "internode alien input b for 0"}));
  EXPECT_EQ(s_.pending(1), Lines{});  // the tile's block is still to be sent from
  s_.carry_out(0, "grant b.0 from 1");
  s_.carry_out(1, "send b.0 to 0");
  s_.carry_out(0, "run T");
  EXPECT_EQ(s_.pending(1), Lines{"sent b.0 to 0"});
  s_.carry_out(1, "sent b.0 to 0");
  EXPECT_EQ(s_.pending(1), Lines{"grant b.1 from 0"});
  s_.carry_out(1, "grant b.1 from 0");
  s_.carry_out(0, "send b.1 to 1");
  EXPECT_EQ(s_.instances(1), Lines{});
}

TEST_F(InstanceKinds, sink_of_a_message_waits_for_readers_of_what_it_replaces) {
  for (const std::int32_t place : {0, 1}) {
    Script t({.nodes = 2, .places = 2});
    const auto a = t.tile("a", 0, 0);
    const auto b = t.tile("b", 1, place);
    const auto c = t.tile("c", 1, place);
    t.append("R", {t.write(c), t.read(b)});
    t.append("T", {t.write(a), t.write(b)});
    t.carry_out(0, "run T");
    const BlockRef old = t.ready(1, "R").operands[1].block;
    EXPECT_EQ(t.pending(1), Lines{"run R"});
    t.carry_out(1, "run R");
    const std::string grant = "grant b.1" + at(place) + " from 0";
    EXPECT_EQ(t.pending(1), Lines{grant});
    EXPECT_EQ(t.block(1, grant), old);
    EXPECT_EQ(t.pending(0), Lines{});
    t.carry_out(1, grant);
    EXPECT_EQ(t.pending(0), Lines{"send b.1 to 1"});
  }
}

TEST_F(InstanceKinds, sink_of_a_message_waits_for_copies_and_messages_of_what_it_replaces) {
  const auto a = s_.tile("a", 0, 2);
  const auto b = s_.tile("b", 1, 1);
  const auto c = s_.tile("c", 1, 0);
  const auto d = s_.tile("d", 2, 2);
  s_.append("C", {s_.write(c), s_.read(b)});
  s_.append("D", {s_.write(d), s_.read(b)});
  s_.append("T", {s_.write(a), s_.write(b)});
  s_.carry_out(2, "grant b.0 at 2 from 1");
  EXPECT_EQ(s_.pending(1), (Lines{"copy b.0 1>0", "send b.0 at 1 to 2"}));
  s_.carry_out(1, "send b.0 at 1 to 2");
  s_.carry_out(1, "copy b.0 1>0");
  EXPECT_EQ(s_.pending(1), (Lines{"run C", "sent b.0 at 1 to 2"}));
  s_.carry_out(1, "sent b.0 at 1 to 2");
  EXPECT_EQ(s_.pending(1), (Lines{"grant b.1 at 1 from 0", "run C"}));  // the host has its copy
}

// ---- all together ----------------------------------------------------------------------------

namespace {

/// The rules of section 6.1, written down once more: kinds left at `node` by the second access of
/// a task whose main output is at `main`.
Lines expected_kinds(std::int32_t node, Location main, Location other, AccessMode mode) {
  const bool runs_here = main.node == NodeId{node};
  const bool lives_here = other.node == NodeId{node};
  Lines kinds;
  if (mode != AccessMode::write) {
    if (runs_here && other == main) {
      if (mode == AccessMode::read) kinds.emplace_back("native input");
    } else if (runs_here) {  // from elsewhere it lands at the task's place
      kinds.emplace_back(lives_here ? "intranode alien input" : "native input");
    } else if (lives_here && mode == AccessMode::read) {
      kinds.emplace_back("internode alien input");
    }
  }
  if (mode == AccessMode::read) return kinds;
  if (other == main) {
    if (runs_here) kinds.emplace_back("native minor output");
    return kinds;
  }
  if (runs_here) {
    kinds.emplace_back(lives_here ? "intranode source minor output"
                                  : "internode source minor output");
  }
  if (lives_here) kinds.emplace_back("sink minor output");
  if (lives_here && !runs_here && mode == AccessMode::read_write) {
    kinds.emplace_back("internode alien input");
  }
  return kinds;
}

}  // namespace

TEST(InstanceRules, hold_for_every_mode_and_every_pair_of_locations) {
  for (std::int32_t main_place = 0; main_place < 3; ++main_place) {
    for (std::int32_t other_node = 0; other_node < 2; ++other_node) {
      for (std::int32_t other_place = 0; other_place < 3; ++other_place) {
        for (const AccessMode mode :
             {AccessMode::read, AccessMode::write, AccessMode::read_write}) {
          Script t({.nodes = 3, .places = 3});
          const auto a = t.tile("a", 0, main_place);
          auto access = t.read(t.tile("b", other_node, other_place));
          access.mode = mode;
          t.append("T", {t.write(a), access});
          for (std::int32_t node = 0; node < 3; ++node) {
            Lines kinds;
            for (const std::string& line : t.instances(node)) {
              if (!line.starts_with("owner")) kinds.push_back(line.substr(0, line.find(" b")));
            }
            EXPECT_EQ(kinds,
                      expected_kinds(node, {NodeId{0}, PlaceId{main_place}}, access.home, mode))
                << "node " << node << ", main at " << main_place << ", other at " << other_node
                << "." << other_place;
          }
          t.end();
          t.carry_out_all();
          EXPECT_TRUE(t.drained());
        }
      }
    }
  }
}

TEST(InstanceKind, has_a_name_of_its_own) {
  std::set<std::string> names;
  for (std::uint8_t k = 0; k < 8; ++k) {
    names.insert(protocol::name(static_cast<protocol::InstanceKind>(k)));
  }
  EXPECT_EQ(names.size(), 8U);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace heddle::simulation
