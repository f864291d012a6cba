#pragma once

#include <array>
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

/// What a stream's events must know of it, also when it is gone: where kernels' `info` goes, what
/// was queued, and what failed. Thread: any.
class StreamRecord {
 public:
  StreamRecord(CudaDevice& device, std::uint64_t id);
  ~StreamRecord();
  StreamRecord(const StreamRecord&) = delete;
  StreamRecord& operator=(const StreamRecord&) = delete;

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& place() const { return place_; }

  /// Counts an operation; `what` lives as long as the program.
  std::uint64_t count(std::string_view what);
  [[nodiscard]] std::uint64_t counted() const;

  /// A word for a kernel's result, for the operation that is counted next; null when all are taken:
  /// deliver() what is complete first.
  [[nodiscard]] std::int64_t* take_slot(std::int64_t* info);
  /// Operations up to `number` are complete: their kernels' results go where they were asked for.
  void deliver(std::uint64_t number);

  /// Remembers the first failure: CUDA's `status`, met by who waited for operation `number`.
  void fail(cudaError_t status, std::uint64_t number);
  /// The stream is to fail from operation `number` on.
  void abandon(const std::string& reason);
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Operation `number` waits for an event of another process.
  void await(std::uint64_t number, std::shared_ptr<const OpenedEvent> event);
  /// Fails when a process whose event the stream waits for is gone: CUDA would wait for ever. For
  /// who finds operation `number` unfinished; looks now and then only.
  void look_at_exporters(std::uint64_t number);
  void pass_on() const;
  /// Somebody was told of the failure, or there is none.
  [[nodiscard]] bool is_passed_on() const;

 private:
  static constexpr std::size_t slot_count = 64;
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
  std::array<std::string_view, 64> recent_{};  ///< what the last operations were, by number
  std::int64_t* slots_ = nullptr;              ///< host memory that kernels write
  std::vector<std::size_t> free_slots_;
  std::deque<Result> results_;
  std::optional<std::string> failure_;
  mutable bool passed_on_ = false;
  /// Waits for other processes' events, by operation, that are not known to be over.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<const OpenedEvent>>> awaited_;
  std::int64_t next_look_ns_ = 0;
};

/// A CUDA stream. CUDA keeps its queue and blocks the caller when it is full.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, std::uint64_t id, StreamPriority priority);
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
  void synchronize() override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] Device& device() const override { return device_; }

 private:
  /// Under `mutex_`, the GPU current.
  [[nodiscard]] kernel::cuda::Context& context();
  [[nodiscard]] std::string refusal(std::string_view kernel) const;
  [[nodiscard]] bool drain_within(std::int64_t limit_ns) const;

  CudaDevice& device_;
  const int exceptions_at_start_;
  std::shared_ptr<StreamRecord> record_;
  std::mutex mutex_;  ///< operations are queued one after the other
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<kernel::cuda::Context> context_;
};

}  // namespace heddle
