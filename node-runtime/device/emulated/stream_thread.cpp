#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <pthread.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/units.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/device/emulated/emulated_stream.hpp"

namespace heddle {
namespace {

/// Paced copies move this much at a time, so that a reader that does not wait can observe a partial
/// copy.
constexpr std::uint64_t fragment_bytes = std::uint64_t{256} << 10;

/// Moves bytes [begin, end) of the block, counted over its columns without gaps.
void move_bytes(std::byte* to, const std::byte* from, const CopyShape& shape, std::size_t begin,
                std::size_t end) {
  std::size_t column = begin / shape.column_bytes;
  std::size_t offset = begin % shape.column_bytes;
  while (begin < end) {
    const std::size_t count = std::min(end - begin, shape.column_bytes - offset);
    std::memcpy(to + column * shape.destination_leading + offset,
                from + column * shape.source_leading + offset, count);
    begin += count;
    offset = 0;
    ++column;
  }
}

/// Leaves a gate, or gives back a turn on a GPU that processes share, at the end of its scope.
template <class Gate>
class Leaver {
 public:
  explicit Leaver(Gate& gate) : gate_(gate) {}
  Leaver(const Leaver&) = delete;
  Leaver& operator=(const Leaver&) = delete;
  ~Leaver() { gate_.leave(); }

 private:
  Gate& gate_;
};

DeviceClock::duration microseconds(double us) {
  return std::chrono::duration_cast<DeviceClock::duration>(
      std::chrono::duration<double, std::micro>(us));
}

}  // namespace

bool EmulatedStream::wait_until(DeviceClock::time_point deadline) {
  if (deadline <= DeviceClock::now()) return !is_interrupted();
  std::unique_lock lock(mutex_);
  return !interrupted_changed_.wait_until(lock, deadline, [&] { return interrupted_; });
}

void EmulatedStream::run() {
  ::pthread_setname_np(::pthread_self(),
                       fmt::format("emu{}/s{}", device_.info().index, id_).substr(0, 15).c_str());
  for (;;) {
    Operation* operation = nullptr;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [&] { return queued_ > 0 || stop_; });
      if (queued_ == 0) return;
      operation = &ring_[head_];
    }
    execute(*operation);
    // May unmap another process's event, so not under the lock.
    operation->words = {};
    bool is_empty = false;
    {
      const std::scoped_lock lock(mutex_);
      head_ = (head_ + 1) % ring_.size();
      --queued_;
      is_empty = queued_ == 0;
    }
    not_full_.notify_one();
    if (is_empty) empty_.notify_all();
  }
}

void EmulatedStream::execute(Operation& operation) {
  if (operation.kind == OperationKind::record) {
    run_record(operation);
    return;
  }
  bool is_failed = false;
  {
    const std::scoped_lock lock(mutex_);
    is_failed = failure_.has_value();
  }
  if (!is_failed) {
    try {
      if (operation.kind == OperationKind::copy) run_copy(operation);
      if (operation.kind == OperationKind::launch) run_launch(operation);
      if (operation.kind == OperationKind::wait) run_wait(operation);
      if (operation.kind == OperationKind::await_word) run_await_word(operation);
      const bool has_waited =
          operation.kind == OperationKind::wait || operation.kind == OperationKind::await_word;
      if (has_waited) free_at_ = DeviceClock::now();
    } catch (const std::exception& e) {
      fail(fmt::format("{}, operation {}, {}: {}", place(), operation.number, describe(operation),
                       e.what()));
    } catch (...) {
      fail(fmt::format("{}, operation {}, {}: an exception of unknown type", place(),
                       operation.number, describe(operation)));
    }
  }
  const std::scoped_lock lock(mutex_);
  --unfinished_;
}

void EmulatedStream::run_record(const Operation& operation) {
  std::optional<std::string> failure;
  {
    const std::scoped_lock lock(mutex_);
    failure = failure_;
    failure_passed_on_ = failure_passed_on_ || failure_.has_value();
    --unfinished_;
  }
  complete_record(*operation.record_slot, operation.record_number, failure ? &*failure : nullptr);
  if (notifier_ != nullptr) notifier_->notify();
}

