#include <gtest/gtest.h>
#include <string>

#include "tests/support/script.hpp"

/// The text for a run in which nothing advances: which task, and what it waits for. See script.hpp
/// for the words.
namespace heddle::simulation {
namespace {

bool tells(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Blockage, names_the_missing_inputs_of_the_oldest_task) {
  Script s({.nodes = 2, .places = 2, .blocks = 1, .minimum = 1});
  const auto a = s.tile("a", 0, 0);
  const auto x = s.tile("x", 0, 1);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  s.append_at(0, "T", {s.write(a), s.read(b), s.read(c), s.read(x)});
  const std::string text = s.blockage(0);
  EXPECT_TRUE(tells(text, "job 0: 1 unfinished, the oldest is number 1")) << text;
  EXPECT_TRUE(tells(text, "a task at place 0 that misses inputs or blocks")) << text;
  EXPECT_TRUE(tells(text, "tile 2 of matrix 0 (native input): expected from node 1, granted"))
      << text;
  EXPECT_TRUE(tells(text, "expected from node 1, no block to receive it")) << text;
  EXPECT_TRUE(tells(text, "no block to copy it to")) << text;
  EXPECT_TRUE(tells(text, "2 wait for a block of place 0 (0 of 1 free)")) << text;
}

TEST(Blockage, tells_how_far_a_copy_is) {
  Script s({.nodes = 1, .places = 2});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 0, 0);
  const auto d = s.tile("d", 0, 1);
  s.append("B", {s.write(b)});
  s.append("A", {s.write(a)});
  s.append("D", {s.write(d), s.read(a), s.read(b)});
  s.carry_out(0, "run B");
  s.carry_out(0, "run A");
  EXPECT_TRUE(tells(s.blockage(0), "(intranode alien input): being copied")) << s.blockage(0);
  s.carry_out(0, "copy a.1 0>1");
  EXPECT_TRUE(tells(s.blockage(0), "(intranode alien input): there")) << s.blockage(0);
}

TEST(Blockage, tells_that_a_task_waits_for_readers_or_for_the_writer) {
  Script s({.nodes = 2, .places = 2, .blocks = 1, .minimum = 1});
  const auto a = s.tile("a", 1, 0);
  const auto b = s.tile("b", 0, 0);
  const auto c = s.tile("c", 1, 0);
  const auto d = s.tile("d", 1, 1);
  s.append("B", {s.write(b), s.read(a)});
  s.append("A", {s.write(a)});
  s.append("C", {s.write(c), s.read(a)});
  s.append("D", {s.write(d), s.read(a)});
  EXPECT_TRUE(tells(s.blockage(1),
                    "versions still to be sent: 1, the first is tile 0 of matrix 0 version 0 to "
                    "node 0 (data present, not granted by its receiver)"))
      << s.blockage(1);
  s.carry_out(0, "grant a.0 from 1");
  EXPECT_TRUE(tells(s.blockage(1), "(data present, granted)")) << s.blockage(1);
  s.carry_out(1, "send a.0 to 0");
  s.carry_out(1, "sent a.0 to 0");
  s.carry_out(1, "run A");
  s.carry_out(1, "run C");
  EXPECT_TRUE(tells(s.blockage(1), "being copied")) << s.blockage(1);
}

TEST(Blockage, tells_of_minor_outputs_on_their_way) {
  Script s({.nodes = 2, .places = 2, .blocks = 1, .minimum = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  const auto d = s.tile("d", 0, 1);
  s.append("R", {s.write(c), s.read(b)});
  s.append("T", {s.write(a), s.write(b)});
  s.append("U", {s.read_write(a), s.write(d)});
  EXPECT_TRUE(tells(s.blockage(0), "is ready or running")) << s.blockage(0);
  EXPECT_TRUE(tells(s.blockage(0), "(internode source minor output): output, block held"))
      << s.blockage(0);
  s.carry_out(0, "run T");
  EXPECT_TRUE(tells(s.blockage(0), "has run and waits for its minor outputs to leave"))
      << s.blockage(0);
  s.carry_out(1, "run R");
  EXPECT_TRUE(tells(s.blockage(1),
                    "a minor output expected from node 0: tile 1 of matrix 0 "
                    "version 1 (not arrived)"))
      << s.blockage(1);
  s.carry_out(1, "grant b.1 from 0");
  s.carry_out(0, "send b.1 to 1");
  s.carry_out(0, "sent b.1 to 1");
  EXPECT_EQ(s.pending(0), Lines{"run U"});
}

TEST(Blockage, of_a_task_that_has_run_names_the_minor_outputs_that_are_left) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  s.append("T", {s.write(a), s.read(c), s.read_write(b)});
  s.release(c);
  for (const char* tile : {"b.0", "c.0"}) {
    s.carry_out(0, std::string("grant ") + tile + " from 1");
    s.carry_out(1, std::string("send ") + tile + " to 0");
  }
  s.carry_out(0, "run T");  // c is given up; the record is not there any more
  EXPECT_TRUE(tells(s.blockage(0),
                    "minor outputs to leave; tile 1 of matrix 0 (internode source "
                    "minor output): output, block held"))
      << s.blockage(0);
}

TEST(Blockage, is_that_of_the_oldest_job_that_later_ones_wait_for) {
  Script s({.nodes = 2, .places = 1});
  const auto a = s.tile("a", 0, 0);
  const auto b = s.tile("b", 1, 0);
  const auto c = s.tile("c", 1, 0);
  s.append("R", {s.write(c), s.read(b)});
  s.end();
  s.begin_job();
  s.append("T", {s.write(a), s.write(b)});
  EXPECT_TRUE(tells(s.blockage(1), "job 0: 1 unfinished")) << s.blockage(1);  // the oldest job
  EXPECT_EQ(s.pending(1), Lines{"run R"});
  s.end();
  s.carry_out_all();
  EXPECT_TRUE(s.drained());
}

}  // namespace
}  // namespace heddle::simulation
