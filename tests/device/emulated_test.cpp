#include <atomic>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle {

using testing::column;
using testing::error_of;
using testing::Gate;
using testing::HostArray;

namespace {

EmulatedOptions small() {
  EmulatedOptions options;
  options.memory_bytes = 8 << 20;
  return options;
}

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(EmulatedFaults, a_failed_copy_fails_its_stream_and_all_later_events_with_its_name) {
  EmulatedOptions options = small();
  options.faults.fail_copy = 2;
  EmulatedDevice device(3, options);
  const HostArray host(device, 100, 1);
  const DeviceBuffer a(device, host.bytes());
  const auto stream = device.create_stream();
  const auto before = device.create_event();
  const auto after = device.create_event();
  const auto later = device.create_event();
  std::int64_t info = -1;
  stream->copy({a.address(), &device}, {host.data(), nullptr}, host.bytes());
  stream->record(*before);
  stream->copy({host.data(), nullptr}, {a.address(), &device}, host.bytes());
  stream->record(*after);
  const TileView tile = column(a.address(), 100);
  stream->launch(testing::affine, {&tile, 1}, {}, &info);
  stream->record(*later);

  EXPECT_NO_THROW(before->synchronize());
  const std::string text = error_of([&] { after->synchronize(); });
  EXPECT_TRUE(has(text, "device 3") && has(text, "stream 1") && has(text, "operation 3") &&
              has(text, "copy of 800 B device to host") && has(text, "injected"))
      << text;
  EXPECT_EQ(error_of([&] { later->synchronize(); }), text);
  EXPECT_EQ(later->query(), EventState::failed);
  EXPECT_EQ(later->failure(), text);
  EXPECT_EQ(before->query(), EventState::done);
  EXPECT_EQ(info, -1);  // behind the failure nothing runs
  EXPECT_EQ(stream->failure(), text);
  EXPECT_EQ(error_of([&] { stream->synchronize(); }), text);
}

TEST(EmulatedFaults, a_failure_reaches_the_streams_that_wait_for_it_and_no_other) {
  EmulatedDevice device(0, small());
  EmulatedDevice other(1, small());
  const auto broken = device.create_stream();
  const auto waiting = other.create_stream();
  const auto apart = device.create_stream();
  const auto event = device.create_event();
  const auto reached = other.create_event();
  broken->launch(testing::broken, {}, {}, nullptr);
  broken->record(*event);
  waiting->wait(*event);
  waiting->record(*reached);
  const std::string text = error_of([&] { reached->synchronize(); });
  EXPECT_TRUE(has(text, "device 1, stream 1") && has(text, "wait for an event") &&
              has(text, "device 0, stream 1") && has(text, "kernel 'broken'") &&
              has(text, "it is broken"))
      << text;
  apart->synchronize();
  EXPECT_FALSE(apart->failure());
}

TEST(EmulatedFaults, a_byte_kernel_that_fails_is_named) {
  EmulatedDevice device(0, small());
  const auto stream = device.create_stream();
  stream->launch(testing::broken_bytes, {}, {});
  const std::string text = error_of([&] { stream->synchronize(); });
  EXPECT_TRUE(has(text, "kernel 'broken-bytes'") && has(text, "it is broken")) << text;
}

TEST(EmulatedFaults, a_new_event_in_the_place_of_a_failed_one_is_done) {
  EmulatedOptions options = small();
  options.event_capacity = 1;
  EmulatedDevice device(0, options);
  const auto broken = device.create_stream();
  {
    const auto event = device.create_event();
    broken->launch(testing::broken, {}, {}, nullptr);
    broken->record(*event);
    EXPECT_THROW(event->synchronize(), Error);
    EXPECT_TRUE(has(error_of([&] { (void)device.create_event(); }), "event_capacity"));
  }
  const auto fresh = device.create_event();
  EXPECT_EQ(fresh->query(), EventState::done);
  const auto sound = device.create_stream();
  sound->record(*fresh);
  EXPECT_NO_THROW(fresh->synchronize());
}

TEST(EmulatedFaults, allocation_fails_after_the_planned_bytes) {
  EmulatedOptions options = small();
  options.faults.allocation_bytes_max = 2 << 20;
  EmulatedDevice device(0, options);
  EXPECT_EQ(device.memory_available(), 2U << 20);
  const DeviceBuffer half(device, 1 << 20);
  EXPECT_TRUE(has(error_of([&] { (void)device.allocate((1 << 20) + 1); }), "out of memory"));
  const DeviceBuffer rest(device, 1 << 20);
  EXPECT_EQ(device.memory_available(), 0U);
}

TEST(EmulatedFaults, a_planned_kernel_fails_and_refused_peers_are_refused) {
  EmulatedOptions options = small();
  options.faults.fail_kernel = 1;
  options.faults.refuse_peers = true;
  EmulatedDevice device(0, options);
  EmulatedDevice other(1, small());
  EXPECT_FALSE(device.can_access_peer(other));
  EXPECT_FALSE(other.can_access_peer(device));
  const DeviceBuffer a(device, 256);
  const DeviceBuffer b(other, 256);
  const auto stream = device.create_stream();
  EXPECT_TRUE(has(error_of([&] {
                    stream->copy({b.address(), &other}, {a.address(), &device}, 8);
                  }),
                  "copy through the host"));
  stream->launch(testing::nothing, {}, {}, nullptr);
  EXPECT_TRUE(has(error_of([&] { stream->synchronize(); }), "kernel 'nothing'"));
}

TEST(EmulatedStreams, abandoning_ends_waits_that_would_never_end) {
  EmulatedDevice device(0, small());
  Gate gate;
  const auto held = device.create_stream();
  const auto stream = device.create_stream();
  const auto never = device.create_event();
  const auto after = device.create_event();
  gate.close(*held);
  held->record(*never);
  stream->wait(*never);
  stream->record(*after);
  EXPECT_EQ(after->query(), EventState::pending);
  stream->abandon("node 7 has gone");
  EXPECT_TRUE(has(error_of([&] { after->synchronize(); }), "node 7 has gone"));
  EXPECT_EQ(never->query(), EventState::pending);
  gate.open();
  held->synchronize();
}

TEST(EmulatedStreams, abandoning_ends_modelled_time_and_the_queue_for_kernels) {
  EmulatedOptions options = small();
  options.host_to_device_rate = 1;  // years
  options.concurrent_kernels = 1;
  EmulatedDevice device(0, options);
  const HostArray host(device, 1000);
  const DeviceBuffer a(device, host.bytes());
  Gate gate;
  const auto copying = device.create_stream();
  const auto holding = device.create_stream();
  const auto queued = device.create_stream(StreamPriority::high);
  copying->copy({a.address(), &device}, {host.data(), nullptr}, host.bytes());
  gate.close(*holding);
  gate.wait_until_running();
  queued->launch(testing::nothing, {}, {}, nullptr);
  copying->abandon("over");
  queued->abandon("over");
  EXPECT_THROW(copying->synchronize(), Error);
  EXPECT_TRUE(queued->failure());
  gate.open();
  holding->synchronize();
}

TEST(EmulatedStreams, an_exception_that_unwinds_drops_pending_work_and_is_what_arrives) {
  EmulatedDevice device(0, small());
  EmulatedDevice other(1, small());
  Gate gate;
  const auto held = other.create_stream();
  const auto never = other.create_event();
  gate.close(*held);
  held->record(*never);
  const std::string text = error_of([&] {
    const auto stream = device.create_stream();
    stream->wait(*never);
    throw Error(ErrorCode::communication, "the peer has gone");
  });
  EXPECT_EQ(text, "the peer has gone");
  gate.open();
  held->synchronize();
}

TEST(EmulatedStreams, a_full_queue_makes_the_caller_wait_and_loses_nothing) {
  EmulatedOptions options = small();
  options.queue_capacity = 3;
  EmulatedDevice device(0, options);
  const HostArray host(device, 10, 0);
  const DeviceBuffer a(device, host.bytes());
  testing::upload(device, a.address(), host);
  const auto stream = device.create_stream();
  const TileView tile = column(a.address(), 10);
  for (int i = 0; i < 500; ++i) {
    stream->launch(testing::affine, {&tile, 1}, KernelParameters(testing::AffineParameters{1, 1}),
                   nullptr);
  }
  stream->synchronize();
  testing::download(device, host, a.address());
  EXPECT_EQ(host[9], 500);
}

TEST(EmulatedStreams, streams_are_bounded) {
  EmulatedOptions options = small();
  options.stream_capacity = 2;
  EmulatedDevice device(0, options);
  const auto a = device.create_stream();
  {
    const auto b = device.create_stream();
    EXPECT_TRUE(has(error_of([&] { (void)device.create_stream(); }), "stream_capacity"));
  }
  const auto c = device.create_stream();
}

TEST(EmulatedStreamsDeathTest, destroying_pending_work_or_an_untold_failure_is_a_defect) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto destroy_pending = [] {
    EmulatedDevice device(0, small());
    Gate gate;
    auto stream = device.create_stream();
    gate.close(*stream);
    stream.reset();
  };
  EXPECT_DEATH(destroy_pending(), "1 unfinished operations");
  const auto destroy_failed = [] {
    EmulatedDevice device(0, small());
    auto stream = device.create_stream();
    auto marker = device.create_stream();
    const auto event = device.create_event();
    stream->record(*event);
    stream->launch(testing::broken, {}, {}, nullptr);
    // Let the failure happen without being told of it.
    for (int i = 0; i < 1000; ++i) marker->synchronize();
    stream.reset();
  };
  // Whether the broken kernel has run yet or not, nobody knows how it went.
  EXPECT_DEATH(destroy_failed(), "it is broken|unfinished operations");
}

