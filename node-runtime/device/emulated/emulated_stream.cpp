#include "node-runtime/device/emulated/emulated_stream.hpp"

#include <exception>
#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"

namespace heddle {

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
    operation.queued = DeviceClock::now();
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
    operation.links = route.links;
    operation.direction = route.direction;
    operation.is_mapped = route.is_mapped;
    operation.is_between_devices = route.is_between_devices;
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
    operation.uses.clear();
    for (const KernelMemory& one : memory) {
      if (one.bytes == 0) continue;
      const LinkPath links = device_.route(one);
      if (links.is_paced()) operation.uses.push_back({links, one.bytes});
    }
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

std::string EmulatedStream::take_kernel_error() {
  const std::scoped_lock lock(mutex_);
  HEDDLE_CHECK(!kernel_errors_.empty(), "{}: no kernel threw", place());
  std::string text = std::move(kernel_errors_.front());
  kernel_errors_.pop_front();
  return text;
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

}  // namespace heddle
