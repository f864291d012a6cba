#include <algorithm>
#include <climits>

#include "kernels/cuda/own_kernels.hpp"

namespace heddle::kernel::cuda {
namespace {

struct Copy {
  __device__ double operator()(double, double from) const { return from; }
};
struct Subtract {
  __device__ double operator()(double to, double from) const { return to - from; }
};

constexpr int element_threads = 256;
/// Columns per thread: enough loads under way to fill the memory's bandwidth.
constexpr int element_columns = 4;

template <class Operation>
__global__ void __launch_bounds__(element_threads)
    element_kernel(TileView to, const double* __restrict__ from, std::int64_t from_leading) {
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * element_threads + static_cast<int>(threadIdx.x);
  if (i >= to.rows) return;
#pragma unroll 4
  for (std::int64_t j = blockIdx.y; j < to.columns; j += gridDim.y) {
    double& element = to.data[i + j * to.leading];
    element = Operation{}(element, from[i + j * from_leading]);
  }
}

template <class Operation>
void element_by_element(Context& context, const TileView& from, const TileView& to) {
  if (to.rows == 0 || to.columns == 0) return;
  const auto blocks = static_cast<unsigned>((to.rows + element_threads - 1) / element_threads);
  const auto columns = static_cast<unsigned>(
      std::min<std::int64_t>((to.columns + element_columns - 1) / element_columns, 65535));
  element_kernel<Operation><<<dim3(blocks, columns), element_threads, 0, context.stream()>>>(
      to, from.data, from.leading);
  check(cudaGetLastError(), "launch of an elementwise kernel");
}

__global__ void __launch_bounds__(element_threads)
    report_kernel(TileView a, const int* status, std::int64_t* info) {
  __shared__ int first;
  if (threadIdx.x == 0) first = *status > 0 ? *status : INT_MAX;
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.x); j < a.columns; j += element_threads) {
    if (isnan(a.data[j + j * a.leading])) atomicMin(&first, j + 1);
  }
  __syncthreads();
  if (threadIdx.x == 0 && first < INT_MAX && *info == 0) *info = first;
}

}  // namespace

void launch_copy(Context& context, const TileView& from, const TileView& to) {
  element_by_element<Copy>(context, from, to);
}

void launch_subtract(Context& context, const TileView& from, const TileView& to) {
  element_by_element<Subtract>(context, from, to);
}

void launch_report(Context& context, const TileView& a, const int* status, std::int64_t* info) {
  report_kernel<<<1, element_threads, 0, context.stream()>>>(a, status, info);
  check(cudaGetLastError(), "launch of cuSOLVER's report");
}

}  // namespace heddle::kernel::cuda
