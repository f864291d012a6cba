#include "node-runtime/threads/copy_lane.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using State = CopyFlight::State;

class CopyLaneTest : public ::testing::Test {
 protected:
  CopyLaneTest() {
    EmulatedOptions emulated;
    emulated.memory_bytes = std::uint64_t{1} << 20;
    set_ = make_devices({DeviceBackend::emulated, 1, emulated, {}});
    Device& device = *set_.devices[0];
    cache_ = std::make_unique<DeviceCache>(device, [&device](std::size_t bytes) {
      return std::make_shared<Backing>(HostRegion(bytes, "a test"), device);
    });
    lane_ = std::make_unique<CopyLane>(device, *cache_, nullptr);
  }
  [[nodiscard]] static protocol::CopyAction copy(std::int32_t priority) {
    protocol::CopyAction made;
    made.priority = priority;
    made.from_place = host_place;
    made.to_place = PlaceId{1};
    return made;
  }
  /// Posts a copy or a transfer; null: all flights are in use.
  CopyFlight* post(bool is_transfer, std::int64_t now_ns) {
    CopyFlight* const flight =
        is_transfer ? lane_->free_transfer_flight() : lane_->free_copy_flight();
    if (flight == nullptr) return nullptr;
    flight->is_transfer = is_transfer;
    lane_->mark_running(*flight, now_ns);
    EXPECT_TRUE(lane_->is_valid());
    return flight;
  }

  DeviceSet set_;
  std::unique_ptr<DeviceCache> cache_;
  std::unique_ptr<CopyLane> lane_;
};

}  // namespace

TEST_F(CopyLaneTest, takes_copies_by_priority) {
  EXPECT_FALSE(lane_->has_copies());
  for (const std::int32_t priority : {3, 9, 1, 9, 5}) {
    lane_->add(copy(priority));
    EXPECT_TRUE(lane_->is_valid());
  }
  std::vector<std::int32_t> taken;
  while (lane_->has_copies()) taken.push_back(lane_->take_copy().priority);
  EXPECT_EQ(taken, (std::vector<std::int32_t>{9, 9, 5, 3, 1}));
}

TEST_F(CopyLaneTest, takes_transfers_by_the_priority_of_their_blocks_then_in_order) {
  // The device holds none of the blocks, and each is asked for with a priority.
  const std::size_t bytes = cache_->bytes() / 4;
  const auto blocks = cache_->add_pool(std::vector<std::size_t>(4, bytes));
  const auto wanted = cache_->add_pool(std::vector<std::size_t>(4, bytes));
  const auto use_of = [](ResidentBlock block, std::int32_t priority) {
    return DeviceCache::Use{block, protocol::AccessMode::write, {}, priority};
  };
  for (const ResidentBlock block : blocks) {
    const DeviceCache::Use use = use_of(block, 1);
    ASSERT_TRUE(cache_->try_acquire({&use, 1}));
    cache_->release({&use, 1});
  }
  const std::vector<std::int32_t> priorities{2, 8, 8, 5};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const DeviceCache::Use use = use_of(wanted[i], priorities[i]);
    cache_->request({&use, 1}, DeviceCache::Requester::copies, this);
  }
  for (const DeviceCache::Transfer& transfer : cache_->take_transfers()) lane_->add(transfer);
  std::vector<ResidentBlock> taken;
  while (lane_->has_transfers()) {
    taken.push_back(lane_->take_transfer().block);
    // It is carried out at once: nothing changes the priorities of the others.
  }
  EXPECT_EQ(taken, (std::vector{blocks[1], blocks[2], blocks[3], blocks[0]}));
}

TEST_F(CopyLaneTest, has_flights_for_transfers_that_copies_do_not_take) {
  std::int64_t now_ns = 0;
  for (std::size_t i = 0; i < CopyLane::in_flight_max; ++i) {
    EXPECT_NE(post(false, ++now_ns), nullptr);
  }
  EXPECT_EQ(post(false, ++now_ns), nullptr);
  for (std::size_t i = 0; i < CopyLane::in_flight_max; ++i) {
    EXPECT_NE(post(true, ++now_ns), nullptr);
  }
  EXPECT_EQ(post(true, ++now_ns), nullptr);
  EXPECT_EQ(lane_->active(), 2 * CopyLane::in_flight_max);
}

