#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

#include "tests/device/device_fixture.hpp"

namespace heddle {

using testing::error_of;
using testing::HostArray;

using DeviceWordTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceWordTest);

namespace {

/// A word in host memory that a device reaches.
class Word {
 public:
  explicit Word(Device& device)
      : device_(device), memory_(device.allocate_host(sizeof(std::atomic<std::uint64_t>))) {
    word_ = new (memory_) std::atomic<std::uint64_t>(0);
  }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  ~Word() { device_.free_host(memory_); }
  [[nodiscard]] std::atomic<std::uint64_t>& operator*() const { return *word_; }

 private:
  Device& device_;
  void* memory_;
  std::atomic<std::uint64_t>* word_;
};

constexpr std::chrono::milliseconds a_while{20};

}  // namespace

TEST_P(DeviceWordTest, a_stream_goes_on_when_the_word_is_raised) {
  const Word word(device());
  const HostArray from(device(), 1000, 1);
  const HostArray to(device(), 1000, 0);
  const DeviceBuffer buffer(device(), from.bytes());
  const auto stream = device().create_stream();
  const auto event = device().create_event();
  // A stream whose queue is short blocks who queues behind the wait.
  std::thread raising([&] {
    std::this_thread::sleep_for(a_while);
    EXPECT_EQ(to.values(), std::vector<double>(1000, 0));
    (*word).store(6, std::memory_order_release);
    std::this_thread::sleep_for(a_while);
    EXPECT_EQ(to.values(), std::vector<double>(1000, 0));
    (*word).store(8, std::memory_order_release);
  });
  stream->copy({buffer.address(), &device()}, {from.data(), nullptr}, from.bytes());
  stream->await_word(*word, 7);
  stream->copy({to.data(), nullptr}, {buffer.address(), &device()}, from.bytes());
  stream->record(*event);
  raising.join();
  event->synchronize();
  EXPECT_EQ(to.values(), from.values());
}

TEST_P(DeviceWordTest, a_word_that_is_high_enough_is_not_waited_for) {
  const Word word(device());
  (*word).store(3, std::memory_order_release);
  const auto stream = device().create_stream();
  stream->await_word(*word, 3);
  stream->synchronize();
  stream->await_word(*word, 1);
  stream->synchronize();
}

TEST_P(DeviceWordTest, another_stream_goes_on_meanwhile) {
  const Word word(device());
  const HostArray from(device(), 1000, 1);
  const DeviceBuffer buffer(device(), from.bytes());
  const auto waiting = device().create_stream();
  const auto going = device().create_stream();
  waiting->await_word(*word, 1);
  going->copy({buffer.address(), &device()}, {from.data(), nullptr}, from.bytes());
  going->synchronize();
  (*word).store(1, std::memory_order_release);
  waiting->synchronize();
}

TEST_P(DeviceWordTest, streams_come_and_go_while_one_waits) {
  const Word word(device());
  const auto waiting = device().create_stream();
  waiting->await_word(*word, 1);
  for (int k = 0; k < 3; ++k) device().create_stream()->synchronize();
  (*word).store(1, std::memory_order_release);
  waiting->synchronize();
}

/// Raises the word once another stream has done work.
std::thread working_and_raising(Device& device, const Word& word) {
  return std::thread([&] {
    std::this_thread::sleep_for(a_while);
    const HostArray from(device, 1000, 1);
    const DeviceBuffer buffer(device, from.bytes());
    const auto stream = device.create_stream();
    stream->copy({buffer.address(), &device}, {from.data(), nullptr}, from.bytes());
    stream->synchronize();
    (*word).store(1, std::memory_order_release);
  });
}

TEST_P(DeviceWordTest, memory_that_is_not_registered_may_be_copied_behind_a_word) {
  const Word word(device());
  const std::vector<double> from(1000, 3);
  std::vector<double> to(1000, 0);
  const DeviceBuffer buffer(device(), sizeof(double) * from.size());
  const auto stream = device().create_stream();
  std::thread raising = working_and_raising(device(), word);
  stream->await_word(*word, 1);
  stream->copy({buffer.address(), &device()}, {from.data(), nullptr}, buffer.bytes());
  stream->copy({to.data(), nullptr}, {buffer.address(), &device()}, buffer.bytes());
  stream->synchronize();
  raising.join();
  EXPECT_EQ(to, from);
}

TEST_P(DeviceWordTest, kernels_are_prepared_while_a_stream_waits) {
  const Word word(device());
  const auto waiting = device().create_stream();
  waiting->await_word(*word, 1);
  std::thread raising = working_and_raising(device(), word);
  const auto other = device().create_stream();
  other->prepare_kernels();
  raising.join();
  waiting->synchronize();
}

TEST_P(DeviceWordTest, of_no_memory_of_the_device_are_refused) {
  const std::atomic<std::uint64_t> word{0};
  const auto stream = device().create_stream();
  const std::string told = error_of([&] { stream->await_word(word, 1); });
  EXPECT_NE(told.find("a word is awaited at"), std::string::npos) << told;
}

TEST(EmulatedWordTest, an_abandoned_stream_waits_no_more) {
  const DeviceSet set = testing::make_devices_of(testing::backends()[0], 1);
  Device& device = *set.devices[0];
  const Word word(device);
  const auto stream = device.create_stream();
  stream->await_word(*word, 1);
  stream->abandon("enough");
  const std::string told = error_of([&] { stream->synchronize(); });
  EXPECT_NE(told.find("enough"), std::string::npos) << told;
}

TEST(EmulatedWordTest, native_streams_are_refused) {
  const DeviceSet set = testing::make_devices_of(testing::backends()[0], 1);
  int other = 0;
  const std::string told =
      error_of([&] { static_cast<void>(set.devices[0]->adopt_stream(&other)); });
  EXPECT_NE(told.find("is no stream of an emulated device"), std::string::npos) << told;
}

}  // namespace heddle
