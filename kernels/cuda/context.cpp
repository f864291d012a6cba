#include "kernels/cuda/context.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"
#include "kernels/cuda/gemm_plans.hpp"
#include "kernels/cuda/libraries.hpp"

namespace heddle::kernel::cuda {
namespace {

[[noreturn]] void fail(std::string_view operation, std::string_view what) {
  throw Error(ErrorCode::internal, fmt::format("{}: {}", operation, what));
}

}  // namespace

void check(cudaError_t status, std::string_view operation) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that is not sticky is reported once
  fail(operation, fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cublasStatus_t status, std::string_view operation) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(operation, cublas().status_text(status));
}

void check(cusolverStatus_t status, std::string_view operation) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  fail(operation, fmt::format("cuSOLVER status {}", static_cast<int>(status)));
}

namespace {

constexpr std::size_t prepared_scratch = std::size_t{2048} * 2048;
constexpr std::size_t prepared_counters = 1024;

template <class T>
T* allocate(std::size_t count, std::string_view purpose) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), purpose);
  return static_cast<T*>(memory);
}

}  // namespace

struct Context::Handles {
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  std::byte* blas_workspace = nullptr;
  double* scratch = nullptr;
  std::size_t scratch_count = 0;
  int* counters = nullptr;
  std::size_t counter_count = 0;
  int* status = nullptr;
  GemmPlans gemm_plans;
};

Context::Context(int device, cudaStream_t stream, ProductChoices choices, SetUp set_up)
    : device_(device),
      stream_(stream),
      set_up_(std::move(set_up)),
      handles_(new Handles{.gemm_plans = GemmPlans(std::move(choices))}) {
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device_),
        "cudaDeviceGetAttribute");
}

std::unique_lock<std::mutex> Context::set_up() const {
  return set_up_ ? set_up_() : std::unique_lock<std::mutex>();
}

/// After a fault of the GPU these calls fail too; their errors are ignored.
Context::~Context() {
  if (handles_->solver != nullptr) static_cast<void>(cusolver().destroy(handles_->solver));
  if (handles_->blas != nullptr) static_cast<void>(cublas().destroy(handles_->blas));
  for (void* memory :
       {static_cast<void*>(handles_->blas_workspace), static_cast<void*>(handles_->scratch),
        static_cast<void*>(handles_->counters), static_cast<void*>(handles_->status)}) {
    if (memory != nullptr) static_cast<void>(cudaFree(memory));
  }
}

void Context::prepare() {
  static_cast<void>(blas());
  static_cast<void>(scratch(prepared_scratch));
  static_cast<void>(counters(prepared_counters));
  // A stream may be destroyed before it has run a kernel.
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

cublasHandle_t Context::blas() {
  if (handles_->blas == nullptr) {
    const auto held = set_up();
    check(cublas().create(&handles_->blas), "cublasCreate");
    handles_->blas_workspace =
        allocate<std::byte>(blas_workspace_bytes, "cudaMalloc of cuBLAS's workspace");
    check(cublas().set_stream(handles_->blas, stream_), "cublasSetStream");
    // After cublasSetStream, which takes the workspace away.
    check(cublas().set_workspace(handles_->blas, handles_->blas_workspace, blas_workspace_bytes),
          "cublasSetWorkspace");
  }
  return handles_->blas;
}

cusolverDnHandle_t Context::solver() {
  if (handles_->solver == nullptr) {
    const auto held = set_up();
    check(cusolver().create(&handles_->solver), "cusolverDnCreate");
    check(cusolver().set_stream(handles_->solver, stream_), "cusolverDnSetStream");
  }
  return handles_->solver;
}

std::span<std::byte> Context::blas_workspace() const {
  return {handles_->blas_workspace, blas_workspace_bytes};
}

GemmPlans& Context::gemm_plans() const {
  return handles_->gemm_plans;
}

double* Context::scratch(std::size_t count) {
  if (count > handles_->scratch_count) {
    count = std::max(count, handles_->scratch_count + handles_->scratch_count / 2);
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const auto held = set_up();
    check(cudaFree(handles_->scratch), "cudaFree of scratch memory");
    handles_->scratch = nullptr;
    handles_->scratch_count = 0;
    handles_->scratch = allocate<double>(count, "cudaMalloc of kernels' scratch memory");
    handles_->scratch_count = count;
  }
  return handles_->scratch;
}

int* Context::counters(std::size_t count) {
  if (count > handles_->counter_count) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const auto held = set_up();
    check(cudaFree(handles_->counters), "cudaFree of counters");
    handles_->counters = nullptr;
    handles_->counter_count = 0;
    handles_->counters = allocate<int>(count, "cudaMalloc of counters");
    check(cudaMemsetAsync(handles_->counters, 0, count * sizeof(int), stream_),
          "cudaMemsetAsync of counters");
    handles_->counter_count = count;
  }
  return handles_->counters;
}

int* Context::status() {
  if (handles_->status == nullptr) {
    const auto held = set_up();
    handles_->status = allocate<int>(4, "cudaMalloc of a status");
  }
  return handles_->status;
}

}  // namespace heddle::kernel::cuda
