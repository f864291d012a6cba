#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <vector>

#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle {

using testing::affine;
using testing::AffineParameters;
using testing::column;
using testing::HostArray;

using DeviceStressTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceStressTest);

constexpr std::size_t count = 200;

/// Hands one array round between streams of two devices and the host, in random order, with one
/// event per step, and counts the steps on it.
void pass_round(Device& a, Device& b, unsigned seed, int steps) {
  std::mt19937 random(seed);
  const HostArray host(a, count, 0);
  const DeviceBuffer on_a(a, host.bytes());
  const DeviceBuffer on_b(b, host.bytes());
  std::vector<std::unique_ptr<Stream>> streams;
  for (Device* device : {&a, &a, &b, &b}) streams.push_back(device->create_stream());
  std::vector<std::unique_ptr<Event>> events;
  void* at = host.data();
  Device* owner = nullptr;
  for (int step = 0; step < steps; ++step) {
    Stream& stream = *streams[random() % streams.size()];
    Device& here = stream.device();
    if (!events.empty()) stream.wait(*events.back());
    std::byte* mine = &here == &a ? on_a.address() : on_b.address();
    if (owner != &here) stream.copy({mine, &here}, {at, owner}, host.bytes());
    const TileView tile = column(mine, count);
    stream.launch(affine, {&tile, 1}, KernelParameters(AffineParameters{1, 1}), nullptr);
    at = mine;
    owner = &here;
    if (random() % 3 == 0) {
      stream.copy({host.data(), nullptr}, {at, owner}, host.bytes());
      at = host.data();
      owner = nullptr;
    }
    events.push_back(here.create_event());
    stream.record(*events.back());
    if (random() % 8 == 0) events.back()->synchronize();
  }
  events.back()->synchronize();
  if (owner != nullptr) testing::download(*owner, host, static_cast<std::byte*>(at));
  EXPECT_EQ(host.values(), std::vector<double>(count, steps)) << "seed " << seed;
}

TEST_P(DeviceStressTest, many_threads_use_many_streams_and_events_at_once) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { pass_round(device(), other(), seed, 150); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DeviceStressTest, one_stream_takes_operations_from_many_threads) {
  const HostArray host(device(), count, 0);
  const DeviceBuffer buffer(device(), host.bytes());
  testing::upload(device(), buffer.address(), host);
  const auto stream = device().create_stream();
  const TileView tile = column(buffer.address(), count);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        stream->launch(affine, {&tile, 1}, KernelParameters(AffineParameters{1, 1}), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream->synchronize();
  testing::download(device(), host, buffer.address());
  EXPECT_EQ(host.values(), std::vector<double>(count, 300));
}

}  // namespace heddle