TEST_F(CopyLaneTest, a_copy_that_waits_for_its_tiles_is_not_in_the_stream) {
  CopyFlight* const waiting = lane_->free_copy_flight();
  waiting->state = State::acquiring;
  EXPECT_EQ(lane_->oldest(), nullptr);
  EXPECT_FALSE(lane_->has_running());
  EXPECT_EQ(lane_->active(), 1U);
  CopyFlight* const other = post(false, 1);
  ASSERT_NE(other, waiting);
  lane_->mark_running(*waiting, 2);
  EXPECT_EQ(lane_->oldest(), other);
  EXPECT_TRUE(lane_->is_valid());
}

TEST_F(CopyLaneTest, flights_end_in_the_order_of_their_posting_whatever_slot_they_have) {
  std::int64_t now_ns = 0;
  std::int64_t free_ns = 0;
  for (const std::uint64_t seed : simulation::seeds(50)) {
    std::mt19937_64 random(seed);
    std::vector<CopyFlight*> posted;
    for (int step = 0; step < 100; ++step) {
      now_ns += 10;
      if (random() % 2 == 0) {
        if (CopyFlight* const flight = post(random() % 2 == 0, now_ns)) posted.push_back(flight);
      } else if (CopyFlight* const oldest = lane_->oldest()) {
        ASSERT_EQ(oldest, posted.front()) << simulation::replay_hint(seed);
        const std::int64_t start_ns = lane_->finish(*oldest, now_ns);
        ASSERT_EQ(start_ns, std::max(oldest->posted_ns, free_ns));
        free_ns = now_ns;
        posted.erase(posted.begin());
      }
      ASSERT_TRUE(lane_->is_valid()) << simulation::replay_hint(seed);
      ASSERT_EQ(lane_->active(), posted.size());
    }
    while (CopyFlight* const oldest = lane_->oldest()) lane_->finish(*oldest, now_ns);
    free_ns = now_ns;
  }
}

TEST_F(CopyLaneTest, acquires_ends_in_the_order_of_devices) {
  CopyFlight flight;
  flight.add_end({PlaceId{2}, {}});
  flight.order_ends();
  EXPECT_EQ(flight.ends[0].place, PlaceId{2});
  flight.add_end({PlaceId{1}, {}});
  flight.order_ends();
  EXPECT_EQ(flight.ends[0].place, PlaceId{1});
  EXPECT_EQ(flight.ends[1].place, PlaceId{2});
}

TEST_F(CopyLaneTest, keeps_a_relay_that_is_large_enough) {
  CopyFlight& flight = *lane_->free_copy_flight();
  std::byte* const relay = lane_->relay_of(flight, 1000);
  ASSERT_NE(relay, nullptr);
  EXPECT_EQ(lane_->relay_of(flight, 500), relay);
  EXPECT_NE(lane_->relay_of(flight, 100'000), nullptr);
  EXPECT_EQ(flight.relay_bytes, 100'000U);
}

TEST(CopyRoutes, lead_into_a_device_or_out_of_it_to_the_host) {
  const auto route = [](std::int32_t from, std::int32_t to) {
    protocol::CopyAction copy;
    copy.from_place = PlaceId{from};
    copy.to_place = PlaceId{to};
    return route_of(copy);
  };
  EXPECT_EQ(route(0, 2).device, PlaceId{2});
  EXPECT_TRUE(route(0, 2).is_in);
  EXPECT_EQ(route(2, 0).device, PlaceId{2});
  EXPECT_FALSE(route(2, 0).is_in);
  EXPECT_EQ(route(1, 2).device, PlaceId{2}) << "the destination's";
  EXPECT_TRUE(route(1, 2).is_in);
}

}  // namespace heddle