TEST(EmulatedDeviceDeathTest, what_is_not_given_back_before_the_device_is_a_defect) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto keep_memory = [] {
    EmulatedDevice device(0, small());
    static_cast<void>(device.allocate(512));
    static_cast<void>(device.allocate_host(100));
  };
  EXPECT_DEATH(keep_memory(), "with 1 allocations .512 B., 0 opened mappings, 1 host allocations");
  const auto keep_registration = [] {
    EmulatedDevice device(0, small());
    std::vector<std::byte> memory(100);
    device.register_host(memory.data(), memory.size());
  };
  EXPECT_DEATH(keep_registration(), "and 1 pieces of registered host memory");
  const auto keep_stream = [] {
    auto device = std::make_unique<EmulatedDevice>(3, small());
    const auto stream = device->create_stream();
    device.reset();
  };
  EXPECT_DEATH(keep_stream(), "emulated device 3 is destroyed before 1 streams");
  const auto keep_event = [] {
    auto device = std::make_unique<EmulatedDevice>(0, small());
    const auto event = device->create_event();
    device.reset();
  };
  EXPECT_DEATH(keep_event(), "is destroyed before 1 events");
}

TEST(EmulatedFaults, an_exception_that_unwinds_leaves_memory_behind_without_a_complaint) {
  const std::string text = error_of([&] {
    EmulatedDevice device(0, small());
    static_cast<void>(device.allocate(512));
    static_cast<void>(device.allocate_host(100));
    throw Error(ErrorCode::communication, "the peer has gone");
  });
  EXPECT_EQ(text, "the peer has gone");
}

