#include "bench/peers/cuda_support.hpp"

#include <cstdio>
#include <stdexcept>

#include "bench/peers/normal.hpp"

namespace heddle::peer {
namespace {

enum class Content { normal, spd, probes };

constexpr unsigned threads = 256;

template <Content content>
__global__ void fill_kernel(Block block, std::int64_t n) {
  for (std::int64_t c = blockIdx.y; c < block.columns; c += gridDim.y) {
    for (std::int64_t r = std::int64_t{blockIdx.x} * threads + threadIdx.x; r < block.rows;
         r += std::int64_t{gridDim.x} * threads) {
      const std::int64_t i = block.row + r;
      const std::int64_t j = block.column + c;
      double value = 0;
      if constexpr (content == Content::normal) value = normal(i, j);
      if constexpr (content == Content::spd) value = normal_spd(i, j, n);
      if constexpr (content == Content::probes) value = probe(i, j);
      block.data[r + c * block.leading] = value;
    }
  }
}

template <Content content>
void fill(const Block& block, std::int64_t n) {
  if (block.rows == 0 || block.columns == 0) return;
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>((block.rows - 1) / threads + 1, 64)),
                  static_cast<unsigned>(std::min<std::int64_t>(block.columns, 1024)));
  fill_kernel<content><<<grid, threads>>>(block, n);
  check(cudaGetLastError(), "the generation of a matrix");
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

/// counts[0] cycles of a multiprocessor went by in counts[1] nanoseconds, which are at least
/// `least`.
__global__ void count_cycles(std::uint64_t least, std::uint64_t* counts) {
  const std::uint64_t begin = nanoseconds();
  const long long first = clock64();
  std::uint64_t end = begin;
  while (end - begin < least) end = nanoseconds();
  counts[0] = static_cast<std::uint64_t>(clock64() - first);
  counts[1] = end - begin;
}

[[noreturn]] void fail(const char* operation, const std::string& reason) {
  throw std::runtime_error(std::string(operation) + ": " + reason + "\n");
}

}  // namespace

void check(cudaError_t status, const char* operation) {
  if (status != cudaSuccess) fail(operation, cudaGetErrorString(status));
}
void check(cublasStatus_t status, const char* operation) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(operation, cublasGetStatusString(status));
}
void check(cusolverStatus_t status, const char* operation) {
  if (status != CUSOLVER_STATUS_SUCCESS) {
    fail(operation, "cuSOLVER's status " + std::to_string(static_cast<int>(status)));
  }
}

int gpu_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

BlasHandle make_blas() {
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  return BlasHandle(handle);
}
SolverHandle make_solver() {
  cusolverDnHandle_t handle = nullptr;
  check(cusolverDnCreate(&handle), "cusolverDnCreate");
  return SolverHandle(handle);
}
SolverParameters make_solver_parameters() {
  cusolverDnParams_t parameters = nullptr;
  check(cusolverDnCreateParams(&parameters), "cusolverDnCreateParams");
  return SolverParameters(parameters);
}

void fill_normal(const Block& block) {
  fill<Content::normal>(block, 0);
}
void fill_spd(const Block& block, std::int64_t n) {
  fill<Content::spd>(block, n);
}
void fill_probes(double* x, std::int64_t m, std::int64_t k) {
  fill<Content::probes>({.data = x, .rows = m, .columns = k, .leading = m}, 0);
}

double clock_now() {
  const DeviceArray<std::uint64_t> counts(2);
  count_cycles<<<1, 1>>>(500000, counts.data());
  check(cudaGetLastError(), "the measurement of the clock");
  const std::vector<std::uint64_t> values = counts.to_host();
  return 1e3 * static_cast<double>(values[0]) / static_cast<double>(values[1]);
}

std::string figure(const char* name, double value) {
  char text[80];
  std::snprintf(text, sizeof text, " %s=%.4g", name, value);
  return text;
}

}  // namespace heddle::peer
