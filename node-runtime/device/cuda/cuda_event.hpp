#pragma once

#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/process_watch.hpp"
#include "node-runtime/device/cuda/cuda_device.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/device/exporter_watch.hpp"

namespace heddle {

class StreamRecord;

/// An event exported by another process. Streams that wait for it share it, since the exporter may
/// end first.
class OpenedEvent {
 public:
  OpenedEvent(cudaEvent_t event, pid_t exporter) : event_(event), exporter_(exporter) {}
  OpenedEvent(const OpenedEvent&) = delete;
  OpenedEvent& operator=(const OpenedEvent&) = delete;
  ~OpenedEvent();

  [[nodiscard]] cudaEvent_t handle() const { return event_; }
  [[nodiscard]] const ProcessWatch& exporter() const { return exporter_; }
  /// True if it can never complete.
  [[nodiscard]] bool is_lost() const;

 private:
  cudaEvent_t event_;
  ProcessWatch exporter_;
};

/// An event, created here or opened from another process.
class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, EventTiming timing);
  CudaEvent(CudaDevice& device, std::shared_ptr<const OpenedEvent> opened);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override;

  [[nodiscard]] EventState query() const override;
  [[nodiscard]] std::int64_t completed_ns() const override;
  void synchronize() const override;
  [[nodiscard]] std::string failure() const override;
  [[nodiscard]] const Device& device() const override { return device_; }

  // ---- for streams and the device -------------------------------------------------------------
  [[nodiscard]] bool is_opened() const { return opened_ != nullptr; }
  /// Null for an event created here.
  [[nodiscard]] const std::shared_ptr<const OpenedEvent>& opened() const { return opened_; }
  /// The event that streams wait for.
  [[nodiscard]] cudaEvent_t handle() const { return event_; }
  /// Throws Error(internal) if `stream` may not record it now.
  void check_recordable(const StreamRecord& stream) const;
  /// Records on `queue`, after `number` operations of `stream`.
  void record(cudaStream_t queue, std::shared_ptr<StreamRecord> stream, std::uint64_t number);
  /// Whether the record is behind a wait for a word.
  [[nodiscard]] bool is_behind_word() const {
    return is_behind_word_.load(std::memory_order_relaxed);
  }
  void set_behind_word(bool is_behind) {
    is_behind_word_.store(is_behind, std::memory_order_relaxed);
  }
  /// Failure of the recording stream, if already known.
  [[nodiscard]] std::optional<std::string> known_failure() const;
  /// The event that other processes can open: created on first use and recorded together with this
  /// one from then on.
  [[nodiscard]] cudaEvent_t shared() const;

 private:
  [[nodiscard]] EventState settle(cudaError_t status) const;

  CudaDevice& device_;
  const int exceptions_at_start_;
  const EventTiming timing_;
  const std::shared_ptr<const OpenedEvent> opened_;
  cudaEvent_t event_ = nullptr;
  std::atomic<bool> is_behind_word_ = false;
  mutable std::mutex mutex_;              ///< protects the members below
  mutable cudaEvent_t shared_ = nullptr;  ///< separate event: CUDA cannot time a shared one
  cudaStream_t queue_ = nullptr;          ///< of the last record
  std::shared_ptr<StreamRecord> stream_;
  std::uint64_t number_ = 0;
  mutable ExporterWatch watch_;  ///< of an opened event
};

}  // namespace heddle
