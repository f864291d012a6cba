#include <chrono>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle {

using testing::affine;
using testing::AffineParameters;
using testing::column;
using testing::error_of;
using testing::Gate;
using testing::HostArray;

using DeviceEventTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceEventTest);

TEST_P(DeviceEventTest, an_event_that_was_never_recorded_is_done) {
  const auto event = device().create_event();
  EXPECT_EQ(event->query(), EventState::done);
  event->synchronize();
  const auto stream = device().create_stream();
  stream->wait(*event);
  stream->synchronize();
}

TEST_P(DeviceEventTest, an_event_is_pending_until_what_is_before_it_has_finished) {
  Gate gate;
  const auto stream = device().create_stream();
  const auto event = device().create_event();
  gate.close(*stream);
  stream->record(*event);
  EXPECT_EQ(event->query(), EventState::pending);
  gate.open();
  event->synchronize();
  EXPECT_EQ(event->query(), EventState::done);
}

TEST_P(DeviceEventTest, an_event_says_when_it_completed_however_late_it_is_asked) {
  Gate gate;
  const auto stream = device().create_stream();
  const auto first = device().create_event();
  const auto second = device().create_event();
  gate.close(*stream);
  stream->record(*first);
  const std::int64_t before = now_ns();
  gate.open();
  stream->record(*second);
  second->synchronize();
  const std::int64_t after = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  // A GPU's clock is known as well as one event tells when it was recorded.
  const std::int64_t error_ns = GetParam().backend == DeviceBackend::cuda ? 20'000 : 0;
  EXPECT_LE(before, first->completed_ns() + error_ns);
  EXPECT_LE(first->completed_ns(), second->completed_ns());
  EXPECT_LE(second->completed_ns(), after + error_ns);
}

TEST_P(DeviceEventTest, without_timing_it_knows_its_end_but_not_the_time) {
  const auto stream = device().create_stream();
  const auto event = device().create_event(EventTiming::off);
  Gate gate;
  gate.close(*stream);
  stream->record(*event);
  EXPECT_EQ(event->query(), EventState::pending);
  gate.open();
  event->synchronize();
  EXPECT_EQ(event->query(), EventState::done);
  EXPECT_DEATH(static_cast<void>(event->completed_ns()), "without timing");
}

TEST_P(DeviceEventTest, a_stream_that_does_not_wait_sees_the_old_data) {
  if (GetParam().emulated.concurrent_kernels == 1) GTEST_SKIP() << "needs a kernel beside another";
  const HostArray fresh(device(), 1000, 2);
  const HostArray out(device(), 1000);
  const DeviceBuffer a(device(), fresh.bytes());
  testing::upload(device(), a.address(), HostArray(device(), 1000, 1));
  Gate gate;
  const auto writer = device().create_stream();
  const auto reader = device().create_stream();
  const auto written = device().create_event();
  gate.close(*writer);
  writer->copy({a.address(), &device()}, {fresh.data(), nullptr}, fresh.bytes());
  writer->record(*written);

  reader->copy({out.data(), nullptr}, {a.address(), &device()}, out.bytes());
  reader->synchronize();
  EXPECT_EQ(out[999], 1);

  reader->wait(*written);
  reader->copy({out.data(), nullptr}, {a.address(), &device()}, out.bytes());
  gate.open();
  reader->synchronize();
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[999], 2);
}

TEST_P(DeviceEventTest, a_copy_reads_its_source_when_it_runs) {
  const HostArray in(device(), 10, 1);
  const HostArray out(device(), 10);
  const DeviceBuffer a(device(), in.bytes());
  Gate gate;
  const auto stream = device().create_stream();
  gate.close(*stream);
  if (GetParam().emulated.queue_capacity > 2) {
    stream->copy({a.address(), &device()}, {in.data(), nullptr}, in.bytes());
    in.fill(2);  // too early: the copy has not been waited for
    gate.open();
  } else {
    in.fill(2);
    gate.open();
    stream->copy({a.address(), &device()}, {in.data(), nullptr}, in.bytes());
  }
  stream->copy({out.data(), nullptr}, {a.address(), &device()}, in.bytes());
  stream->synchronize();
  EXPECT_EQ(out.values(), std::vector<double>(10, 2));
}

