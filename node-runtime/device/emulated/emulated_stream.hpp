#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/emulated_event.hpp"
#include "node-runtime/device/emulated/hardware_model.hpp"

namespace heddle {

class EmulatedDevice;

/// A stream of an emulated device: a bounded ring of operations and the thread that executes them.
///
/// The thread ("emu0/s1") parks while the ring is empty and inherits the CPU binding of the thread
/// that created the stream. Copies and kernels access memory on this thread when they execute, so a
/// missing dependency is a real race, which the thread sanitizer detects within one process.
class EmulatedStream final : public Stream {
 public:
  EmulatedStream(EmulatedDevice& device, std::uint64_t id, StreamPriority priority,
                 Notifier* notifier);
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;
  ~EmulatedStream() override;

  void copy_strided(Destination to, Source from, const CopyShape& shape) override;
  void launch(const Kernel& kernel, std::span<const TileView> tiles,
              const KernelParameters& parameters, std::int64_t* info) override;
  [[nodiscard]] std::string take_kernel_error() override;
  void launch(const ByteKernel& kernel, const ByteParameters& parameters,
              std::span<const KernelMemory> memory) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) override;
  void synchronize() override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] Device& device() const override;

 private:
  enum class OperationKind : std::uint8_t { copy, launch, record, wait, await_word };

  /// Bytes that a kernel moves over links.
  struct LinkUse {
    LinkPath links;
    std::uint64_t bytes = 0;
  };

  /// Copied into the ring; its vectors keep their capacity when the slot is reused.
  struct Operation {
    OperationKind kind = OperationKind::copy;
    std::uint64_t number = 0;  ///< on this stream, from 1
    std::uint64_t serial = 0;  ///< of a copy or launch, on the device, from 1
    DeviceClock::time_point queued;
    // copy
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    CopyShape shape;
    LinkPath links;
    std::string_view direction;
    bool is_mapped = false;
    bool is_between_devices = false;
    // launch: one of the two
    const Kernel* kernel = nullptr;
    const ByteKernel* byte_kernel = nullptr;
    ByteParameters byte_parameters;
    std::vector<LinkUse> uses;  ///< of memory that is far or paced
    std::vector<TileView> tiles;
    KernelParameters parameters;
    std::int64_t* info = nullptr;
    // record, wait
    EventWords words;
    EventSlot* record_slot = nullptr;
    std::uint64_t record_number = 0;
    // await_word
    const std::atomic<std::uint64_t>* word = nullptr;
    std::uint64_t word_value = 0;
  };

  [[nodiscard]] std::string refusal(std::string_view kernel) const;
  template <class Fill>
  void submit(OperationKind kind, const Fill& fill);

  void run();
  void execute(Operation& operation);
  void run_copy(const Operation& operation);
  void run_launch(const Operation& operation);
  void move(const Operation& operation);
  void compute(const Operation& operation);
  [[nodiscard]] bool use_links(const Operation& operation);
  [[nodiscard]] std::int64_t run_kernel(const Operation& operation);
  void pretend(const Operation& operation);
  void run_wait(const Operation& operation);
  void run_await_word(const Operation& operation);
  void run_record(const Operation& operation);
  /// Waits before a copy or launch: random delay, injected slowness, latency.
  [[nodiscard]] bool wait_to_start(const Operation& operation);
  /// When the hardware may begin with it.
  [[nodiscard]] DeviceClock::time_point begin_of(const Operation& operation) const;
  /// False if abandon() ended the wait.
  [[nodiscard]] bool wait_until(DeviceClock::time_point deadline);
  [[nodiscard]] bool is_interrupted();
  void fail(const std::string& text);
  [[nodiscard]] std::string describe(const Operation& operation) const;
  [[nodiscard]] std::string place() const;

  EmulatedDevice& device_;
  /// When the hardware is done with the operation before; the thread may be late. Its own.
  DeviceClock::time_point free_at_;
  const std::uint64_t id_;
  const StreamPriority priority_;
  Notifier* const notifier_;
  const int exceptions_at_start_;

  std::mutex mutex_;  ///< protects all members down to the thread
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::condition_variable empty_;
  std::condition_variable interrupted_changed_;
  /// Queued: ring_[head_ .. head_ + queued_); the first may be executing. The thread accesses the
  /// executing operation without the lock; submitters never touch queued ones.
  std::vector<Operation> ring_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;
  /// Operations whose effect is not published yet: unfinished_ <= queued_. A record leaves it
  /// before its event completes, since a waiter on the event may then destroy the stream.
  std::size_t unfinished_ = 0;
  std::uint64_t submitted_ = 0;  ///< total
  bool stop_ = false;
  bool interrupted_ = false;  ///< abandon() was called: waits end early
  std::optional<std::string> failure_;
  bool failure_passed_on_ = false;
  std::deque<std::string> kernel_errors_;  ///< not taken; at most one of each operation

  std::thread thread_;  ///< last: uses all members above
};

}  // namespace heddle
