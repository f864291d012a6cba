#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "node-runtime/device/pooled_device.hpp"
#include "tests/device/device_fixture.hpp"

namespace heddle {

using testing::error_of;

namespace {

/// A device with nothing but memory, which it takes from the host by segments of at least
/// `segment_min`.
class MemoryDevice final : public PooledDevice {
 public:
  static constexpr std::uint64_t segment_min = 4096;

  explicit MemoryDevice(std::uint64_t bytes) { set_memory(bytes, bytes); }
  MemoryDevice(const MemoryDevice&) = delete;
  MemoryDevice& operator=(const MemoryDevice&) = delete;
  ~MemoryDevice() override { check_unused(); }

  /// Sizes of the segments that it took.
  std::vector<std::uint64_t> taken;
  bool refuses = false;

  [[nodiscard]] std::string label() const override { return "memory"; }
  [[nodiscard]] bool runs(const Kernel&) const override { return false; }
  [[nodiscard]] bool runs(const ByteKernel&) const override { return false; }
  [[nodiscard]] std::unique_ptr<Stream> create_stream(StreamPriority, Notifier*) override {
    return nullptr;
  }
  [[nodiscard]] std::unique_ptr<Event> create_event(EventTiming) override { return nullptr; }
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void*) override { return nullptr; }
  [[nodiscard]] bool can_access_peer(const Device&) const override { return false; }
  [[nodiscard]] IpcMemoryHandle export_memory(const void* address) override {
    return handle_of(address);
  }
  [[nodiscard]] DeviceMemory open_memory(const IpcMemoryHandle&) override { return {}; }
  [[nodiscard]] IpcEventHandle export_event(const Event&) override { return {}; }
  [[nodiscard]] std::unique_ptr<Event> open_event(const IpcEventHandle&) override {
    return nullptr;
  }

 private:
  Segment take_segment(std::uint64_t bytes, std::uint64_t bytes_max) override {
    if (refuses) throw Error(ErrorCode::usage, "somebody else has it");
    const std::uint64_t wanted = std::min(bytes_max, std::max(bytes, segment_min));
    memory_.push_back(std::make_unique<std::byte[]>(wanted));  // NOLINT(*-avoid-c-arrays)
    taken.push_back(wanted);
    return {memory_.back().get(), wanted};
  }
  void unmap(const std::byte*) override {}
  [[nodiscard]] void* take_host(std::size_t bytes) override { return ::operator new(bytes); }
  void return_host(void* address) override { ::operator delete(address); }

  std::vector<std::unique_ptr<std::byte[]>> memory_;  // NOLINT(*-avoid-c-arrays)
};

}  // namespace

TEST(Segments, are_taken_when_no_other_has_room_and_kept) {
  MemoryDevice device(64 << 10);
  EXPECT_EQ(device.memory_available(), 64U << 10);
  EXPECT_TRUE(device.taken.empty());
  {
    const DeviceBuffer small(device, 1000);
    const DeviceBuffer beside(device, 1000);
    EXPECT_EQ(device.taken, std::vector<std::uint64_t>{4096}) << "they share one";
    const DeviceBuffer odd(device, 10001);
    EXPECT_EQ(device.taken.back(), 10240U) << "rounded to the alignment";
    EXPECT_TRUE(device.owns(odd.address() + 10000));
    EXPECT_NE(device.locate(small.address()).allocation, device.locate(odd.address()).allocation)
        << "the first blocks of two segments";
    EXPECT_NE(device.locate(small.address()).allocation,
              device.locate(beside.address()).allocation);
    EXPECT_EQ(device.locate(odd.address() + 17).offset, 17U);
    EXPECT_EQ(device.memory_available(), (64U << 10) - 4096 - 10240);
  }
  const DeviceBuffer again(device, 10240);
  EXPECT_EQ(device.taken.size(), 2U) << "what was free is used first";
}

TEST(Segments, end_where_the_devices_memory_ends) {
  MemoryDevice device(20 << 10);
  const DeviceBuffer most(device, 18 << 10);
  const DeviceBuffer rest(device, 2 << 10);
  EXPECT_EQ(device.taken, (std::vector<std::uint64_t>{18 << 10, 2 << 10}));
  EXPECT_EQ(device.memory_available(), 0U);
  const std::string error = error_of([&] { (void)device.allocate(1); });
  EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
}

TEST(Segments, that_are_as_many_as_there_can_be_leave_no_memory_for_more) {
  MemoryDevice device(std::uint64_t{1} << 30);
  std::vector<DeviceBuffer> buffers;
  while (device.memory_available() > 0) buffers.emplace_back(device, MemoryDevice::segment_min);
  EXPECT_EQ(device.taken.size(), 256U);
  const std::string error = error_of([&] { (void)device.allocate(1); });
  EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
}

TEST(Segments, that_are_refused_leave_the_device_as_it_was) {
  MemoryDevice device(20 << 10);
  device.refuses = true;
  const std::string error = error_of([&] { (void)device.allocate(100); });
  EXPECT_NE(error.find("somebody else"), std::string::npos) << error;
  device.refuses = false;
  const DeviceBuffer buffer(device, 100);
  EXPECT_EQ(device.taken.size(), 1U);
}

}  // namespace heddle
