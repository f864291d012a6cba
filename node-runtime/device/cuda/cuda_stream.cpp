#include "node-runtime/device/cuda/cuda_stream.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <thread>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "kernels/cuda/byte_launch.hpp"
#include "kernels/cuda/launch.hpp"
#include "node-runtime/device/cuda/cuda_event.hpp"
#include "node-runtime/device/cuda/driver.hpp"

namespace heddle {
namespace {

/// Longest delay until a dead exporter is noticed.
constexpr std::int64_t look_interval_ns = 10'000'000;
/// Longest wait for an abandoned stream to drain.
constexpr std::int64_t drain_ns_max = 1'000'000'000;

}  // namespace

// ---- what outlives the stream ----------------------------------------------------------------

StreamRecord::StreamRecord(CudaDevice& device, std::uint64_t id)
    : device_(device), id_(id), place_(device.place(id)) {
  slots_ = device_.take_result_words();
  for (std::size_t slot = slot_count; slot-- > 0;) free_slots_.push_back(slot);
}

StreamRecord::~StreamRecord() {
  device_.give_back_result_words(slots_);
}

std::uint64_t StreamRecord::count(std::string_view what) {
  const std::scoped_lock lock(mutex_);
  ++counted_;
  recent_[counted_ % recent_.size()] = what;
  return counted_;
}

std::uint64_t StreamRecord::counted() const {
  const std::scoped_lock lock(mutex_);
  return counted_;
}

std::int64_t* StreamRecord::take_slot(std::int64_t* info) {
  const std::scoped_lock lock(mutex_);
  if (free_slots_.empty()) return nullptr;
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot] = 0;
  results_.push_back({counted_ + 1, slot, info});
  return slots_ + slot;
}

void StreamRecord::deliver(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  while (!results_.empty() && results_.front().number <= number) {
    const Result& result = results_.front();
    if (result.info != nullptr) *result.info = slots_[result.slot];
    free_slots_.push_back(result.slot);
    results_.pop_front();
  }
  while (!awaited_.empty() && awaited_.front().first <= number) awaited_.pop_front();
}

void StreamRecord::fail(cudaError_t status, std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  if (failure_.has_value()) return;
  failure_ = fmt::format(
      "{}: {} ({}), found behind operation {}, {}; it, or what was queued before "
      "it on this GPU, is the cause",
      place_, cudaGetErrorString(status), cudaGetErrorName(status), number,
      recent_[number % recent_.size()]);
}

void StreamRecord::await(std::uint64_t number, std::shared_ptr<const OpenedEvent> event) {
  const std::scoped_lock lock(mutex_);
  awaited_.emplace_back(number, std::move(event));
}

void StreamRecord::look_at_exporters(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  if (awaited_.empty() || failure_.has_value()) return;
  const std::int64_t now = now_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + look_interval_ns;
  for (const auto& [waiting, event] : awaited_) {
    if (waiting > number || !event->is_lost()) continue;
    failure_ = fmt::format(
        "{}: process {}, which exported an event that operation {} or one before "
        "it waits for, ended before the event was complete",
        place_, event->exporter().process(), number);
    // The GPU may wait for that event for ever, so the stream's memory must stay.
    device_.leave_memory();
    return;
  }
}

void StreamRecord::abandon(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = fmt::format("{}: abandoned: {}", place_, reason);
  passed_on_ = true;
}

std::optional<std::string> StreamRecord::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void StreamRecord::pass_on() const {
  const std::scoped_lock lock(mutex_);
  passed_on_ = passed_on_ || failure_.has_value();
}

bool StreamRecord::is_passed_on() const {
  const std::scoped_lock lock(mutex_);
  return passed_on_ || !failure_.has_value();
}

// ---- the stream ------------------------------------------------------------------------------

CudaStream::CudaStream(CudaDevice& device, std::uint64_t id, StreamPriority priority)
    : device_(device),
      exceptions_at_start_(std::uncaught_exceptions()),
      record_(std::make_shared<StreamRecord>(device, id)),
      is_adopted_(false) {
  const CurrentGpu current(device_.gpu());
  int least = 0;
  int greatest = 0;
  device_.check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                "cudaDeviceGetStreamPriorityRange");
  device_.check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                             priority == StreamPriority::high ? greatest : least),
                "cudaStreamCreateWithPriority");
}

