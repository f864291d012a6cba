#include "node-runtime/transport/locked_scratch.hpp"

#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "node-runtime/device/devices.hpp"

namespace heddle {
namespace {

constexpr p2p::LaneId first{0};
constexpr p2p::LaneId second{1};
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

class LockedScratchTest : public ::testing::Test {
 protected:
  LockedScratchTest()
      : devices_(make_devices({DeviceBackend::emulated, 2, small(), {}})),
        lanes_{devices_.devices[0].get(), devices_.devices[1].get()} {}

  static EmulatedOptions small() {
    EmulatedOptions options;
    options.memory_bytes = mebibyte;
    return options;
  }

  DeviceSet devices_;
  std::array<Device*, 2> lanes_;
};

}  // namespace

TEST_F(LockedScratchTest, keeps_what_is_given_back_for_the_next_one) {
  LockedScratch scratch(lanes_);
  EXPECT_EQ(scratch.bytes(first), 0U) << "nothing is locked before it is needed";
  const std::byte* const address = scratch.take(first, 3 * mebibyte).get();
  EXPECT_EQ(scratch.bytes(first), 4 * mebibyte);
  EXPECT_EQ(scratch.take(first, 2 * mebibyte).get(), address);
  const LockedScratch::Piece much_less = scratch.take(first, 100);
  EXPECT_NE(much_less.get(), address) << "a piece is at most four times as large as asked for";
  EXPECT_EQ(scratch.bytes(first), 4 * mebibyte + 65536);
  EXPECT_EQ(scratch.bytes(second), 0U);
}

TEST_F(LockedScratchTest, gives_no_more_than_its_bound_of_each_device) {
  LockedScratch scratch(lanes_);
  EXPECT_EQ(scratch.take(first, LockedScratch::bytes_max + 1), nullptr);
  std::vector<LockedScratch::Piece> taken;
  for (int k = 0; k < 4; ++k) taken.push_back(scratch.take(first, LockedScratch::bytes_max / 4));
  for (const LockedScratch::Piece& one : taken) EXPECT_NE(one, nullptr);
  EXPECT_EQ(scratch.take(first, 1), nullptr) << "all of it is in use";
  EXPECT_EQ(scratch.bytes(first), LockedScratch::bytes_max);
  EXPECT_NE(scratch.take(second, LockedScratch::bytes_max), nullptr);
  taken.clear();
  EXPECT_NE(scratch.take(first, LockedScratch::bytes_max), nullptr)
      << "pieces of sizes that nobody asks for make room";
  EXPECT_EQ(scratch.bytes(first), LockedScratch::bytes_max);
}

TEST_F(LockedScratchTest, may_be_gone_when_a_piece_is_given_back) {
  LockedScratch::Piece piece;
  {
    LockedScratch scratch(lanes_);
    piece = scratch.take(first, 1);
  }
  piece.reset();
}

}  // namespace heddle
