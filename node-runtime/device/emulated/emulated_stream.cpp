#include "node-runtime/device/emulated/emulated_stream.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <pthread.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/process_limits.hpp"
#include "base/units.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"

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

/// RAII place in the kernel gate.
class KernelPlace {
 public:
  explicit KernelPlace(KernelGate& gate) : gate_(gate) {}
  KernelPlace(const KernelPlace&) = delete;
  KernelPlace& operator=(const KernelPlace&) = delete;
  ~KernelPlace() { gate_.leave(); }

 private:
  KernelGate& gate_;
};

DeviceClock::duration microseconds(double us) {
  return std::chrono::duration_cast<DeviceClock::duration>(
      std::chrono::duration<double, std::micro>(us));
}

}  // namespace

EmulatedStream::EmulatedStream(EmulatedDevice& device, std::uint64_t id, StreamPriority priority,
                               Notifier* notifier)
    : device_(device),
      id_(id),
      priority_(priority),
      notifier_(notifier),
      exceptions_at_start_(std::uncaught_exceptions()),
      ring_(device.options().queue_capacity) {
  thread_ = start_thread(place(), [this] { run(); });
}

EmulatedStream::~EmulatedStream() {
  const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  if (unwinding) abandon("the stream was destroyed while an exception unwound");
  {
    const std::scoped_lock lock(mutex_);
    HEDDLE_CHECK(unfinished_ == 0 || interrupted_,
                 "{} is destroyed with {} unfinished operations; wait for an event or call "
                 "synchronize() or abandon() first",
                 place(), unfinished_);
    HEDDLE_CHECK(!failure_ || failure_passed_on_ || interrupted_,
                 "{} is destroyed and its failure was not reported: {}", place(),
                 failure_.value_or(""));
    stop_ = true;
  }
  not_empty_.notify_one();
  thread_.join();
  device_.stream_destroyed();
}

Device& EmulatedStream::device() const {
  return device_;
}

std::string EmulatedStream::place() const {
  return device_.place(id_);
}

template <class Fill>
void EmulatedStream::submit(OperationKind kind, const Fill& fill) {
  HEDDLE_CHECK(
      std::this_thread::get_id() != thread_.get_id(),
      "{} is called by its own thread (a kernel or a Notifier), which cannot wait for room "
      "in its own queue",
      place());
  {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return queued_ < ring_.size(); });
    Operation& operation = ring_[(head_ + queued_) % ring_.size()];
    operation.kind = kind;
    operation.number = ++submitted_;
    fill(operation);
    ++queued_;
    ++unfinished_;
  }
  not_empty_.notify_one();
}

void EmulatedStream::copy_strided(Destination to, Source from, const CopyShape& shape) {
  if (shape.column_bytes == 0 || shape.columns == 0) return;
  const EmulatedDevice::Route route = device_.route(to, from, shape, id_);
  // Columns without gaps become one column: fewer, larger moves.
  CopyShape packed = shape;
  if (shape.columns > 1 && shape.destination_leading == shape.column_bytes &&
      shape.source_leading == shape.column_bytes) {
    const std::size_t bytes = shape.column_bytes * shape.columns;
    packed = {bytes, 1, bytes, bytes};
  }
  submit(OperationKind::copy, [&](Operation& operation) {
    operation.serial = device_.next_copy();
    operation.to = static_cast<std::byte*>(to.address);
    operation.from = static_cast<const std::byte*>(from.address);
    operation.shape = packed;
    operation.link = route.link;
    operation.direction = route.direction;
    operation.is_mapped = route.is_mapped;
  });
}

std::string EmulatedStream::refusal(std::string_view kernel) const {
  return fmt::format(
      "{}: kernel '{}' has no definition for emulated devices; run it on the "
      "host",
      place(), kernel);
}

void EmulatedStream::launch(const Kernel& kernel, std::span<const TileView> tiles,
                            const KernelParameters& parameters, std::int64_t* info) {
  if (kernel.emulated == nullptr) throw Error(ErrorCode::internal, refusal(kernel.name));
  device_.check_tiles(kernel, tiles, id_);
  submit(OperationKind::launch, [&](Operation& operation) {
    operation.serial = device_.next_launch();
    operation.kernel = &kernel;
    operation.byte_kernel = nullptr;
    operation.tiles.assign(tiles.begin(), tiles.end());
    operation.parameters = parameters;
    operation.info = info;
  });
}

