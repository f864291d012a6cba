#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/context.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/kernel.hpp"

namespace heddle::test {

/// A tile on the host and one of the same shape on the GPU, both in buffers with sentinels before
/// the tile, behind it, and in the gap between its rows and its leading dimension. The destructor
/// fails the test if a sentinel on the GPU has changed.
class TwinTile {
 public:
  TwinTile(std::int64_t rows, std::int64_t columns, std::int64_t gap = 3)
      : buffer_(static_cast<std::size_t>(2 * guard + (rows + gap) * columns), sentinel),
        view_{buffer_.data() + guard, rows, columns, rows + gap} {
    for_elements([](double& element, std::int64_t, std::int64_t) { element = 0; });
    kernel::cuda::check(cudaMalloc(reinterpret_cast<void**>(&device_), bytes()), "cudaMalloc");
    upload();
  }
  TwinTile(const TwinTile&) = delete;
  TwinTile& operator=(const TwinTile&) = delete;
  ~TwinTile() {
    EXPECT_TRUE(guards_are_whole());
    static_cast<void>(cudaFree(device_));
  }

  [[nodiscard]] const TileView& host() const { return view_; }
  [[nodiscard]] TileView device() const {
    return {device_ + guard, view_.rows, view_.columns, view_.leading};
  }
  double& operator()(std::int64_t i, std::int64_t j) const { return view_(i, j); }
  [[nodiscard]] std::int64_t rows() const { return view_.rows; }
  [[nodiscard]] std::int64_t columns() const { return view_.columns; }

  void fill_random(std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for_elements([&](double& element, std::int64_t, std::int64_t) { element = uniform(random); });
  }

  void copy_from(const TwinTile& other) {
    for_elements(
        [&](double& element, std::int64_t i, std::int64_t j) { element = other.view_(i, j); });
  }

  /// The GPU's tile := the host's. Waits until it has arrived, which cudaMemcpy from pageable
  /// memory does not, nor do the kernels' streams.
  void upload() {
    kernel::cuda::check(cudaMemcpy(device_, buffer_.data(), bytes(), cudaMemcpyHostToDevice),
                        "cudaMemcpy");
    kernel::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  /// The whole buffer on the GPU, sentinels included.
  [[nodiscard]] std::vector<double> download() const {
    std::vector<double> all(buffer_.size());
    kernel::cuda::check(cudaMemcpy(all.data(), device_, bytes(), cudaMemcpyDeviceToHost),
                        "cudaMemcpy");
    return all;
  }

  /// The host's tile := the GPU's.
  void fetch() {
    const std::vector<double> all = download();
    for_elements(
        [&](double& element, std::int64_t i, std::int64_t j) { element = all[place(i, j)]; });
  }

  /// Whether the GPU's buffers are equal in every bit; leading dimensions must be.
  [[nodiscard]] bool same_bits_on_device(const TwinTile& other) const {
    const std::vector<double> mine = download();
    const std::vector<double> others = other.download();
    if (mine.size() != others.size()) return false;
    for (std::size_t at = 0; at < mine.size(); ++at) {
      if (bits(mine[at]) != bits(others[at])) return false;
    }
    return true;
  }

  /// Where element (i, j) is in download().
  [[nodiscard]] std::size_t place(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(guard + i + j * view_.leading);
  }

 private:
  static constexpr std::int64_t guard = 16;
  static constexpr double sentinel = -7.25e77;

  static std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
  [[nodiscard]] std::size_t bytes() const { return buffer_.size() * sizeof(double); }

  template <class Work>
  void for_elements(const Work& work) {
    for (std::int64_t j = 0; j < view_.columns; ++j) {
      for (std::int64_t i = 0; i < view_.rows; ++i) work(view_(i, j), i, j);
    }
  }

  [[nodiscard]] bool guards_are_whole() const {
    const std::vector<double> all = download();
    for (std::size_t at = 0; at < all.size(); ++at) {
      const std::int64_t inside = static_cast<std::int64_t>(at) - guard;
      const bool in_tile = inside >= 0 && inside < view_.leading * view_.columns &&
                           inside % view_.leading < view_.rows;
      if (!in_tile && bits(all[at]) != bits(sentinel)) return false;
    }
    return true;
  }

  std::vector<double> buffer_;
  TileView view_;
  double* device_ = nullptr;
};

/// A stream of the first GPU, and kernels run on it and on the host.
class CudaQrTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    // CTest looks for these words.
    if (status != cudaSuccess) GTEST_SKIP() << "no GPU to test on: " << cudaGetErrorString(status);
    if (count == 0) GTEST_SKIP() << "no GPU to test on: none is visible";
    kernel::cuda::check(cudaSetDevice(0), "cudaSetDevice");
    kernel::cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    context_ = std::make_unique<kernel::cuda::Context>(0, stream_);
  }

  void TearDown() override {
    context_.reset();
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  /// Runs a kernel on the GPU's tiles, main output first, and waits.
  template <class Parameters>
  void run_cuda(const Kernel& kernel, const Parameters& parameters,
                const std::vector<const TwinTile*>& tiles) {
    std::vector<TileView> views;
    for (const TwinTile* tile : tiles) views.push_back(tile->device());
    const KernelParameters packed(parameters);
    std::int64_t info = 0;
    kernel.cuda({views, packed, *context_, &info});
    kernel::cuda::check(cudaStreamSynchronize(stream_), kernel.name);
    EXPECT_EQ(info, 0);
  }

  template <class Parameters>
  static void run_host(const Kernel& kernel, const Parameters& parameters,
                       const std::vector<const TwinTile*>& tiles) {
    std::vector<TileView> views;
    for (const TwinTile* tile : tiles) views.push_back(tile->host());
    const KernelParameters packed(parameters);
    EXPECT_EQ(kernel.host({views, packed}), 0);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<kernel::cuda::Context> context_;
};

}  // namespace heddle::test
