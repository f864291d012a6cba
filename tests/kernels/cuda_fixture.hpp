#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/context.hpp"
#include "kernels/cuda/launch.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/kernels/pieces.hpp"

/// What tests of the kernels' CUDA definitions share: a GPU's context, tiles in its memory between
/// sentinels, and the comparison with the host's definition.
namespace heddle::test {

/// A copy of a tile in the GPU's memory with sentinels before it, behind it, and in the gap between
/// its rows and its leading dimension. Aligned no better than a double must be. The destructor
/// fails the test if a sentinel has changed.
class DeviceTile {
 public:
  explicit DeviceTile(const GuardedTile& content, std::int64_t gap = 5)
      : rows_(content.rows()),
        columns_(content.columns()),
        leading_(rows_ + gap),
        buffer_(static_cast<std::size_t>(2 * guard + leading_ * columns_), sentinel) {
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) = content(i, j);
    }
    void* memory = nullptr;
    kernel::cuda::check(cudaMalloc(&memory, bytes()), "cudaMalloc");
    memory_ = static_cast<double*>(memory);
    kernel::cuda::check(cudaMemcpy(memory_, buffer_.data(), bytes(), cudaMemcpyHostToDevice),
                        "cudaMemcpy");
    // From pageable memory it returns before all has arrived, and other streams do not wait for it.
    kernel::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  DeviceTile(const DeviceTile&) = delete;
  DeviceTile& operator=(const DeviceTile&) = delete;
  ~DeviceTile() {
    EXPECT_EQ(cudaMemcpy(buffer_.data(), memory_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_TRUE(guards_are_whole());
    static_cast<void>(cudaFree(memory_));
  }

  [[nodiscard]] TileView view() const { return {memory_ + guard, rows_, columns_, leading_}; }

  /// Copies the tile to `to`, of the same shape.
  void fetch(const GuardedTile& to) {
    kernel::cuda::check(cudaMemcpy(buffer_.data(), memory_, bytes(), cudaMemcpyDeviceToHost),
                        "cudaMemcpy");
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) to(i, j) = at(i, j);
    }
  }

 private:
  static constexpr std::int64_t guard = 17;
  static constexpr double sentinel = -7.25e77;

  [[nodiscard]] std::size_t bytes() const { return buffer_.size() * sizeof(double); }
  double& at(std::int64_t i, std::int64_t j) {
    return buffer_[static_cast<std::size_t>(guard + i + j * leading_)];
  }

  [[nodiscard]] bool guards_are_whole() const {
    const auto size = static_cast<std::int64_t>(buffer_.size());
    for (std::int64_t at = 0; at < size; ++at) {
      const std::int64_t inside = at - guard;
      const bool in_tile = inside >= 0 && inside < leading_ * columns_ && inside % leading_ < rows_;
      const double value = buffer_[static_cast<std::size_t>(at)];
      if (!in_tile && std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(sentinel))
        return false;
    }
    return true;
  }

  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t leading_;
  std::vector<double> buffer_;
  double* memory_ = nullptr;
};

/// A stream beside the fixture's, with a context of its own.
class OtherStream {
 public:
  OtherStream() {
    kernel::cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    void* info = nullptr;
    kernel::cuda::check(cudaHostAlloc(&info, sizeof(std::int64_t), cudaHostAllocMapped),
                        "cudaHostAlloc");
    info_ = static_cast<std::int64_t*>(info);
    *info_ = 0;
    context_ = std::make_unique<kernel::cuda::Context>(0, stream_);
  }
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;
  ~OtherStream() {
    context_.reset();
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(info_), cudaSuccess);
  }

  /// Queues a definition on views of the GPU's memory.
  template <class Parameters>
  void start(const std::function<void(const CudaLaunch&)>& definition, const Parameters& parameters,
             const std::vector<TileView>& tiles) {
    const KernelParameters packed(parameters);
    definition({tiles, packed, *context_, info_});
  }
  /// Waits for all that is queued. Returns the first info that is not zero.
  std::int64_t finish() {
    kernel::cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return *info_;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::int64_t* info_ = nullptr;
  std::unique_ptr<kernel::cuda::Context> context_;
};

