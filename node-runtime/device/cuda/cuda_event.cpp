#include "node-runtime/device/cuda/cuda_event.hpp"

#include <exception>
#include <fmt/core.h>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/device/cuda/cuda_stream.hpp"

namespace heddle {

OpenedEvent::~OpenedEvent() {
  static_cast<void>(cudaEventDestroy(event_));
  static_cast<void>(cudaGetLastError());
}

bool OpenedEvent::is_lost() const {
  if (!exporter_.has_ended()) return false;
  // The event may have completed first; otherwise it stays pending or has failed.
  const cudaError_t status = cudaEventQuery(event_);
  static_cast<void>(cudaGetLastError());
  return status != cudaSuccess;
}

CudaEvent::CudaEvent(CudaDevice& device, EventTiming timing)
    : device_(device), exceptions_at_start_(std::uncaught_exceptions()), timing_(timing) {
  const CurrentGpu current(device_.gpu());
  const unsigned flags = timing == EventTiming::on ? cudaEventDefault : cudaEventDisableTiming;
  device_.check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
  device_.event_created();
}

CudaEvent::CudaEvent(CudaDevice& device, std::shared_ptr<const OpenedEvent> opened)
    : device_(device),
      exceptions_at_start_(std::uncaught_exceptions()),
      timing_(EventTiming::on),
      opened_(std::move(opened)),
      event_(opened_->handle()) {
  device_.event_created();
}

CudaEvent::~CudaEvent() {
  if (!is_opened()) {
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    const bool complete = cudaEventQuery(event_) != cudaErrorNotReady;
    HEDDLE_CHECK(complete || unwinding || known_failure().has_value(),
                 "an event of {} is destroyed before its record is complete", device_.label());
  }
  // CUDA frees the resources of an event after its completion.
  if (!is_opened()) static_cast<void>(cudaEventDestroy(event_));
  if (shared_ != nullptr) static_cast<void>(cudaEventDestroy(shared_));
  static_cast<void>(cudaGetLastError());
  device_.event_destroyed();
}

/// State for `status`; delivers the stream's results if the event is complete.
EventState CudaEvent::settle(cudaError_t status) const {
  const std::scoped_lock lock(mutex_);
  if (status == cudaErrorNotReady) {
    if (stream_ == nullptr) return EventState::pending;
    stream_->look_at_exporters(number_);
    if (!stream_->failure().has_value()) return EventState::pending;
    stream_->pass_on();
    return EventState::failed;
  }
  if (stream_ == nullptr) return status == cudaSuccess ? EventState::done : EventState::failed;
  if (status != cudaSuccess) stream_->fail(status, number_);
  stream_->deliver(number_);
  if (!stream_->failure().has_value()) return EventState::done;
  stream_->pass_on();
  return EventState::failed;
}

EventState CudaEvent::query() const {
  const cudaError_t status = cudaEventQuery(event_);
  static_cast<void>(cudaGetLastError());
  const EventState state = settle(status);
  if (state == EventState::done || !is_opened()) return state;
  return watch_.look([&] { return opened_->is_lost(); }) ? EventState::failed : state;
}

std::int64_t CudaEvent::completed_ns() const {
  HEDDLE_CHECK(timing_ == EventTiming::on, "completed_ns() of an event of {} without timing",
               device_.label());
  return is_opened() ? now_ns() : device_.completed_ns(event_);
}

void CudaEvent::synchronize() const {
  // cudaEventSynchronize would wait for ever for a dead exporter.
  while (query() == EventState::pending) std::this_thread::yield();
  if (query() != EventState::failed) return;
  throw Error(watch_.found_gone() ? ErrorCode::communication : ErrorCode::internal, failure());
}

std::optional<std::string> CudaEvent::known_failure() const {
  const std::scoped_lock lock(mutex_);
  return stream_ == nullptr ? std::nullopt : stream_->failure();
}

std::string CudaEvent::failure() const {
  if (watch_.found_gone()) {
    return fmt::format("process {}, which exported the event, ended before the event was complete",
                       opened_->exporter().process());
  }
  return known_failure().value_or(
      fmt::format("{}: an event that another process recorded has failed", device_.label()));
}

void CudaEvent::check_recordable(const StreamRecord& stream) const {
  if (opened_ != nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: an event opened from process {} can be waited for but not "
                            "recorded",
                            stream.place(), opened_->exporter().process()));
  }
  const std::scoped_lock lock(mutex_);
  if (stream_ == nullptr || stream_.get() == &stream) return;
  if (cudaEventQuery(event_) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::internal,
                fmt::format("{}: the event's record on stream {} is not complete; record it here "
                            "after that, or use a second event",
                            stream.place(), stream_->id()));
  }
}

void CudaEvent::record(cudaStream_t queue, std::shared_ptr<StreamRecord> stream,
                       std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  // Deliver the results of the previous record, which was not queried.
  if (stream_ != nullptr && stream_ != stream) stream_->deliver(number_);
  device_.check(cudaEventRecord(event_, queue), "cudaEventRecord");
  if (shared_ != nullptr) device_.check(cudaEventRecord(shared_, queue), "cudaEventRecord");
  queue_ = queue;
  stream_ = std::move(stream);
  number_ = number;
}

cudaEvent_t CudaEvent::shared() const {
  const std::scoped_lock lock(mutex_);
  if (shared_ != nullptr) return shared_;
  device_.check(cudaEventCreateWithFlags(&shared_, cudaEventDisableTiming | cudaEventInterprocess),
                "cudaEventCreateWithFlags");
  // An incomplete record: the shared twin is recorded now and completes a little later if more work
  // is queued behind this event.
  if (queue_ != nullptr && cudaEventQuery(event_) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    device_.check(cudaEventRecord(shared_, queue_), "cudaEventRecord");
  }
  return shared_;
}

}  // namespace heddle