TEST(EmulatedModel, copies_of_one_direction_share_its_rate) {
  EmulatedOptions options = small();
  options.host_to_device_rate = 50e6;
  EmulatedDevice device(0, options);
  const HostArray host(device, 125'000);  // 1 MB: 20 ms
  const DeviceBuffer a(device, host.bytes());
  const DeviceBuffer b(device, host.bytes());
  const auto one = device.create_stream();
  const auto two = device.create_stream();
  const double seconds = seconds_of([&] {
    one->copy({a.address(), &device}, {host.data(), nullptr}, host.bytes());
    two->copy({b.address(), &device}, {host.data(), nullptr}, host.bytes());
    one->synchronize();
    two->synchronize();
  });
  EXPECT_GE(seconds, 0.040);
  EXPECT_GE(seconds_of([&] {
              one->copy({host.data(), nullptr}, {a.address(), &device}, host.bytes());
              one->synchronize();
            }),
            0.0);
}

TEST(EmulatedModel, latency_slow_copies_and_slow_kernels_take_their_time) {
  EmulatedOptions options = small();
  options.latency_us = 3000;
  options.faults.slow_copy = 2;
  options.faults.slow_copy_us = 30'000;
  EmulatedDevice device(0, options);
  const HostArray host(device, 10);
  const DeviceBuffer a(device, host.bytes());
  const auto stream = device.create_stream();
  const auto copy = [&] {
    stream->copy({a.address(), &device}, {host.data(), nullptr}, host.bytes());
    stream->synchronize();
  };
  EXPECT_GE(seconds_of(copy), 0.003);
  EXPECT_GE(seconds_of(copy), 0.033);
}

namespace {

struct Concurrency {
  std::atomic<int>* now_count;
  std::atomic<int>* most_count;
};

std::int64_t run_counted(const KernelArguments& a) {
  const Concurrency& c = a.parameters.as<Concurrency>();
  const int now = c.now_count->fetch_add(1, std::memory_order_relaxed) + 1;
  int most = c.most_count->load(std::memory_order_relaxed);
  while (most < now && !c.most_count->compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  volatile double sum = 0;
  for (int i = 0; i < 20'000; ++i) sum = sum + std::sqrt(static_cast<double>(i));
  c.now_count->fetch_sub(1, std::memory_order_relaxed);
  return 0;
}

constexpr Kernel counted{"counted", run_counted, run_counted};

}  // namespace

TEST(EmulatedModel, kernels_that_pretend_pass_one_after_the_other_and_write_nothing) {
  EmulatedOptions options = small();
  options.kernel_seconds = [](const Kernel&, const KernelArguments& arguments) {
    return 1e-5 * static_cast<double>(arguments.tiles[0].rows);
  };
  EmulatedDevice device(0, options);
  const HostArray host(device, 100, 1);
  const DeviceBuffer a(device, host.bytes());
  const TileView tile = column(a.address(), 100);
  constexpr int kernels = 20;
  const double seconds = seconds_of([&] {
    const auto first = device.create_stream();
    const auto second = device.create_stream();
    first->copy({a.address(), &device}, {host.data(), nullptr}, host.bytes());
    first->synchronize();
    std::int64_t info = 0;
    for (int k = 0; k < kernels; ++k) {
      (k % 2 == 0 ? first : second)->launch(testing::affine, {&tile, 1}, {}, &info);
    }
    first->synchronize();
    second->synchronize();
    EXPECT_EQ(info, 0);
    const HostArray after(device, 100, 2);
    first->copy({after.data(), nullptr}, {a.address(), &device}, after.bytes());
    first->synchronize();
    for (int i = 0; i < 100; ++i) ASSERT_EQ(after.data()[i], host.data()[i]);
  });
  EXPECT_GE(seconds, kernels * 1e-3);
}

TEST(EmulatedModel, no_more_kernels_run_at_once_than_the_device_can) {
  EmulatedOptions options = small();
  options.concurrent_kernels = 2;
  EmulatedDevice device(0, options);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::vector<std::unique_ptr<Stream>> streams;
  streams.reserve(5);
  for (int s = 0; s < 5; ++s) {
    streams.push_back(
        device.create_stream(s % 2 == 0 ? StreamPriority::normal : StreamPriority::high));
  }
  for (int i = 0; i < 40; ++i) {
    for (const auto& stream : streams) {
      stream->launch(counted, {}, KernelParameters(Concurrency{&now, &most}), nullptr);
    }
  }
  for (const auto& stream : streams) stream->synchronize();
  EXPECT_LE(most.load(), 2);
  EXPECT_GE(most.load(), 1);
}

namespace {

/// Appends its stream's letter to a text. One kernel at a time does.
struct Letter {
  std::string* text = nullptr;
  char letter = ' ';
};

std::int64_t run_append(const KernelArguments& a) {
  const auto p = a.parameters.as<Letter>();
  p.text->push_back(p.letter);
  return 0;
}

constexpr Kernel append{"append", run_append, run_append};

}  // namespace

TEST(EmulatedModel, kernels_of_a_high_priority_stream_go_first) {
  EmulatedOptions options = small();
  options.concurrent_kernels = 1;
  EmulatedDevice device(0, options);
  std::string order;
  const auto holding = device.create_stream();
  const auto normal = device.create_stream();
  const auto high = device.create_stream(StreamPriority::high);
  Gate gate;
  gate.close(*holding);
  gate.wait_until_running();
  for (int i = 0; i < 20; ++i) {
    normal->launch(append, {}, KernelParameters(Letter{&order, 'n'}), nullptr);
  }
  high->launch(append, {}, KernelParameters(Letter{&order, 'h'}), nullptr);
  // Priority means something once the high one stands in line.
  while (device.gate().waiting_high() == 0) std::this_thread::yield();
  gate.open();
  for (Stream* stream : {holding.get(), normal.get(), high.get()}) stream->synchronize();
  EXPECT_EQ(order, "h" + std::string(20, 'n'));
}

TEST(EmulatedModel, memory_that_nobody_wrote_reads_as_nan_on_request) {
  EmulatedOptions options = small();
  options.fill_allocations = true;
  EmulatedDevice device(0, options);
  const DeviceBuffer a(device, 800);
  const HostArray host(device, 100, 0);
  testing::download(device, host, a.address());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_TRUE(std::isnan(host[i]));
}

}  // namespace heddle
