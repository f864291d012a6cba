#include "node-runtime/protocol/grant_table.hpp"

#include <gtest/gtest.h>

#include "node-runtime/protocol/records.hpp"

namespace heddle::protocol {
namespace {

class GrantTableTest : public testing::Test {
 protected:
  GrantTableTest() {
    for (Send* const send : {&send_, &later_}) {
      send->tile = key_.version.tile;
      send->number = key_.version.number;
      send->to = key_.peer;
    }
  }
  ~GrantTableTest() override { EXPECT_TRUE(grants_.is_valid()); }
  void post() {
    send_.posted = true;
    grants_.posted(key_);
    EXPECT_TRUE(grants_.is_valid());
  }

  MessageKey key_{{JobId{3}, {MatrixId{1}, 5}, Version{2}}, NodeId{4}};
  Send send_;
  Send later_;  ///< another one with the same name
  GrantTable grants_;
};

}  // namespace

TEST_F(GrantTableTest, grant_goes_to_the_send_in_either_order) {
  EXPECT_EQ(grants_.grant(key_, 17, false), nullptr);
  EXPECT_TRUE(grants_.is_valid());
  grants_.add(key_, send_);
  EXPECT_TRUE(grants_.is_valid());
  EXPECT_TRUE(send_.granted);
  EXPECT_EQ(send_.tag, 17U);
  post();
  grants_.check_all_posted();

  grants_.add(key_, later_);
  EXPECT_FALSE(later_.granted);  // the first entry is gone
  EXPECT_EQ(grants_.grant(key_, 18, false), &later_);
  EXPECT_EQ(later_.tag, 18U);
  EXPECT_TRUE(grants_.is_valid());
}

TEST_F(GrantTableTest, ask_is_kept_for_a_send_that_comes_later) {
  EXPECT_EQ(grants_.ask(key_), nullptr);
  grants_.add(key_, send_);
  EXPECT_TRUE(send_.asked);
  EXPECT_FALSE(send_.granted);
  EXPECT_EQ(grants_.grant(key_, 1, true), &send_);
  EXPECT_TRUE(grants_.is_valid());
  post();
  grants_.check_all_posted();
}

TEST_F(GrantTableTest, ask_that_its_grant_overtook_is_dropped) {
  grants_.add(key_, send_);
  EXPECT_EQ(grants_.grant(key_, 1, true), &send_);
  EXPECT_EQ(grants_.ask(key_), nullptr);
  EXPECT_TRUE(grants_.is_valid());
  post();
}

TEST_F(GrantTableTest, ask_that_comes_after_the_data_was_sent_is_dropped) {
  grants_.add(key_, send_);
  EXPECT_EQ(grants_.grant(key_, 1, true), &send_);
  post();
  grants_.check_all_posted();
  EXPECT_EQ(grants_.ask(key_), nullptr);
  EXPECT_TRUE(grants_.is_valid());
  grants_.add(key_, later_);
  EXPECT_FALSE(later_.asked);  // nothing is left of the first
}

TEST_F(GrantTableTest, granted_version_that_is_never_sent_is_a_defect) {
  EXPECT_EQ(grants_.grant(key_, 1, false), nullptr);
  EXPECT_DEATH(grants_.check_all_posted(), "granted by node 4 and never sent");
}

}  // namespace heddle::protocol