void EmulatedStream::run_wait(const Operation& operation) {
  const WaitResult result = wait_for_record(operation.words, operation.record_number,
                                            [this] { return is_interrupted(); });
  if (result == WaitResult::failed || result == WaitResult::exporter_gone) {
    throw Error(ErrorCode::internal,
                failure_of(operation.words, result == WaitResult::exporter_gone));
  }
}

/// Who raises the word tells nobody, so this thread looks: often at first, then every 20 us.
void EmulatedStream::run_await_word(const Operation& operation) {
  constexpr int looks = 200;
  constexpr std::chrono::microseconds pause{20};
  // Acquire: what was written before the word was raised is seen behind it.
  const auto is_raised = [&] {
    return operation.word->load(std::memory_order_acquire) >= operation.word_value;
  };
  for (int look = 0; look < looks; ++look) {
    if (is_raised()) return;
    relax_cpu();
  }
  while (!is_raised() && wait_until(DeviceClock::now() + pause)) {
  }
}

bool EmulatedStream::wait_to_start(const Operation& operation) {
  const EmulatedOptions& options = device_.options();
  const FaultPlan& faults = options.faults;
  DeviceClock::duration delay = microseconds(options.latency_us);
  if (faults.delay_us_max > 0) {
    const std::uint64_t random = mixed(faults.seed, id_, operation.number);
    delay += std::chrono::microseconds(random % (faults.delay_us_max + 1));
  }
  if (operation.kind == OperationKind::copy && operation.serial == faults.slow_copy) {
    delay += std::chrono::microseconds(faults.slow_copy_us);
  }
  if (operation.kind == OperationKind::copy && operation.is_mapped && faults.stall_mappings) {
    delay += std::chrono::hours(24);
  }
  if (delay <= DeviceClock::duration::zero()) return true;
  free_at_ = std::max(free_at_, DeviceClock::now() + delay);
  return wait_until(free_at_);
}

DeviceClock::time_point EmulatedStream::begin_of(const Operation& operation) const {
  return std::max({free_at_, operation.queued, device_.turns().ready()});
}

void EmulatedStream::run_copy(const Operation& operation) {
  if (!wait_to_start(operation)) return;
  if (operation.serial == device_.options().faults.fail_copy) {
    throw Error(ErrorCode::internal,
                fmt::format("injected fault in copy {} of the device", operation.serial));
  }
  if (!device_.turns().enter([this] { return is_interrupted(); })) return;
  const Leaver turn(device_.turns());
  if (wait_until(device_.turns().ready())) move(operation);
}

/// Begins when the hardware is done with the copy before, not when this thread wakes up. Fragments
/// ask for links one by one, so that copies that share a link share its rate.
void EmulatedStream::move(const Operation& operation) {
  const CopyShape& shape = operation.shape;
  const std::size_t total = shape.column_bytes * shape.columns;
  const auto latency = operation.is_between_devices
                           ? microseconds(device_.options().peer_latency_us)
                           : DeviceClock::duration::zero();
  auto ready = begin_of(operation) + latency;
  if (!operation.links.is_paced()) {
    if (!wait_until(ready)) return;
    move_bytes(operation.to, operation.from, shape, 0, total);
    free_at_ = DeviceClock::now();
    return;
  }
  for (std::size_t begin = 0; begin < total;) {
    const std::size_t end = std::min(total, begin + fragment_bytes);
    const LinkPath::Transfer transfer = operation.links.reserve(ready, end - begin);
    ready = transfer.left;
    free_at_ = transfer.arrived;
    if (!wait_until(transfer.arrived)) return;
    move_bytes(operation.to, operation.from, shape, begin, end);
    begin = end;
  }
}

