#pragma once

#include <cstddef>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "kernels/cuda/product_choice.hpp"

namespace heddle::kernel::cuda {

class GemmPlans;

/// What cuBLAS recommends on Hopper; smaller ones cost it algorithms.
inline constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;

/// Throws Error(internal) that names `operation` and CUDA's error text, unless the call succeeded.
void check(cudaError_t status, std::string_view operation);
void check(cublasStatus_t status, std::string_view operation);
void check(cusolverStatus_t status, std::string_view operation);

/// Called before a context loads code, allocates or frees memory: CUDA may wait for all of the
/// GPU's streams then, and lets no other thread go on. What it returns is held meanwhile.
using SetUp = std::function<std::unique_lock<std::mutex>()>;

/// What kernels on one stream of one GPU share: the libraries' handles, bound to the stream with
/// workspace of their own (so that results do not depend on what other streams do), and scratch
/// memory.
///
/// Thread: one at a time, the GPU current. Everything is made when it is first asked for, or by
/// prepare().
class Context {
 public:
  /// `choices` is what large products run on. Without `set_up` nothing is held.
  Context(int device, cudaStream_t stream, ProductChoices choices = built_in_product_choices(),
          SetUp set_up = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Makes what most kernels need: cuBLAS's handle, and scratch memory for tiles of up to 2048.
  /// Waits for the stream.
  void prepare();

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] cublasHandle_t blas();
  [[nodiscard]] cusolverDnHandle_t solver();
  /// The workspace of blas(); cublasLt calls on the stream may use it too.
  [[nodiscard]] std::span<std::byte> blas_workspace() const;
  [[nodiscard]] GemmPlans& gemm_plans() const;

  /// At least `count` doubles of device memory, aligned to 256 bytes; what an earlier call
  /// returned is the same memory. Kernels of the stream use it one after the other. Growing waits
  /// for the stream: kernels ask once for all that they need, by sizes that repeat.
  [[nodiscard]] double* scratch(std::size_t count);

  /// At least `count` device integers that are zero. A kernel of the stream uses them and leaves
  /// them zero: clearing them beforehand would be a launch of its own, which on a busy GPU waits.
  [[nodiscard]] int* counters(std::size_t count);

  /// Four device integers for the libraries' `devInfo`.
  [[nodiscard]] int* status();

 private:
  struct Handles;
  [[nodiscard]] std::unique_lock<std::mutex> set_up() const;

  int device_;
  cudaStream_t stream_;
  SetUp set_up_;
  int multiprocessors_ = 0;
  std::unique_ptr<Handles> handles_;
};

}  // namespace heddle::kernel::cuda
