#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/device/emulated/turns.hpp"
#include "tests/device/device_fixture.hpp"

/// Emulated devices of several nodes that count as one GPU, and the links between those of a host.
namespace heddle {
namespace {

using namespace std::chrono_literals;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

EmulatedOptions small() {
  EmulatedOptions options;
  options.memory_bytes = 8 << 20;
  return options;
}

/// The devices of nodes of one host, `sharers` on each GPU.
class Host {
 public:
  Host(std::int32_t nodes, std::int32_t sharers, const EmulatedOptions& options) {
    std::vector<EmulatedPresence> all;
    for (std::int32_t n = 0; n < nodes; ++n) {
      devices_.push_back(std::make_unique<EmulatedDevice>(0, options));
      all.push_back(devices_.back()->presence(n / sharers));
    }
    const auto host = std::make_shared<const HostGpus>(all, options.places);
    for (std::int32_t n = 0; n < nodes; ++n) {
      devices_[static_cast<std::size_t>(n)]->join(host, n / sharers, n % sharers);
    }
  }
  [[nodiscard]] EmulatedDevice& operator[](std::size_t n) { return *devices_[n]; }

 private:
  std::vector<std::unique_ptr<EmulatedDevice>> devices_;
};

constexpr std::size_t megabyte = 1'000'000;

/// A buffer and a stream on a device, and another buffer for what comes.
struct Place {
  explicit Place(EmulatedDevice& on)
      : device(on), from(on, megabyte), to(on, megabyte), stream(on.create_stream()) {}
  void copy_to(Place& other) {
    stream->copy({other.to.address(), &other.device}, {from.address(), &device}, megabyte);
  }
  EmulatedDevice& device;
  DeviceBuffer from;
  DeviceBuffer to;
  std::unique_ptr<Stream> stream;
};

}  // namespace

TEST(SharedGpu, devices_of_one_gpu_have_its_identity_and_place) {
  EmulatedOptions options = small();
  options.places = {.devices_per_switch = 2, .switches_per_socket = 1};
  Host host(6, 2, options);
  EXPECT_EQ(host[0].info().uuid, host[1].info().uuid);
  EXPECT_FALSE(host[1].info().uuid == host[2].info().uuid);
  ASSERT_TRUE(host[5].info().declared.has_value());
  EXPECT_EQ(host[3].info().declared->pci_switch, 0);
  EXPECT_EQ(host[5].info().declared->pci_switch, 1);
  EXPECT_EQ(host[5].info().declared->socket, 1);
}

TEST(SharedGpu, another_nodes_work_costs_a_turn_and_the_same_nodes_none) {
  EmulatedOptions options = small();
  options.turn_us = 20'000;
  Host host(2, 2, options);
  Place a(host[0]);
  Place b(host[1]);
  const auto work = [](Place& of) {
    of.stream->copy({of.to.address(), &of.device}, {of.from.address(), &of.device}, 1000);
    of.stream->synchronize();
  };
  work(a);
  EXPECT_GE(seconds_of([&] { work(b); }), 0.020);
  EXPECT_GE(seconds_of([&] { work(a); }), 0.020);
  EXPECT_LT(seconds_of([&] {
              for (int i = 0; i < 100; ++i) work(a);
            }),
            100 * 0.020);
}

TEST(SharedGpu, nodes_that_always_have_work_take_turns) {
  EmulatedOptions options = small();
  options.turn_us = 10;
  Host host(2, 2, options);
  std::atomic<bool> is_over{false};
  std::array<std::atomic<int>, 2> done{};
  const auto work = [&](std::size_t n) {
    Place place(host[n]);
    while (!is_over.load(std::memory_order_acquire)) {
      // Two at a time: the device is never without this node's work.
      for (int i = 0; i < 2; ++i) {
        place.stream->copy({place.to.address(), &place.device},
                           {place.from.address(), &place.device}, megabyte);
      }
      place.stream->synchronize();
      done.at(n).fetch_add(1, std::memory_order_acq_rel);
    }
  };
  std::thread one(work, 0);
  std::thread two(work, 1);
  while (done[0].load(std::memory_order_acquire) < 20 ||
         done[1].load(std::memory_order_acquire) < 20) {
    std::this_thread::yield();
  }
  is_over.store(true, std::memory_order_release);
  one.join();
  two.join();
}

TEST(SharedGpu, a_turn_whose_process_is_gone_is_taken_over) {
  SharedArena arena(1 << 20, 1, "turns");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EmulatedTurns turns(arena.gpu(), 0, 1);
    ::_exit(turns.enter([] { return false; }) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_NE(arena.gpu().turn.load(std::memory_order_acquire), 0U) << "the test shows nothing";
  EmulatedTurns turns(arena.gpu(), 1, 1);
  EXPECT_TRUE(turns.enter([] { return false; }));
  turns.leave();
}

TEST(SharedGpu, who_waits_for_a_turn_can_be_interrupted) {
  SharedArena arena(1 << 20, 1, "turns");
  EmulatedTurns one(arena.gpu(), 0, 1);
  EmulatedTurns two(arena.gpu(), 1, 1);
  ASSERT_TRUE(one.enter([] { return false; }));
  int looks = 0;
  EXPECT_FALSE(two.enter([&] { return ++looks > 2; }));
  one.leave();
  EXPECT_TRUE(two.enter([] { return false; }));
  two.leave();
  EXPECT_EQ(arena.gpu().waiting.load(std::memory_order_relaxed), 0U);
}

TEST(SharedGpu, copies_from_one_device_share_its_lane_and_others_do_not) {
  EmulatedOptions options = small();
  options.peer_rate = 50e6;  // 1 MB: 20 ms
  Host host(4, 1, options);
  std::vector<std::unique_ptr<Place>> at;
  for (std::size_t n = 0; n < 4; ++n) at.push_back(std::make_unique<Place>(host[n]));
  const auto end = [&] {
    for (const auto& one : at) one->stream->synchronize();
  };
  // Another stream of device 0 would do the same: both leave by its lane.
  const auto other = host[0].create_stream();
  EXPECT_GE(seconds_of([&] {
              at[0]->copy_to(*at[1]);
              other->copy({at[2]->to.address(), &at[2]->device},
                          {at[0]->from.address(), &at[0]->device}, megabyte);
              other->synchronize();
              end();
            }),
            0.040);
  EXPECT_GE(seconds_of([&] {
              at[0]->copy_to(*at[2]);
              at[1]->stream->copy({at[2]->from.address(), &at[2]->device},
                                  {at[1]->from.address(), &at[1]->device}, megabyte / 2);
              end();
            }),
            0.030)
      << "both arrive by one lane";
}

TEST(SharedGpu, copies_between_switches_share_what_the_switches_share) {
  EmulatedOptions options = small();
  options.peer_rate = 1e9;
  options.switch_rate = 50e6;
  options.places.devices_per_switch = 2;
  Host host(4, 1, options);
  std::vector<std::unique_ptr<Place>> at;
  for (std::size_t n = 0; n < 4; ++n) at.push_back(std::make_unique<Place>(host[n]));
  EXPECT_GE(seconds_of([&] {
              at[0]->copy_to(*at[2]);
              at[1]->copy_to(*at[3]);
              at[0]->stream->synchronize();
              at[1]->stream->synchronize();
            }),
            0.040);
}

TEST(SharedGpu, kernels_that_reach_other_devices_pass_their_links) {
  EmulatedOptions options = small();
  options.peer_rate = 50e6;
  Host host(2, 1, options);
  Place a(host[0]);
  Place b(host[1]);
  static const ByteKernel nothing{"nothing", [](const ByteParameters&) {}, nullptr};
  for (const bool is_written : {false, true}) {
    const std::array memory{KernelMemory{b.to.address(), megabyte, &host[1], is_written},
                            KernelMemory{a.to.address(), megabyte, &host[0], !is_written}};
    EXPECT_GE(seconds_of([&] {
                a.stream->launch(nothing, ByteParameters(0), memory);
                a.stream->synchronize();
              }),
              0.020);
  }
}

}  // namespace heddle