/// Skips its tests where there is no GPU; otherwise they have a context of the first one.
class CudaKernels : public ::testing::Test {
 protected:
  using Definition = std::function<void(const CudaLaunch&)>;

  void SetUp() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    // CTest looks for these words.
    if (status != cudaSuccess) GTEST_SKIP() << "no GPU to test on: " << cudaGetErrorString(status);
    if (count == 0) GTEST_SKIP() << "no GPU to test on: none is visible";
    using kernel::cuda::check;
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    void* info = nullptr;
    check(cudaHostAlloc(&info, sizeof(std::int64_t), cudaHostAllocMapped), "cudaHostAlloc");
    info_ = static_cast<std::int64_t*>(info);
    context_ = std::make_unique<kernel::cuda::Context>(0, stream_);
  }

  void TearDown() override {
    context_.reset();
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
    if (info_ != nullptr) {
      EXPECT_EQ(cudaFreeHost(info_), cudaSuccess);
    }
  }

  [[nodiscard]] kernel::cuda::Context& context() { return *context_; }

  /// Large products run on these kernels from now on.
  void choose_products(kernel::cuda::ProductChoices choices) {
    context_ = std::make_unique<kernel::cuda::Context>(0, stream_, std::move(choices));
  }

  /// Runs a definition on views of the GPU's memory and waits. Returns info.
  template <class Parameters>
  std::int64_t run_cuda(const Definition& definition, const Parameters& parameters,
                        const std::vector<TileView>& tiles) {
    const KernelParameters packed(parameters);
    *info_ = 0;
    definition({tiles, packed, *context_, info_});
    kernel::cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return *info_;
  }

  /// Runs a definition twice on equal tiles: the results must agree in bits, tiles past the first
  /// `outputs` must keep theirs. The tiles hold the results afterwards.
  template <class Parameters>
  void run_cuda_twice(const Definition& definition, const Parameters& parameters,
                      const std::vector<GuardedTile*>& tiles, std::size_t outputs) {
    std::vector<std::unique_ptr<GuardedTile>> first;
    std::vector<std::unique_ptr<GuardedTile>> again;
    for (auto* results : {&first, &again}) {
      std::vector<std::unique_ptr<DeviceTile>> device;
      std::vector<TileView> views;
      for (const GuardedTile* tile : tiles) {
        device.push_back(std::make_unique<DeviceTile>(*tile));
        views.push_back(device.back()->view());
      }
      ASSERT_EQ(run_cuda(definition, parameters, views), 0);
      for (std::size_t t = 0; t < tiles.size(); ++t) {
        results->push_back(std::make_unique<GuardedTile>(tiles[t]->rows(), tiles[t]->columns()));
        device[t]->fetch(*results->back());
      }
    }
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      ASSERT_TRUE(first[t]->same_bits(*again[t])) << "tile " << t << " is not deterministic";
      if (t >= outputs) {
        ASSERT_TRUE(first[t]->same_bits(*tiles[t])) << "input tile " << t << " has changed";
      }
      tiles[t]->copy_from(*first[t]);
    }
  }

  /// run_cuda_twice, and the outputs must be the host's within `tolerance`. The tiles hold the
  /// GPU's results afterwards.
  template <class Parameters>
  void expect_like_host(const Kernel& kernel, const Definition& definition,
                        const Parameters& parameters, const std::vector<GuardedTile*>& tiles,
                        std::size_t outputs, double tolerance) {
    std::vector<std::unique_ptr<GuardedTile>> host;
    std::vector<TileView> views;
    for (const GuardedTile* tile : tiles) {
      host.push_back(std::make_unique<GuardedTile>(tile->rows(), tile->columns()));
      host.back()->copy_from(*tile);
      views.push_back(host.back()->view());
    }
    ASSERT_EQ(run(kernel, parameters, views), 0);
    ASSERT_NO_FATAL_FAILURE(run_cuda_twice(definition, parameters, tiles, outputs));
    for (std::size_t t = 0; t < outputs; ++t) {
      SCOPED_TRACE("output " + std::to_string(t) + " of " + std::string(kernel.name));
      ASSERT_NO_FATAL_FAILURE(expect_close(*tiles[t], *host[t], tolerance));
    }
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::int64_t* info_ = nullptr;
  std::unique_ptr<kernel::cuda::Context> context_;
};

}  // namespace heddle::test
