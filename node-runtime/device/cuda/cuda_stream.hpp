#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/context.hpp"
#include "node-runtime/device/cuda/cuda_device.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

class OpenedEvent;

/// The part of a stream that its events need and that outlives it: destinations of kernels' `info`,
/// recent operations, and the failure. Thread: any.
class StreamRecord {
 public:
  StreamRecord(CudaDevice& device, std::uint64_t id);
  ~StreamRecord();
  StreamRecord(const StreamRecord&) = delete;
  StreamRecord& operator=(const StreamRecord&) = delete;

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& place() const { return place_; }

  /// Counts an operation; `what` must have static lifetime.
  std::uint64_t count(std::string_view what);
  [[nodiscard]] std::uint64_t counted() const;

  /// A result word for the operation counted next; null if all are in use: call deliver() first.
  [[nodiscard]] std::int64_t* take_slot(std::int64_t* info);
  /// Operations up to `number` are complete: copies their kernels' results to their destinations.
  void deliver(std::uint64_t number);

  /// Keeps the first failure: `status`, detected while waiting for operation `number`.
  void fail(cudaError_t status, std::uint64_t number);
  /// Fails the stream from operation `number` on.
  void abandon(const std::string& reason);
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Operation `number` waits for another process's event.
  void await(std::uint64_t number, std::shared_ptr<const OpenedEvent> event);
  /// Fails the stream if the exporter of an awaited event has died, since CUDA would wait for ever.
  /// Call it when operation `number` is found unfinished; checks at intervals.
  void look_at_exporters(std::uint64_t number);
  void pass_on() const;
  /// True if there is no failure or it has been reported.
  [[nodiscard]] bool is_passed_on() const;

 private:
  static constexpr std::size_t slot_count = CudaDevice::result_words;
  struct Result {
    std::uint64_t number;
    std::size_t slot;
    std::int64_t* info;
  };

  CudaDevice& device_;
  const std::uint64_t id_;
  const std::string place_;
  mutable std::mutex mutex_;
  std::uint64_t counted_ = 0;
  std::array<std::string_view, 64> recent_{};  ///< names of the last operations, by number
  std::int64_t* slots_ = nullptr;              ///< host memory written by kernels
  std::vector<std::size_t> free_slots_;
  std::deque<Result> results_;
  std::optional<std::string> failure_;
  mutable bool passed_on_ = false;
  /// Waits for other processes' events that may be unfinished, by operation.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<const OpenedEvent>>> awaited_;
  std::int64_t next_look_ns_ = 0;
};

/// A CUDA stream. CUDA bounds its queue and blocks the caller when it is full.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, std::uint64_t id, StreamPriority priority);
  /// A stream of the program's.
  CudaStream(CudaDevice& device, std::uint64_t id, cudaStream_t adopted);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  void copy_strided(Destination to, Source from, const CopyShape& shape) override;
  void prepare_kernels() override;
  void launch(const Kernel& kernel, std::span<const TileView> tiles,
              const KernelParameters& parameters, std::int64_t* info) override;
  void launch(const ByteKernel& kernel, const ByteParameters& parameters,
              std::span<const KernelMemory> memory) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) override;
  void synchronize() override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] Device& device() const override { return device_; }

 private:
  /// Under `mutex_`, with the GPU current.
  [[nodiscard]] kernel::cuda::Context& context();
  [[nodiscard]] std::unique_lock<std::mutex> set_up_for(const Destination& to, const Source& from,
                                                        const CopyShape& shape);
  [[nodiscard]] std::string refusal(std::string_view kernel) const;
  [[nodiscard]] bool drain_within(std::int64_t limit_ns) const;

  CudaDevice& device_;
  const int exceptions_at_start_;
  std::shared_ptr<StreamRecord> record_;
  std::mutex mutex_;  ///< serialises submissions
  cudaStream_t stream_ = nullptr;
  const bool is_adopted_;
  /// An earlier operation waits for a word, or for an event behind such a wait; under `mutex_`.
  bool is_behind_word_ = false;
  std::unique_ptr<kernel::cuda::Context> context_;
};

}  // namespace heddle