CudaStream::CudaStream(CudaDevice& device, std::uint64_t id, cudaStream_t adopted)
    : device_(device),
      exceptions_at_start_(std::uncaught_exceptions()),
      record_(std::make_shared<StreamRecord>(device, id)),
      stream_(adopted),
      is_adopted_(true) {}

CudaStream::~CudaStream() {
  const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  const cudaError_t status = cudaStreamQuery(stream_);
  static_cast<void>(cudaGetLastError());
  HEDDLE_CHECK(
      status != cudaErrorNotReady || unwinding || record_->failure().has_value() ||
          (is_adopted_ && context_ == nullptr),
      "{} is destroyed with unfinished operations; wait for an event or call synchronize() "
      "or abandon() first",
      record_->place());
  if (status == cudaSuccess) record_->deliver(record_->counted());
  HEDDLE_CHECK(record_->is_passed_on() || unwinding,
               "{} is destroyed and its failure was not reported: {}", record_->place(),
               record_->failure().value_or(""));
  const CurrentGpu current(device_.gpu());
  // Scratch memory and result words are in use until the stream drains. If it never does, because
  // it waits for a dead process, they are leaked until this process ends.
  const bool has_memory = !is_adopted_ || context_ != nullptr;
  if (status == cudaErrorNotReady && has_memory && !drain_within(drain_ns_max)) {
    static_cast<void>(context_.release());
    device_.leave_memory();
  }
  context_.reset();
  if (!is_adopted_) static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(cudaGetLastError());
  device_.stream_destroyed();
}

