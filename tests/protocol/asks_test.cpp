#include <gtest/gtest.h>
#include <vector>

#include "tests/support/script.hpp"

/// A pool with fewer blocks than there are requests: versions that are available come first. See
/// script.hpp for the words.
namespace heddle::simulation {
namespace {

/// Node 0 has one block beyond its minimum, which the arrival of b holds; the task that writes x
/// does not end before "run old".
class AskTest : public testing::Test {
 protected:
  AskTest() {
    for (const char* name : {"x", "y", "z"}) mine_.push_back(s.tile(name, 0, 0));
    b = s.tile("b", 1, 0);
    c = s.tile("c", 1, 0);
    d = s.tile("d", 1, 0);
  }
  /// Appends the oldest item, and the reader of b, which takes the block.
  void begin() {
    s.append("old", {s.write(mine_[0])});
    s.append("B", {s.write(mine_[1]), s.read(b)});
  }
  [[nodiscard]] auto y() { return s.read_write(mine_[1]); }
  [[nodiscard]] auto z() { return s.write(mine_[2]); }
  /// B has run, and b is not read any more.
  void give_back() {
    s.carry_out(0, "grant b.0 from 1");
    s.carry_out(1, "send b.0 to 0");
    s.carry_out(0, "run B");
    s.release(b);
  }
  void finish() {
    s.end();
    s.carry_out_all();
    EXPECT_TRUE(s.drained());
  }

  Script s{{.nodes = 2, .places = 1, .blocks = 2, .minimum = 1, .asks = true}};
  protocol::TileId b;
  protocol::TileId c;
  protocol::TileId d;

 private:
  std::vector<protocol::TileId> mine_;
};

}  // namespace

TEST_F(AskTest, available_version_comes_before_one_that_may_not_even_be_begun) {
  begin();
  s.append("C", {y(), s.read(c)});
  s.append("D", {z(), s.read(d)});
  EXPECT_EQ(s.pending(0), (Lines{"ask c.0 of 1", "ask d.0 of 1", "grant b.0 from 1", "run old"}));
  s.carry_out(0, "ask d.0 of 1");
  EXPECT_EQ(s.pending(1), Lines{"offer d.0 to 0"});
  s.carry_out(1, "offer d.0 to 0");
  give_back();
  EXPECT_EQ(s.pending(0), (Lines{"ask c.0 of 1", "grant d.0 from 1", "run old"}));
  finish();
}

TEST_F(AskTest, available_version_waits_until_all_other_inputs_of_its_reader_are_available) {
  begin();
  s.append("C", {z(), s.read(c)});
  s.append("D", {y(), s.read(d)});  // behind B
  for (const char* ask : {"ask c.0 of 1", "ask d.0 of 1"}) s.carry_out(0, ask);
  s.carry_out(1, "offer d.0 to 0");
  EXPECT_EQ(s.job(0).pools[host_place].waiting(protocol::BlockRequest::Use::fetch),
            0U);  // none is to be fetched
  s.carry_out(1, "offer c.0 to 0");
  EXPECT_EQ(s.job(0).pools[host_place].waiting(protocol::BlockRequest::Use::fetch), 1U);
  s.carry_out(0, "grant b.0 from 1");
  s.carry_out(1, "send b.0 to 0");
  s.carry_out(0, "run B");
  EXPECT_EQ(s.job(0).pools[host_place].waiting(protocol::BlockRequest::Use::fetch), 2U);
  s.release(b);
  EXPECT_EQ(s.pending(0), (Lines{"grant c.0 from 1", "run old"}));  // the first in the program
  finish();
}

TEST_F(AskTest, version_that_was_asked_for_is_offered_when_it_is_written) {
  begin();
  s.append_at(0, "W", {s.write(c)});
  s.append_at(0, "C", {z(), s.read(c)});
  s.carry_out(0, "ask c.1 of 1");  // before node 1 has generated either
  s.append_at(1, "W", {s.write(c)});
  s.append_at(1, "C", {z(), s.read(c)});
  EXPECT_EQ(s.pending(1), Lines{"run W"});
  s.carry_out(1, "run W");
  EXPECT_EQ(s.pending(1), Lines{"offer c.1 to 0"});
  finish();
}

TEST_F(AskTest, grant_may_overtake_its_ask_and_the_data_an_offer) {
  begin();
  s.append("C", {y(), s.read(c)});
  s.append("D", {z(), s.read(d)});
  s.carry_out(0, "ask d.0 of 1");
  give_back();
  EXPECT_EQ(s.pending(0), (Lines{"ask c.0 of 1", "grant c.0 from 1", "run old"}));
  s.carry_out(0, "grant c.0 from 1");
  s.carry_out(1, "send c.0 to 0");
  s.carry_out(0, "ask c.0 of 1");  // nothing is left to offer
  s.carry_out(0, "run C");
  s.release(c);
  s.carry_out(0, "grant d.0 from 1");
  s.carry_out(1, "send d.0 to 0");
  s.carry_out(0, "run D");
  s.release(d);
  EXPECT_TRUE(s.protocol(0).is_valid());
  s.carry_out(1, "offer d.0 to 0");  // the record of its arrival is gone
  EXPECT_EQ(s.pending(0), Lines{"run old"});
  finish();
}

}  // namespace heddle::simulation
