#include <gtest/gtest.h>
#include <string>

#include "tests/support/script.hpp"

/// The list of one tile: what is fired when, when a write goes to a fresh copy, when a copy is
/// given up. See script.hpp for the words.
namespace heddle::simulation {
namespace {

using protocol::BlockRef;

class List : public testing::Test {
 protected:
  /// A one-node script with two places and `spares` spare blocks per place.
  static Script::Options with_spares(std::int32_t spares) {
    return {.nodes = 1, .places = 2, .spare_count = spares};
  }
};

}  // namespace

// ---- order -----------------------------------------------------------------------------------

TEST_F(List, fires_the_readers_of_a_write_in_program_order_up_to_the_next_write) {
  Script s(with_spares(0));
  const auto a = s.tile("a", 0, 0);
  const auto x = s.tile("x", 0, 0);
  const auto y = s.tile("y", 0, 0);
  const auto z = s.tile("z", 0, 0);
  s.append("write", {s.write(a)});
  s.append("reader z", {s.write(z), s.read(a)});
  s.append("reader y", {s.write(y), s.read(a)});
  s.append("update", {s.read_write(a)});
  s.append("reader x", {s.write(x), s.read(a)});
  EXPECT_EQ(s.pending(0), Lines{"run write"});
  s.carry_out(0, "run write");
  EXPECT_EQ(s.pending_in_order(0), (Lines{"run reader z", "run reader y"}));
  s.carry_out(0, "run reader y");
  EXPECT_EQ(s.pending(0), Lines{"run reader z"});
  s.carry_out(0, "run reader z");
  EXPECT_EQ(s.pending(0), Lines{"run update"});
  s.carry_out(0, "run update");
  EXPECT_EQ(s.pending(0), Lines{"run reader x"});
}

TEST_F(List, makes_a_reader_ready_at_once_when_its_version_is_there) {
  Script s(with_spares(0));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("write", {s.write(a)});
  s.carry_out(0, "run write");
  s.append("read", {s.write(b), s.read(a)});
  EXPECT_EQ(s.pending(0), Lines{"run read"});
}

TEST_F(List, makes_a_task_ready_once_with_its_last_input) {
  Script s(with_spares(0));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  const auto c = s.tile("c", 0, 0);
  s.append("A", {s.write(a)});
  s.append("B", {s.write(b)});
  s.append("T", {s.write(c), s.read(a), s.read(b)});
  s.carry_out(0, "run B");
  EXPECT_EQ(s.pending(0), Lines{"run A"});
  s.carry_out(0, "run A");
  EXPECT_EQ(s.pending(0), Lines{"run T"});
}

// ---- renaming (D3) ---------------------------------------------------------------------------

TEST_F(List, writes_in_place_when_nobody_reads_the_old_version) {
  Script s(with_spares(3));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("read", {s.write(b), s.read(a)});
  const BlockRef old = s.ready(0, "read").operands[1].block;
  s.carry_out(0, "run read");
  s.append("update", {s.read_write(a)});
  EXPECT_EQ(s.ready(0, "update").operands[0].block, old);
  EXPECT_FALSE(s.ready(0, "update").operands[0].copy_from.valid());
  EXPECT_EQ(s.protocol(0).renamings(), 0);
}

TEST_F(List, lets_a_write_wait_for_readers_when_there_is_no_spare_block) {
  Script s(with_spares(0));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("read", {s.write(b), s.read(a)});
  const BlockRef old = s.ready(0, "read").operands[1].block;
  s.append("overwrite", {s.write(a)});
  EXPECT_EQ(s.pending(0), Lines{"run read"});
  EXPECT_NE(s.blockage(0).find("is ready or running"), std::string::npos);
  s.carry_out(0, "run read");
  EXPECT_EQ(s.ready(0, "overwrite").operands[0].block, old);
  EXPECT_EQ(s.protocol(0).renamings(), 0);
}

TEST_F(List, overwrites_into_a_spare_block_while_the_old_version_is_read) {
  Script s(with_spares(1));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("read", {s.write(b), s.read(a)});
  s.append("overwrite", {s.write(a)});
  const BlockRef old = s.ready(0, "read").operands[1].block;
  const BlockRef fresh = s.ready(0, "overwrite").operands[0].block;
  EXPECT_NE(fresh, old);
  EXPECT_FALSE(s.ready(0, "overwrite").operands[0].copy_from.valid());
  EXPECT_EQ(s.protocol(0).renamings(), 1);
  s.carry_out(0, "run overwrite");
  EXPECT_EQ(s.freed(0), Lines{});  // the old version is still read
  EXPECT_EQ(s.ready(0, "read").operands[1].block, old);
  s.carry_out(0, "run read");
  EXPECT_EQ(s.freed(0), Lines{"own 0"});
  EXPECT_EQ(s.protocol(0).current_block(a, host_place), fresh);
}

TEST_F(List, updates_a_copy_in_a_spare_block_and_keeps_the_original_until_it_is_copied) {
  Script s(with_spares(1));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  s.append("read", {s.write(b), s.read(a)});
  s.append("update", {s.read_write(a)});
  const BlockRef old = s.ready(0, "read").operands[1].block;
  EXPECT_EQ(s.ready(0, "update").operands[0].copy_from, old);
  EXPECT_NE(s.ready(0, "update").operands[0].block, old);
  s.carry_out(0, "run read");
  EXPECT_EQ(s.freed(0), Lines{});  // the update reads it, too
  s.carry_out(0, "run update");
  EXPECT_EQ(s.freed(0), Lines{"own 0"});
}

TEST_F(List, overwrites_what_was_not_even_written_yet) {
  for (const std::int32_t spares : {0, 1}) {
    Script s(with_spares(spares));
    const auto a = s.tile("a", 0, 0);
    const auto b = s.tile("b", 0, 0);
    const auto c = s.tile("c", 0, 0);
    s.append("first", {s.write(a)});
    s.append("read", {s.write(b), s.read(a)});
    s.append("second", {s.write(a)});
    s.append("late", {s.write(c), s.read(a)});
    if (spares == 0) {
      EXPECT_EQ(s.pending(0), Lines{"run first"});
    } else {
      EXPECT_EQ(s.pending(0), (Lines{"run first", "run second"}));
      EXPECT_NE(s.ready(0, "first").operands[0].block, s.ready(0, "second").operands[0].block);
      s.carry_out(0, "run second");
      EXPECT_EQ(s.pending(0), (Lines{"run first", "run late"}));
    }
    s.end();
    s.carry_out_all();
    EXPECT_TRUE(s.drained());
  }
}

TEST_F(List, does_not_overwrite_in_place_what_is_being_written) {
  Script s(with_spares(0));
  const auto a = s.tile("a", 0, 0);
  s.append("first", {s.write(a)});
  s.append("second", {s.write(a)});  // depends on nothing but the block
  EXPECT_EQ(s.pending(0), Lines{"run first"});
  s.carry_out(0, "run first");
  EXPECT_EQ(s.pending(0), Lines{"run second"});
}

TEST_F(List, uses_spare_blocks_only_of_the_place_of_the_tile) {
  Script s(with_spares(1));
  const auto a = s.tile("a", 0, 0);
  const auto d = s.tile("d", 0, 1);
  const auto e = s.tile("e", 0, 1);
  const auto b = s.tile("b", 0, 0);
  const auto x = s.tile("x", 0, 0);
  const auto y = s.tile("y", 0, 1);
  s.append("read a", {s.write(x), s.read(a)});
  s.append("read d", {s.write(y), s.read(d)});
  s.append("write a", {s.write(a)});
  s.append("write d", {s.write(d)});
  EXPECT_EQ(s.pending(0), (Lines{"run read a", "run read d", "run write a", "run write d"}));
  EXPECT_EQ(s.ready(0, "write a").operands[0].block.pool, 0);
  EXPECT_EQ(s.ready(0, "write d").operands[0].block.pool, 1);
  // Each place had one; the next write at either waits.
  s.append("read e", {s.read_write(y), s.read(e)});
  s.append("write e", {s.write(e)});
  s.append("read b", {s.read_write(x), s.read(b)});
  s.append("write b", {s.write(b)});
  EXPECT_EQ(s.pending(0), (Lines{"run read a", "run read d", "run write a", "run write d"}));
}

TEST_F(List, gives_the_block_of_a_renamed_tile_to_the_next_renaming) {
  Script s(with_spares(1));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  const auto x = s.tile("x", 0, 0);
  s.append("read a", {s.write(x), s.read(a)});
  s.append("write a", {s.write(a)});
  const BlockRef old = s.ready(0, "read a").operands[1].block;
  s.carry_out(0, "run read a");
  s.append("read b", {s.read_write(x), s.read(b)});
  s.append("write b", {s.write(b)});
  EXPECT_EQ(s.ready(0, "write b").operands[0].block, old);
  EXPECT_EQ(s.protocol(0).renamings(), 2);
}

TEST_F(List, keeps_a_write_that_found_no_spare_block_waiting_for_its_readers) {
  Script s(with_spares(1));
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  const auto x = s.tile("x", 0, 0);
  const auto y = s.tile("y", 0, 0);
  s.append("read a", {s.write(x), s.read(a)});
  s.append("read b", {s.write(y), s.read(b)});
  s.append("write a", {s.write(a)});
  s.append("write b", {s.write(b)});
  s.carry_out(0, "run read a");  // a spare block is back, but a choice once made stays
  EXPECT_EQ(s.pending(0), (Lines{"run read b", "run write a"}));
  s.carry_out(0, "run read b");
  EXPECT_EQ(s.pending(0), (Lines{"run write a", "run write b"}));
  EXPECT_EQ(s.protocol(0).renamings(), 1);
}

TEST_F(List, counts_copies_under_way_and_messages_as_readers_and_finished_copies_not) {
  for (const std::int32_t home : {0, 1}) {
    Script s({.nodes = 2, .places = 2});
    const auto a = s.tile("a", 0, home);
    const auto d = s.tile("d", 0, 1 - home);
    const auto r = s.tile("r", 1, 0);
    s.append("at the other place", {s.write(d), s.read(a)});
    s.append("elsewhere", {s.write(r), s.read(a)});
    s.append("write", {s.write(a)});
    const std::string copy = home == 0 ? "copy a.0 0>1" : "copy a.0 1>0";
    const std::string message = home == 0 ? "a.0 to 1" : "a.0 at 1 to 1";
    EXPECT_EQ(s.pending(0), Lines{copy});
    s.carry_out(0, copy);
    EXPECT_EQ(s.pending(0), Lines{"run at the other place"});
    s.carry_out(1, "grant a.0 from 0");
    s.carry_out(0, "send " + message);
    EXPECT_EQ(s.pending(0), (Lines{"run at the other place", "sent " + message}));
    s.carry_out(0, "sent " + message);
    EXPECT_EQ(s.pending(0), (Lines{"run at the other place", "run write"}));  // has its copy
  }
}

TEST_F(List, receives_into_a_spare_block_of_the_place_while_the_old_version_is_read) {
  for (const std::int32_t place : {0, 1}) {
    Script s({.nodes = 2, .places = 2, .spare_count = 1});
    const auto a = s.tile("a", 0, 0);
    const auto b = s.tile("b", 1, place);
    const auto c = s.tile("c", 1, place);
    s.append("read", {s.write(c), s.read(b)});
    s.append("write", {s.write(a), s.write(b)});
    const BlockRef old = s.ready(1, "read").operands[1].block;
    const std::string grant = place == 0 ? "grant b.1 from 0" : "grant b.1 at 1 from 0";
    const BlockRef fresh = s.block(1, grant);
    EXPECT_NE(fresh, old);
    EXPECT_EQ(Script::pool_of(fresh), Script::pool_of(old));
    EXPECT_EQ(s.protocol(1).renamings(), 1);
    s.carry_out(1, grant);
    s.carry_out(0, "run write");
    s.carry_out(0, "send b.1 to 1");
    EXPECT_EQ(s.freed(1), Lines{});  // the old version is still read
    s.carry_out(1, "run read");
    EXPECT_EQ(s.freed(1), Lines{Script::pool_of(old)});
    EXPECT_EQ(s.protocol(1).current_block(b, PlaceId{place}), fresh);
  }
}

TEST_F(List, never_renames_temporaries) {
  Script s(with_spares(2));
  const auto b = s.tile("b", 0, 0);
  const auto t = s.temporary("t", 0, 0);
  s.append("write", {s.write(t)});
  s.carry_out(0, "run write");
  s.append("read", {s.write(b), s.read(t)});
  s.append("overwrite", {s.write(t)});
  EXPECT_EQ(s.pending(0), Lines{"run read"});
  s.carry_out(0, "run read");
  EXPECT_EQ(s.pending(0), Lines{"run overwrite"});
  EXPECT_EQ(s.protocol(0).renamings(), 0);
}

// ---- how long copies live --------------------------------------------------------------------

namespace {

/// What may close a copy: it can then be given up after its last visit.
enum class Closing : std::uint8_t { release, overwrite, end };

std::string closing_name(const testing::TestParamInfo<Closing>& closed) {
  switch (closed.param) {
    case Closing::release:
      return "by_a_release";
    case Closing::overwrite:
      return "by_a_write";
    case Closing::end:
      break;
  }
  return "by_the_end_of_the_program";
}

class CopyLifetime : public testing::TestWithParam<Closing> {
 protected:
  void close(Script& s, protocol::TileId tile) {
    switch (GetParam()) {
      case Closing::release:
        return s.release(tile);
      case Closing::overwrite:
        return s.append("overwrite", {s.write(tile)});
      case Closing::end:
        return s.end();
    }
  }
};

}  // namespace

TEST_P(CopyLifetime, of_a_copy_at_another_place_ends_when_it_is_closed_and_visited) {
  for (const bool closed_first : {true, false}) {
    Script s({.nodes = 1, .places = 2});
    const auto a = s.tile("a", 0, 0);
    const auto d = s.tile("d", 0, 1);
    s.append("T", {s.write(d), s.read(a)});
    s.append("U", {s.read_write(d), s.read(a)});
    if (closed_first) close(s, a);
    s.carry_out(0, "copy a.0 0>1");
    s.carry_out(0, "run T");
    EXPECT_EQ(s.freed(0), Lines{});
    s.carry_out(0, "run U");
    if (!closed_first) {
      EXPECT_EQ(s.freed(0), Lines{});
      close(s, a);
    }
    EXPECT_EQ(s.freed(0), Lines{"job 1"});
  }
}

TEST_P(CopyLifetime, of_a_version_from_another_node_ends_when_it_is_closed_and_visited) {
  for (const std::int32_t first : {0, 1}) {
    for (const bool closed_first : {true, false}) {
      Script s({.nodes = 2, .places = 2});
      const auto a = s.tile("a", 0, first);
      const auto d = s.tile("d", 0, 1 - first);
      const auto b = s.tile("b", 1, 0);
      s.append("T", {s.write(a), s.read(b)});
      s.append("D", {s.write(d), s.read(b)});
      if (closed_first) close(s, b);
      s.carry_out(0, first == 0 ? "grant b.0 from 1" : "grant b.0 at 1 from 1");
      s.carry_out(1, "send b.0 to 0");
      s.carry_out(0, "run T");
      s.carry_out(0, first == 0 ? "copy b.0 0>1" : "copy b.0 1>0");
      const Lines landing{first == 0 ? "job 0" : "job 1"};
      const Lines copy{first == 0 ? "job 1" : "job 0"};
      EXPECT_EQ(s.freed(0), closed_first ? landing : Lines{});
      s.carry_out(0, "run D");
      EXPECT_EQ(s.freed(0), closed_first ? copy : Lines{});
      if (!closed_first) {
        close(s, b);
        EXPECT_EQ(s.freed(0), (Lines{"job 0", "job 1"}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Closed, CopyLifetime,
                         testing::Values(Closing::release, Closing::overwrite, Closing::end),
                         closing_name);

TEST_F(List, releases_nothing_of_what_was_never_copied) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  s.release(a);
  s.append("T", {s.read_write(a)});
  s.release(a);
  s.end();
  s.carry_out_all();
  EXPECT_EQ(s.freed(0), Lines{});
  EXPECT_TRUE(s.drained());
}

// ---- temporaries -----------------------------------------------------------------------------

TEST_F(List, gives_a_temporary_a_block_with_its_first_write_and_takes_it_back_after_its_release) {
  Script s({.nodes = 1, .places = 2});
  const auto d = s.tile("d", 0, 1);
  const auto t = s.temporary("t", 0, 1);
  s.append("write", {s.write(t)});
  const BlockRef block = s.ready(0, "write").operands[0].block;
  s.carry_out(0, "run write");
  s.append("update", {s.read_write(t)});
  EXPECT_EQ(s.ready(0, "update").operands[0].block, block);  // the block passes on
  s.append("read", {s.write(d), s.read(t)});
  s.release(t);
  s.carry_out(0, "run update");
  EXPECT_EQ(s.freed(0), Lines{});
  s.carry_out(0, "run read");
  EXPECT_EQ(s.freed(0), Lines{"job 1"});
}

TEST_F(List, gives_a_released_temporary_another_block_while_the_old_one_is_read) {
  Script s({.nodes = 1, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto t = s.temporary("t", 0, 0);
  s.append("write", {s.write(t)});
  s.carry_out(0, "run write");
  s.append("read", {s.write(a), s.read(t)});
  s.release(t);
  s.append("again", {s.write(t)});
  EXPECT_EQ(s.pending(0), (Lines{"run again", "run read"}));
  EXPECT_NE(s.ready(0, "again").operands[0].block, s.ready(0, "read").operands[1].block);
}

TEST_F(List, holds_a_temporary_back_until_a_block_is_free) {
  Script s({.nodes = 1, .places = 1, .blocks = 1, .minimum = 1});
  const auto t = s.temporary("t", 0, 0);
  const auto u = s.temporary("u", 0, 0);
  s.append("T", {s.write(t)});
  s.release(t);
  s.append("U", {s.write(u)});
  EXPECT_EQ(s.pending(0), Lines{"run T"});
  s.carry_out(0, "run T");
  EXPECT_EQ(s.pending(0), Lines{"run U"});
}

TEST_F(List, takes_back_temporaries_that_the_program_did_not_release) {
  for (const bool written : {true, false}) {
    Script s({.nodes = 1, .places = 1});
    const auto t = s.temporary("t", 0, 0);
    s.append("write", {s.write(t)});
    s.append("update", {s.read_write(t)});
    if (written) s.carry_out_all();
    s.end();
    s.carry_out_all();
    EXPECT_EQ(s.freed(0), Lines{"job 0"});
    EXPECT_TRUE(s.drained());
  }
}

TEST_F(List, sends_temporaries_and_receives_minor_outputs_for_them) {
  for (const std::int32_t place : {0, 1}) {
    Script s({.nodes = 2, .places = 2});
    const auto a = s.tile("a", 0, 0);
    const auto t = s.temporary("t", 1, place);
    s.append("write", {s.write(a), s.write(t)});
    s.append("read", {s.read_write(a), s.read(t)});
    s.release(t);
    s.end();
    s.carry_out_all();
    EXPECT_TRUE(s.drained());
    EXPECT_EQ(s.protocol(1).records_in_use(), 0U);
  }
}

}  // namespace heddle::simulation
