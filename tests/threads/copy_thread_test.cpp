#include "node-runtime/threads/copy_thread.hpp"

#include <gtest/gtest.h>
#include <string>

#include "tests/threads/engine_on_devices.hpp"

namespace heddle {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the fixture and its kernels

/// A value that goes from the host to a device, to another one, and back to the host.
void expect_a_round(EngineOnDevices& on, std::uint64_t copies_expected) {
  const auto tiles = on.add_tiles({host_place, first_device, second_device, host_place});
  const auto job = on.start({{&test_set, {write(tiles[0])}},
                             {&test_next, {write(tiles[1]), read(tiles[0])}},
                             {&test_next, {write(tiles[2]), read(tiles[1])}},
                             {&test_next, {write(tiles[3]), read(tiles[2])}}});
  EXPECT_EQ(on.finish(*job).status, JobResult::Status::done);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    EXPECT_EQ(on.element(tiles[i]), static_cast<double>(i + 1));
  }
  const auto traffic = on.engine().counters().traffic();
  EXPECT_EQ(traffic.copies, copies_expected);
  EXPECT_EQ(traffic.bytes_copied, copies_expected * EngineOnDevices::tile_bytes);
  EXPECT_EQ(on.copies().active(), 0U);
}

}  // namespace

TEST(CopyThread, copies_tiles_between_the_host_and_devices_that_reach_each_other) {
  EngineOnDevices on(2);
  expect_a_round(on, 3);
}

TEST(CopyThread, copies_through_the_host_between_devices_without_peer_access) {
  EmulatedOptions emulated;
  emulated.faults.refuse_peers = true;
  // Streams that drift against each other show a relay that is read before it is written.
  emulated.faults.delay_us_max = 300;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    emulated.faults.seed = seed;
    EngineOnDevices on(2, emulated);
    expect_a_round(on, 3);
  }
}

TEST(CopyThread, copies_several_tiles_each_way_at_once_without_peer_access) {
  constexpr int count = 9;
  EmulatedOptions emulated;
  emulated.faults.refuse_peers = true;
  emulated.faults.delay_us_max = 100;
  EngineOnDevices on(2, emulated);
  std::vector<PlaceId> places(count, first_device);
  places.insert(places.end(), count, second_device);
  const auto tiles = on.add_tiles(places);
  const auto targets = on.add_tiles(places);
  std::vector<TestTask> tasks;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    tasks.push_back({&test_set, {write(tiles[i])}});
    for (std::size_t k = 0; k < i % count; ++k)
      tasks.push_back({&test_add, {read_write(tiles[i])}});
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    tasks.push_back({&test_next, {write(targets[i]), read(tiles[(i + count) % tiles.size()])}});
  }
  const auto job = on.start(tasks);
  EXPECT_EQ(on.finish(*job).status, JobResult::Status::done);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ(on.element(targets[i]), static_cast<double>(i % count + 2)) << i;
  }
  EXPECT_TRUE(on.store().is_valid());
}

TEST(CopyThread, says_which_copy_failed) {
  EmulatedOptions emulated;
  emulated.faults.fail_copy = 1;
  EngineOnDevices on(1, emulated);
  const auto tiles = on.add_tiles({host_place, first_device});
  static_cast<void>(
      on.start({{&test_set, {write(tiles[0])}}, {&test_next, {write(tiles[1]), read(tiles[0])}}}));
  try {
    static_cast<void>(on.turn_until([] { return false; }));
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("copy"), std::string::npos) << error.what();
    on.engine().fail(error);
  }
}

TEST(CopyThread, ends_with_copies_in_flight_when_the_node_has_failed) {
  EmulatedOptions emulated;
  emulated.faults.slow_copy = 1;
  emulated.faults.slow_copy_us = 50'000;
  EngineOnDevices on(1, emulated);
  const auto tiles = on.add_tiles({host_place, first_device});
  static_cast<void>(
      on.start({{&test_set, {write(tiles[0])}}, {&test_next, {write(tiles[1]), read(tiles[0])}}}));
  ASSERT_TRUE(on.turn_until([&] { return on.copies().active() > 0; }));
  on.engine().fail(Error(ErrorCode::internal, "for a test"));
  on.engine().stop();
  on.copies().run();
  EXPECT_EQ(on.copies().active(), 0U) << "what the stream has begun it finishes";
}

}  // namespace heddle