void EmulatedStream::run_launch(const Operation& operation) {
  if (!wait_to_start(operation)) return;
  if (operation.serial == device_.options().faults.fail_kernel) {
    throw Error(ErrorCode::internal,
                fmt::format("injected fault in launch {} of the device", operation.serial));
  }
  if (!device_.turns().enter([this] { return is_interrupted(); })) return;
  const Leaver turn(device_.turns());
  if (!wait_until(device_.turns().ready())) return;
  if (operation.byte_kernel == nullptr && device_.options().kernel_seconds) {
    pretend(operation);
    return;
  }
  KernelGate& gate = device_.gate();
  if (!gate.enter(priority_, [this] { return is_interrupted(); })) return;
  const Leaver place_in_gate(gate);
  if (operation.byte_kernel == nullptr || use_links(operation)) compute(operation);
}

/// What a kernel reads and writes passes links as copies do, piece by piece of all its memory.
/// False if abandon() ended the wait.
bool EmulatedStream::use_links(const Operation& operation) {
  std::uint64_t longest = 0;
  for (const LinkUse& use : operation.uses) longest = std::max(longest, use.bytes);
  auto ready = begin_of(operation);
  for (std::uint64_t begin = 0; begin < longest; begin += fragment_bytes) {
    auto left = ready;
    auto arrived = ready;
    for (const LinkUse& use : operation.uses) {
      if (use.bytes <= begin) continue;
      const LinkPath::Transfer one =
          use.links.reserve(ready, std::min(fragment_bytes, use.bytes - begin));
      left = std::max(left, one.left);
      arrived = std::max(arrived, one.arrived);
    }
    ready = left;
    free_at_ = arrived;
    if (!wait_until(arrived)) return false;
  }
  return true;
}

void EmulatedStream::compute(const Operation& operation) {
  const auto begin = DeviceClock::now();
  if (operation.byte_kernel != nullptr) {
    operation.byte_kernel->emulated(operation.byte_parameters);
  } else {
    const std::int64_t info = run_kernel(operation);
    if (operation.info != nullptr) *operation.info = info;
  }
  const double slowdown = device_.options().kernel_slowdown;
  if (slowdown > 1) {
    const auto computed = DeviceClock::now() - begin;
    // An abandoned kernel need not simulate its full duration.
    static_cast<void>(
        wait_until(begin + std::chrono::duration_cast<DeviceClock::duration>(computed * slowdown)));
  }
  free_at_ = DeviceClock::now();
}

/// Without `info` an exception of the kernel fails the stream.
std::int64_t EmulatedStream::run_kernel(const Operation& operation) {
  const auto keep = [&](std::string text) {
    if (operation.info == nullptr) throw;
    const std::scoped_lock lock(mutex_);
    kernel_errors_.push_back(std::move(text));
    return kernel_threw;
  };
  try {
    return operation.kernel->emulated({operation.tiles, operation.parameters});
  } catch (const std::exception& e) {
    return keep(e.what());
  } catch (...) {
    return keep("an exception of unknown type");
  }
}

/// Starts when the previous kernel ends, not when this thread wakes up.
void EmulatedStream::pretend(const Operation& operation) {
  const double seconds =
      device_.options().kernel_seconds(*operation.kernel, {operation.tiles, operation.parameters});
  const Link::Transfer turn = device_.kernel_turns().reserve(
      DeviceClock::now(), static_cast<std::uint64_t>(std::llround(seconds * 1e9)));
  free_at_ = turn.end();
  static_cast<void>(wait_until(free_at_));
}

std::string EmulatedStream::describe(const Operation& operation) const {
  switch (operation.kind) {
    case OperationKind::copy:
      return fmt::format("copy of {} {}",
                         format_bytes(operation.shape.column_bytes * operation.shape.columns),
                         operation.direction);
    case OperationKind::launch:
      return fmt::format("kernel '{}'", operation.byte_kernel != nullptr
                                            ? operation.byte_kernel->name
                                            : operation.kernel->name);
    case OperationKind::record:
      return "record of an event";
    case OperationKind::wait:
      return "wait for an event";
    case OperationKind::await_word:
      return "wait for a word";
  }
  return "operation";
}

}  // namespace heddle