void EmulatedStream::launch(const ByteKernel& kernel, const ByteParameters& parameters,
                            std::span<const KernelMemory> memory) {
  if (kernel.emulated == nullptr) throw Error(ErrorCode::internal, refusal(kernel.name));
  device_.check_memory(kernel, memory, id_);
  submit(OperationKind::launch, [&](Operation& operation) {
    operation.serial = device_.next_launch();
    operation.kernel = nullptr;
    operation.byte_kernel = &kernel;
    operation.byte_parameters = parameters;
  });
}

void EmulatedStream::record(Event& event) {
  auto& own = device_.recorded<EmulatedEvent>(event, id_);
  own.check_recordable(id_);
  submit(OperationKind::record, [&](Operation& operation) {
    operation.words = own.words();
    operation.record_slot = &own.own_slot();
    operation.record_number = own.begin_record(id_);
  });
}

void EmulatedStream::wait(const Event& event) {
  const auto& known = device_.awaited<EmulatedEvent>(event, id_);
  const std::uint64_t number = known.submitted();
  submit(OperationKind::wait, [&](Operation& operation) {
    operation.words = known.words();
    operation.record_number = number;
  });
}

void EmulatedStream::await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  if (!device_.reaches_host(&word, sizeof word)) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: a word is awaited at {}, which is no host memory that the device "
                            "allocated or registered",
                            place(), fmt::ptr(&word)));
  }
  submit(OperationKind::await_word, [&](Operation& operation) {
    operation.word = &word;
    operation.word_value = value;
  });
}

void EmulatedStream::synchronize() {
  std::unique_lock lock(mutex_);
  empty_.wait(lock, [&] { return queued_ == 0; });
  if (!failure_) return;
  failure_passed_on_ = true;
  throw Error(ErrorCode::internal, *failure_);
}

std::optional<std::string> EmulatedStream::failure() {
  const std::scoped_lock lock(mutex_);
  failure_passed_on_ = failure_passed_on_ || failure_.has_value();
  return failure_;
}

/// Whoever sees the failure may destroy the stream at once: nothing of it is used after the lock.
void EmulatedStream::abandon(const std::string& reason) {
  KernelGate& gate = device_.gate();
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = fmt::format("{}: abandoned: {}", place(), reason);
    failure_passed_on_ = true;
    interrupted_ = true;
    interrupted_changed_.notify_all();
  }
  gate.wake();
}

bool EmulatedStream::is_interrupted() {
  const std::scoped_lock lock(mutex_);
  return interrupted_;
}

void EmulatedStream::fail(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = text;
}

bool EmulatedStream::wait_until(DeviceClock::time_point deadline) {
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
  return delay <= DeviceClock::duration::zero() || wait_until(DeviceClock::now() + delay);
}

void EmulatedStream::run_copy(const Operation& operation) {
  if (!wait_to_start(operation)) return;
  if (operation.serial == device_.options().faults.fail_copy) {
    throw Error(ErrorCode::internal,
                fmt::format("injected fault in copy {} of the device", operation.serial));
  }
  const CopyShape& shape = operation.shape;
  const std::size_t total = shape.column_bytes * shape.columns;
  if (!operation.link->is_paced()) {
    move_bytes(operation.to, operation.from, shape, 0, total);
    return;
  }
  const Link::Transfer transfer = operation.link->reserve(DeviceClock::now(), total);
  for (std::size_t begin = 0; begin < total;) {
    const std::size_t end = std::min(total, begin + fragment_bytes);
    const double part = static_cast<double>(end) / static_cast<double>(total);
    const auto due = transfer.begin +
                     std::chrono::duration_cast<DeviceClock::duration>(transfer.duration * part);
    if (!wait_until(due)) return;
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
  if (operation.byte_kernel == nullptr && device_.options().kernel_seconds) {
    pretend(operation);
    return;
  }
  KernelGate& gate = device_.gate();
  if (!gate.enter(priority_, [this] { return is_interrupted(); })) return;
  const KernelPlace place_in_gate(gate);
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

std::string EmulatedStream::take_kernel_error() {
  const std::scoped_lock lock(mutex_);
  HEDDLE_CHECK(!kernel_errors_.empty(), "{}: no kernel threw", place());
  std::string text = std::move(kernel_errors_.front());
  kernel_errors_.pop_front();
  return text;
}

/// Starts when the previous kernel ends, not when this thread wakes up.
void EmulatedStream::pretend(const Operation& operation) {
  const double seconds =
      device_.options().kernel_seconds(*operation.kernel, {operation.tiles, operation.parameters});
  const Link::Transfer turn = device_.kernel_turns().reserve(
      DeviceClock::now(), static_cast<std::uint64_t>(std::llround(seconds * 1e9)));
  static_cast<void>(wait_until(turn.begin + turn.duration));
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
