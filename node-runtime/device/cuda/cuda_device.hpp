#pragma once

#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"
#include "node-runtime/device/pooled_device.hpp"

namespace heddle {

/// Sets the calling thread's current GPU and restores the former one.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu);
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu();

 private:
  int former_ = 0;
};

/// An event and its completion time on the host clock: relates the GPU's clock to CLOCK_MONOTONIC.
struct ClockAnchor {
  ClockAnchor(int gpu, cudaStream_t stream);
  ClockAnchor(const ClockAnchor&) = delete;
  ClockAnchor& operator=(const ClockAnchor&) = delete;
  ~ClockAnchor();

  cudaEvent_t event = nullptr;
  std::int64_t host_ns = 0;
};

/// A GPU. Its memory is allocated by segments, and kept: most calls of allocate() and free() only
/// do the bookkeeping, and other processes map a segment once for all pieces they open.
///
/// Asynchronous CUDA errors affect the whole GPU: after one, every operation of this process on it
/// fails. An error names the operation that detected it; any earlier operation may have caused it.
class CudaDevice final : public PooledDevice {
 public:
  CudaDevice(std::int32_t index, std::int32_t gpu, const CudaOptions& options);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override;

  [[nodiscard]] bool runs(const Kernel& kernel) const override { return kernel.cuda != nullptr; }
  [[nodiscard]] bool runs(const ByteKernel& kernel) const override {
    return kernel.cuda != nullptr;
  }
  [[nodiscard]] std::unique_ptr<Stream> create_stream(StreamPriority priority,
                                                      Notifier* notifier) override;
  [[nodiscard]] std::unique_ptr<Event> create_event(EventTiming timing) override;
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* native) override;
  [[nodiscard]] bool can_access_peer(const Device& other) const override;
  [[nodiscard]] IpcMemoryHandle export_memory(const void* address) override;
  [[nodiscard]] DeviceMemory open_memory(const IpcMemoryHandle& handle) override;
  [[nodiscard]] IpcEventHandle export_event(const Event& event) override;
  [[nodiscard]] std::unique_ptr<Event> open_event(const IpcEventHandle& handle) override;

  // ---- for its streams and events -------------------------------------------------------------
  [[nodiscard]] int gpu() const { return gpu_; }
  /// Implementations chosen for large products.
  [[nodiscard]] const kernel::cuda::ProductChoices& products() const { return products_; }
  /// "GPU 0 (NVIDIA H200)".
  [[nodiscard]] std::string label() const override;
  /// Throws Error(internal) with the device, the operation and CUDA's error text.
  void check(cudaError_t status, std::string_view operation) const;
  /// The direction of the copy. Throws Error(internal) if the ends do not fit.
  [[nodiscard]] std::string_view route(const Destination& to, const Source& from,
                                       const CopyShape& shape, std::uint64_t stream) const;
  /// Completion time of `event`, which is complete, in ns of CLOCK_MONOTONIC.
  [[nodiscard]] std::int64_t completed_ns(cudaEvent_t event);
  /// For a stream that cannot finish: from now on this process neither waits for the GPU nor frees
  /// its memory, since CUDA would wait for all streams of the process on it, those of other devices
  /// included. The end of the process frees everything.
  void leave_memory();
  [[nodiscard]] bool is_left() const;
  /// Words for the results of a stream's kernels, in page-locked host memory; they are kept for
  /// other streams when they come back: CUDA frees such memory only when the GPU is idle, which it
  /// may never be while a stream waits for a word.
  static constexpr std::size_t result_words = 64;
  [[nodiscard]] std::int64_t* take_result_words();
  void give_back_result_words(std::int64_t* words);

  /// Loading code, freeing memory and copying pageable memory wait for all streams of the GPU, with
  /// a lock of CUDA's that other threads of this process need to go on, and with them the one that
  /// is to raise a word which a stream waits for. So code is loaded while no stream waits: set_up()
  /// blocks new waits, and returns when the words of all earlier ones have been raised. No
  /// deadlock: the progress thread raises words; it neither sets up nor waits, nor does it use a
  /// program's or an engine's stream, of which the caller may hold the lock. Give the result back
  /// when all is loaded.
  [[nodiscard]] std::unique_lock<std::mutex> set_up();
  /// A stream may be waiting for a word. A wait that an operation depends on is seen by the thread
  /// that queues the operation.
  [[nodiscard]] bool has_waits() const { return wait_count_.load(std::memory_order_relaxed) > 0; }
  /// Calls `wait()`, with which the stream waits for a word, while nothing is set up.
  template <class Wait>
  void await(cudaStream_t stream, const Wait& wait) {
    const std::scoped_lock lock(set_up_mutex_);
    drop_raised();
    wait();
    note_wait(stream);
  }

 private:
  /// Another process's allocation mapped here, and the number of its open pieces.
  struct Mapped {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::int32_t opened = 0;  ///< 0: to be closed
  };

  /// Under set_up_mutex_.
  void drop_raised();
  void note_wait(cudaStream_t stream);
  void count_memory(const CudaOptions& options);
  [[nodiscard]] Segment take_segment(std::uint64_t bytes, std::uint64_t bytes_max) override;
  void unmap(const std::byte* address) override;
  /// Frees host memory and closes mappings that nobody uses, for which CUDA waits for all streams:
  /// later, while a stream waits for a word. The progress thread, which raises words, calls this,
  /// so it does not wait for set_up_mutex_ either. Under mutex_.
  void let_go_of_unused();
  [[nodiscard]] void* take_host(std::size_t bytes) override;
  void return_host(void* address) override;
  void pin(void* address, std::size_t bytes) override;
  void unpin(void* address) override;
  void enable_peer(const CudaDevice& peer) const;
  [[nodiscard]] cudaIpcMemHandle_t segment_handle(std::size_t segment);
  [[nodiscard]] std::optional<Foreign> find_foreign(const void* address) const override;
  [[nodiscard]] cudaIpcMemHandle_t foreign_handle(const Foreign& foreign);

  const int gpu_;
  kernel::cuda::ProductChoices products_;
  std::map<IpcToken, Mapped> mapped_;  ///< under `mutex_`

  struct StreamEnd {
    void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  };
  const std::int64_t process_ = ::getpid();
  std::vector<std::optional<cudaIpcMemHandle_t>> segment_handles_;  ///< under `mutex_`
  std::vector<void*> unused_host_;                                  ///< to be freed; under `mutex_`
  /// Handles of recently adopted allocations; under `mutex_`.
  std::map<std::uint64_t, cudaIpcMemHandle_t> foreign_handles_;
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamEnd> clock_stream_;
  std::vector<std::int64_t*> free_words_;  ///< under `mutex_`, as the next
  std::vector<void*> word_blocks_;
  std::mutex set_up_mutex_;                  ///< taken behind a stream's; protects the next
  std::vector<cudaEvent_t> waits_;           ///< recorded behind them
  std::atomic<std::size_t> wait_count_ = 0;  ///< of waits_
  std::mutex clock_mutex_;  ///< protects the members below; separate, since an anchor takes time
  std::shared_ptr<const ClockAnchor> anchor_;
};

}  // namespace heddle
