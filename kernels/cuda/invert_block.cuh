#pragma once

#include "kernels/cuda/mma.cuh"

namespace heddle::kernel::cuda::device {

/// inverse := inv(l) of lower triangles in shared memory, by forward substitution on the identity;
/// `inverse` is stored by rows. Thread (i, j) of 16 x 16 has the elements congruent to (i, j).
__device__ inline void invert_block(const double* l, double* inverse) {
  const int ti = static_cast<int>(threadIdx.x) % 16;
  const int tj = static_cast<int>(threadIdx.x) / 16;
  double value[4][4];
#pragma unroll
  for (int a = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b < 4; ++b) value[a][b] = ti + 16 * a == tj + 16 * b ? 1 : 0;
  }
#pragma unroll
  for (int a_pivot = 0; a_pivot < 4; ++a_pivot) {
#pragma unroll 1
    for (int t = 0; t < 16; ++t) {
      const int k = 16 * a_pivot + t;
      if (ti == t) {
        const double pivot = l[k * block_stride + k];
#pragma unroll
        for (int b = 0; b < 4; ++b) {
          inverse[k * block_stride + tj + 16 * b] = value[a_pivot][b] / pivot;
        }
      }
      __syncthreads();
#pragma unroll
      for (int a = a_pivot; a < 4; ++a) {
        const int i = ti + 16 * a;
        if (i <= k) continue;
        const double factor = l[k * block_stride + i];
#pragma unroll
        for (int b = 0; b <= a_pivot; ++b) {
          value[a][b] -= factor * inverse[k * block_stride + tj + 16 * b];
        }
      }
    }
  }
  __syncthreads();
}

}  // namespace heddle::kernel::cuda::device
