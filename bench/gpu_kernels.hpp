#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/context.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/kernel.hpp"

/// Times the kernels' CUDA definitions on one GPU and prints a line for each.
namespace heddle::bench {

/// A matrix in the GPU's memory.
class DeviceMatrix {
 public:
  DeviceMatrix(std::int64_t rows, std::int64_t columns);

  [[nodiscard]] TileView view() const { return {memory_.get(), rows_, columns_, rows_}; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Free {
    void operator()(double* memory) const;
  };
  std::int64_t rows_;
  std::int64_t columns_;
  std::unique_ptr<double, Free> memory_;
};

struct GpuBenchOptions {
  int repetitions = 15;
  std::string only;  ///< kernels whose name begins with this
};

class GpuBench {
 public:
  using Definition = std::function<void(const CudaLaunch&)>;

  /// One line of the table: what runs on which tiles. Tiles in `restored` are copied anew from
  /// their partner before each repetition; that is not timed.
  struct Case {
    std::string kernel;
    std::string shape;
    double flops = 0;
    Definition definition;
    KernelParameters parameters;
    std::vector<TileView> tiles;
    std::vector<std::pair<const DeviceMatrix*, const DeviceMatrix*>> restored;  ///< to, from
  };

  explicit GpuBench(const GpuBenchOptions& options);
  ~GpuBench();
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  /// Whether the options ask for the kernel: matrices of one that is not timed need not be made.
  [[nodiscard]] bool wants(const std::string& kernel) const;

  /// Prints the median time of the case and its rate. Throws Error(internal) if the kernel's info
  /// is not zero.
  void time(const Case& timed);

  /// Runs a definition once and waits; throws as `time` does.
  void run(const Definition& definition, const KernelParameters& parameters,
           const std::vector<TileView>& tiles);

  /// Normal random numbers: power, and with it the clock, depends on the data.
  void fill_normal(const DeviceMatrix& matrix);
  /// The same with a diagonal that makes the lower part of it a positive definite matrix.
  void fill_definite(const DeviceMatrix& matrix);

 private:
  void fill(const DeviceMatrix& matrix, double diagonal);
  double repetition_us(const Case& timed);

  GpuBenchOptions options_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::int64_t* info_ = nullptr;
  DeviceMatrix delay_;
  std::vector<double> normal_;
  std::unique_ptr<kernel::cuda::Context> context_;
};

/// The kernels of kernels/kernels.hpp.
void time_cholesky_kernels(GpuBench& bench);

}  // namespace heddle::bench