bool CudaStream::drain_within(std::int64_t limit_ns) const {
  const std::int64_t end = now_ns() + limit_ns;
  while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
    if (now_ns() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// CUDA copies pageable memory in the call, which waits for the stream, as code that is loaded
/// does.
std::unique_lock<std::mutex> CudaStream::set_up_for(const Destination& to, const Source& from,
                                                    const CopyShape& shape) {
  if (!is_behind_word_ || !device_.has_waits()) return {};
  const bool is_to_host = to.device == nullptr;
  if (!is_to_host && from.device != nullptr) return {};
  const void* const host = is_to_host ? to.address : from.address;
  const std::size_t leading = is_to_host ? shape.destination_leading : shape.source_leading;
  const std::size_t bytes = (shape.columns - 1) * leading + shape.column_bytes;
  if (device_.reaches_host(host, bytes)) return {};
  return device_.set_up();
}

void CudaStream::copy_strided(Destination to, Source from, const CopyShape& shape) {
  if (shape.column_bytes == 0 || shape.columns == 0) return;
  const std::uint64_t id = record_->id();
  const std::string_view way = device_.route(to, from, shape, id);
  const bool packed = shape.columns == 1 || (shape.destination_leading == shape.column_bytes &&
                                             shape.source_leading == shape.column_bytes);
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  const auto held = set_up_for(to, from, shape);
  record_->count(way);
  const cudaError_t status =
      packed ? cudaMemcpyAsync(to.address, from.address, shape.column_bytes * shape.columns,
                               cudaMemcpyDefault, stream_)
             : cudaMemcpy2DAsync(to.address, shape.destination_leading, from.address,
                                 shape.source_leading, shape.column_bytes, shape.columns,
                                 cudaMemcpyDefault, stream_);
  device_.check(status, fmt::format("stream {}: {} of {}", id, way,
                                    format_bytes(shape.column_bytes * shape.columns)));
}

kernel::cuda::Context& CudaStream::context() {
  if (context_ == nullptr) {
    context_ = std::make_unique<kernel::cuda::Context>(device_.gpu(), stream_, device_.products(),
                                                       [this] { return device_.set_up(); });
  }
  return *context_;
}

void CudaStream::prepare_kernels() {
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  try {
    context().prepare();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", record_->place(), error.what()));
  }
}

std::string CudaStream::refusal(std::string_view kernel) const {
  return fmt::format("{}: kernel '{}' has no definition for GPUs; run it on the host",
                     record_->place(), kernel);
}

void CudaStream::launch(const Kernel& kernel, std::span<const TileView> tiles,
                        const KernelParameters& parameters, std::int64_t* info) {
  if (kernel.cuda == nullptr) throw Error(ErrorCode::internal, refusal(kernel.name));
  device_.check_tiles(kernel, tiles, record_->id());
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  kernel::cuda::Context& shared = context();
  std::int64_t* slot = record_->take_slot(info);
  if (slot == nullptr) {
    const std::uint64_t queued = record_->counted();
    device_.check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    record_->deliver(queued);
    slot = record_->take_slot(info);
  }
  record_->count(kernel.name);
  try {
    kernel.cuda({tiles, parameters, shared, slot});
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: kernel '{}': {}", record_->place(), kernel.name, error.what()));
  }
}

void CudaStream::launch(const ByteKernel& kernel, const ByteParameters& parameters,
                        std::span<const KernelMemory> memory) {
  if (kernel.cuda == nullptr) throw Error(ErrorCode::internal, refusal(kernel.name));
  device_.check_memory(kernel, memory, record_->id());
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  kernel::cuda::Context& shared = context();
  record_->count(kernel.name);
  try {
    kernel.cuda({parameters, shared});
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: kernel '{}': {}", record_->place(), kernel.name, error.what()));
  }
}

void CudaStream::record(Event& event) {
  auto& own = device_.recorded<CudaEvent>(event, record_->id());
  own.check_recordable(*record_);
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  // A failure found by this event is attributed to the operation before it.
  own.record(stream_, record_, record_->counted());
  own.set_behind_word(is_behind_word_);
}

void CudaStream::wait(const Event& event) {
  const auto& known = device_.awaited<CudaEvent>(event, record_->id());
  if (const auto failure = known.known_failure()) record_->abandon(*failure);
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  const std::uint64_t number = record_->count("wait for an event");
  if (known.is_opened()) record_->await(number, known.opened());
  is_behind_word_ = is_behind_word_ || known.is_behind_word();
  device_.check(cudaStreamWaitEvent(stream_, known.handle()), "cudaStreamWaitEvent");
}

void CudaStream::await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  if (!device_.reaches_host(&word, sizeof word)) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: a word is awaited at {}, which is no host memory that the device "
                            "allocated or registered",
                            record_->place(), fmt::ptr(&word)));
  }
  const std::uint32_t streams = device_.streams();
  const std::uint32_t queues = hardware_queues();
  if (streams > queues) {
    throw Error(
        ErrorCode::usage,
        fmt::format("{}: this process has {} streams on the GPU and {} hardware queues; one "
                    "that waits for another thread may hold up the one that has to go on: "
                    "set CUDA_DEVICE_MAX_CONNECTIONS=32 in the environment",
                    record_->place(), streams, queues));
  }
  if (!loads_eagerly()) {
    throw Error(
        ErrorCode::usage,
        fmt::format("{}: CUDA loads kernels when they are first launched, and waits for all "
                    "streams then, also for one that waits for another thread: set "
                    "CUDA_MODULE_LOADING=EAGER in the environment",
                    record_->place()));
  }
  const CurrentGpu current(device_.gpu());
  const std::scoped_lock lock(mutex_);
  device_.await(stream_, [&] {
    record_->count("wait for a word");
    is_behind_word_ = true;
    if (const auto refused = wait_for_word(stream_, &word, value)) {
      throw Error(ErrorCode::internal, fmt::format("{}: {}", record_->place(), *refused));
    }
  });
}

void CudaStream::synchronize() {
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    number = record_->counted();
  }
  cudaError_t status = cudaStreamQuery(stream_);
  while (status == cudaErrorNotReady && !record_->failure().has_value()) {
    std::this_thread::yield();
    record_->look_at_exporters(number);
    status = cudaStreamQuery(stream_);
  }
  static_cast<void>(cudaGetLastError());
  if (status != cudaSuccess && status != cudaErrorNotReady) record_->fail(status, number);
  record_->deliver(number);
  if (const auto failure = record_->failure()) {
    record_->pass_on();
    throw Error(ErrorCode::internal, *failure);
  }
}

std::optional<std::string> CudaStream::failure() {
  const cudaError_t status = cudaStreamQuery(stream_);
  static_cast<void>(cudaGetLastError());
  if (status != cudaSuccess && status != cudaErrorNotReady) {
    record_->fail(status, record_->counted());
  }
  record_->pass_on();
  return record_->failure();
}

void CudaStream::abandon(const std::string& reason) {
  // When it is abandoned its owner may destroy it.
  const std::shared_ptr<StreamRecord> record = record_;
  record->abandon(reason);
}

}  // namespace heddle
