#pragma once

#include <cstddef>
#include <cstdint>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/peer.hpp"

/// What the peers on GPUs share: errors, device memory, handles, test matrices, options. All work
/// is queued on the current GPU's default stream unless said otherwise.
namespace heddle::peer {

/// Throws std::runtime_error that names `operation` and what the library says; does nothing on
/// success.
void check(cudaError_t status, const char* operation);
void check(cublasStatus_t status, const char* operation);
void check(cusolverStatus_t status, const char* operation);

/// GPUs that this process can use.
[[nodiscard]] int gpu_count();

/// Makes `gpu` the current one, until it ends.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(gpu), "cudaSetDevice");
  }
  ~CurrentGpu() { cudaSetDevice(before_); }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int before_ = 0;
};

/// Memory of one GPU, not initialised; freed with the object, which waits for the GPU.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  /// On the current GPU.
  explicit DeviceArray(std::int64_t count) : count_(count) {
    void* memory = nullptr;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T);
    check(cudaGetDevice(&gpu_), "cudaGetDevice");
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    data_ = static_cast<T*>(memory);
  }
  ~DeviceArray() {
    if (data_ == nullptr) return;
    // Unchecked, so that an error on its way is not hidden behind those that it causes here.
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(gpu_);
    cudaFree(data_);
    cudaSetDevice(before);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)),
        gpu_(other.gpu_) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    std::swap(gpu_, other.gpu_);
    return *this;
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

  void clear() { check(cudaMemset(data_, 0, bytes()), "cudaMemset"); }

  /// Waits for what the default stream has been given.
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
  int gpu_ = 0;
};

struct DestroyHandle {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  void operator()(cusolverDnHandle_t handle) const { cusolverDnDestroy(handle); }
  void operator()(cusolverDnParams_t parameters) const { cusolverDnDestroyParams(parameters); }
};
using BlasHandle = std::unique_ptr<cublasContext, DestroyHandle>;
using SolverHandle = std::unique_ptr<cusolverDnContext, DestroyHandle>;
using SolverParameters = std::unique_ptr<cusolverDnParams, DestroyHandle>;

[[nodiscard]] BlasHandle make_blas();
[[nodiscard]] SolverHandle make_solver();
[[nodiscard]] SolverParameters make_solver_parameters();

/// Waits for the current GPU.
inline void synchronize() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/// A column-major block of a test matrix in device memory: its first element is (row, column).
struct Block {
  double* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// Sets each element to normal(i, j) (normal.hpp).
void fill_normal(const Block& block);
/// Sets each element, those above the diagonal as well, to normal_spd(i, j, n).
void fill_spd(const Block& block, std::int64_t n);
/// Sets the m×k `x` to the random vectors of checks, probe(i, s).
void fill_probes(double* x, std::int64_t m, std::int64_t k);

/// The clock of the current GPU's multiprocessors now, MHz, counted over half a millisecond on the
/// GPU itself. Right after a long run it still is what the power limit made of it.
[[nodiscard]] double clock_now();

/// The options of the factorization drivers on GPUs.
struct GpuOptions {
  std::vector<std::int64_t> n{16384};
  int repetitions = 3;
  int warm_up = 1;
  bool check = false;
};

inline void add_gpu_options(CLI::App& app, GpuOptions& options) {
  app.add_option("-n,--n", options.n, "columns of the matrix, one or several")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--repetitions", options.repetitions, "timed runs")->check(CLI::Range(1, 1000));
  app.add_option("--warm-up", options.warm_up, "runs before the first timed one");
  app.add_flag("--check", options.check, "see whether the factors are right; exit 1 if not");
}

/// What a scaled residual may be if rounding alone made it.
constexpr double residual_max = 10;

/// A figure of a driver's line: " name=value".
[[nodiscard]] std::string figure(const char* name, double value);

}  // namespace heddle::peer