TEST_P(DeviceEventTest, events_order_a_chain_through_many_streams_of_two_devices) {
  constexpr int length = 60;
  const HostArray value(device(), 100, 0);
  const DeviceBuffer a(device(), value.bytes());
  const DeviceBuffer b(other(), value.bytes());
  testing::upload(device(), a.address(), value);
  std::vector<std::unique_ptr<Stream>> streams;
  streams.reserve(6);
  for (int i = 0; i < 3; ++i) streams.push_back(device().create_stream());
  for (int i = 0; i < 3; ++i) streams.push_back(other().create_stream());
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < length; ++i) {
    Stream& stream = *streams[static_cast<std::size_t>(i * 5 % 6)];
    Device& here = stream.device();
    if (!events.empty()) stream.wait(*events.back());
    std::byte* mine = &here == &device() ? a.address() : b.address();
    if (i > 0) {  // fetch from where the step before left it
      Stream& before = *streams[static_cast<std::size_t>((i - 1) * 5 % 6)];
      if (&before.device() != &here) {
        std::byte* theirs = &here == &device() ? b.address() : a.address();
        stream.copy({mine, &here}, {theirs, &before.device()}, value.bytes());
      }
    }
    const TileView tile = column(mine, value.size());
    stream.launch(affine, {&tile, 1}, KernelParameters(AffineParameters{1, 1}), nullptr);
    events.push_back(here.create_event());
    stream.record(*events.back());
  }
  events.back()->synchronize();
  Stream& last = *streams[(length - 1) * 5 % 6];
  testing::download(last.device(), value, &last.device() == &device() ? a.address() : b.address());
  EXPECT_EQ(value.values(), std::vector<double>(100, length));
}

TEST_P(DeviceEventTest, a_recorded_event_can_be_recorded_again_and_speaks_of_the_last_record) {
  const auto stream = device().create_stream();
  const auto event = device().create_event();
  stream->record(*event);
  event->synchronize();
  Gate gate;
  gate.close(*stream);
  stream->record(*event);
  EXPECT_EQ(event->query(), EventState::pending);
  gate.open();
  event->synchronize();
  EXPECT_EQ(event->query(), EventState::done);
}

TEST_P(DeviceEventTest, a_wait_is_for_the_record_at_the_time_of_the_call) {
  const auto stream = device().create_stream();
  const auto waiter = device().create_stream();
  const auto event = device().create_event();
  const auto passed = device().create_event();
  stream->record(*event);
  waiter->wait(*event);
  Gate gate;
  gate.close(*stream);
  stream->record(*event);
  waiter->record(*passed);
  passed->synchronize();  // would not return if the wait were for the second record
  EXPECT_EQ(event->query(), EventState::pending);
  gate.open();
  event->synchronize();
}

TEST_P(DeviceEventTest, another_stream_may_record_an_event_only_when_it_is_complete) {
  const auto first = device().create_stream();
  const auto second = device().create_stream();
  const auto event = device().create_event();
  Gate gate;
  gate.close(*first);
  first->record(*event);
  EXPECT_NE(error_of([&] { second->record(*event); }).find("not complete"), std::string::npos);
  gate.open();
  event->synchronize();
  second->record(*event);
  event->synchronize();
}

TEST_P(DeviceEventTest, a_stream_records_events_of_its_own_device_only) {
  const auto stream = device().create_stream();
  const auto event = other().create_event();
  EXPECT_NE(error_of([&] { stream->record(*event); }).find("own device"), std::string::npos);
}

/// Counts; the owner parks on it.
class CountingNotifier final : public Notifier {
 public:
  void notify() noexcept override {
    const std::scoped_lock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST_P(DeviceEventTest, a_notifier_is_told_of_every_record_after_its_event_is_complete) {
  if (!device().info().notifies) GTEST_SKIP() << "this backend is polled";
  CountingNotifier notifier;
  const auto stream = device().create_stream(StreamPriority::high, &notifier);
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 1; i <= 20; ++i) {
    events.push_back(device().create_event());
    stream->record(*events.back());
    notifier.wait_for(i);
    EXPECT_EQ(events.back()->query(), EventState::done);
  }
}

TEST_P(DeviceEventTest, who_has_seen_the_last_event_may_destroy_everything_at_once) {
  for (int i = 0; i < 200; ++i) {
    auto stream = device().create_stream();
    auto event = device().create_event();
    stream->record(*event);
    while (event->query() == EventState::pending) {
    }
    event.reset();
    stream.reset();
  }
}

}  // namespace heddle
