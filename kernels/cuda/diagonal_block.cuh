#pragma once

#include "kernels/cuda/mma.cuh"

/// Cholesky of a 64 x 64 block and the inverse of its factor by one thread block, for its latency:
/// the chain from pivot to pivot is all that counts.
///
/// The block A stands on an identity, in a *stacked* block of 128 rows. What eliminates A's
/// columns, A := A * inv(L)^T, turns the identity into inv(L)^T. Sixteen columns at a time: for
/// columns [c, c + 16), c = 0, 16, 32, 48, the rows that change are A's from c on and the
/// identity's before c + 16, together the 80 rows of the stacked block from c on. The sixteen rows
/// at their top are in the lanes of two warps, both of which eliminate them in registers; either
/// has 32 of the 64 rows below too. Then all warps update the columns to the right, a product of
/// depth 16.
namespace heddle::kernel::cuda::device {

inline constexpr int stacked_stride = 132;  ///< 4 modulo 16, as block_stride
inline constexpr int stacked_elements = block_size * stacked_stride;
inline constexpr int strip = 16;  ///< columns at a time
inline constexpr int elimination_warps = 2;

/// 1 / x to within 2 units in the last place for x in [2^-1000, 2^1000], without a branch, which
/// would keep the compiler from filling the time with other columns' updates.
__device__ inline double quick_reciprocal(double x) {
  double r = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));  // to 20 bits
  const double error = fma(-x, r, 1.0);
  return fma(r, fma(error, error, error), r);
}

/// A lane's rows of a strip.
struct StripRows {
  double top[strip];    ///< of row lane % 16 of the sixteen at the top
  double below[strip];  ///< of one of the 64 below
  double pivot = 0;     ///< of column lane % 16
};

/// Eliminates the columns one after the other. They stay as they are at their turn: those of the
/// factor times the root of their pivot. Returns a bit for each column, twice, whose pivot is not
/// a positive number, or so small or large that its reciprocal is no normal number.
///
/// The next pivot, which all lanes compute alike, waits for one reciprocal and two operations; what
/// the lanes tell each other is known before the reciprocal.
__device__ inline unsigned eliminate_strip(StripRows& rows) {
  constexpr unsigned all = 0xffffffffU;
  const int lane = static_cast<int>(threadIdx.x) % strip;
  double next = __shfl_sync(all, rows.top[0], 0);
#pragma unroll
  for (int k = 0; k < strip; ++k) {
    const double pivot = next;
    if (lane == k) rows.pivot = pivot;
    if (k + 1 == strip) break;
    const double reciprocal = quick_reciprocal(pivot);
    const double before = __shfl_sync(all, rows.top[k + 1], k + 1);
    double column[strip];  // of the top rows
#pragma unroll
    for (int j = k + 1; j < strip; ++j) column[j] = __shfl_sync(all, rows.top[k], j);
    next = fma(-column[k + 1] * reciprocal, column[k + 1], before);
    const double top = -rows.top[k] * reciprocal;
    const double below = -rows.below[k] * reciprocal;
#pragma unroll
    for (int j = k + 1; j < strip; ++j) {
      rows.top[j] = fma(top, column[j], rows.top[j]);
      rows.below[j] = fma(below, column[j], rows.below[j]);
    }
  }
  return __ballot_sync(all, !(rows.pivot >= 0x1p-1000 && rows.pivot <= 0x1p1000));
}

/// The rows of warp 0 or 1 for the strip at `first`.
__device__ inline void load_strip(StripRows& rows, const double* stacked, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int below = first + strip + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int k = 0; k < strip; ++k) {
    const double* column = stacked + (first + k) * stacked_stride;
    rows.top[k] = column[first + lane % strip];
    rows.below[k] = column[below];
  }
}

/// Divides the columns by the roots of their pivots. The top rows are warp 0's to store.
__device__ inline void store_strip(const StripRows& rows, double* stacked, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int below = first + strip + static_cast<int>(threadIdx.x);
  const bool stores_top = threadIdx.x < strip;
  const double root = rsqrt(rows.pivot);
#pragma unroll
  for (int k = 0; k < strip; ++k) {
    const double scale = __shfl_sync(0xffffffffU, root, k);
    double* column = stacked + (first + k) * stacked_stride;
    column[below] = rows.below[k] * scale;
    if (stores_top && lane >= k) {
      column[first + lane] = (lane == k ? rows.pivot : rows.top[k]) * scale;
    }
  }
}

/// The columns right of the strip at `first` -= the strip's rows below its top * the same rows of
/// those that are columns too, transposed.
__device__ inline void update_right_of_strip(double* stacked, int first) {
  const int g = BlockShare::group();
  const int q = BlockShare::place();
  const int right = first + strip;
  double* rows = stacked + right + BlockShare::warp_row() + g;
  for (int column = right + static_cast<int>(threadIdx.x) / 128 * 8; column < block_size;
       column += 16) {
    double* to = rows + (column + 2 * q) * stacked_stride;
    double share[4] = {to[0], to[stacked_stride], to[8], to[stacked_stride + 8]};
#pragma unroll
    for (int k = 0; k < strip; k += 4) {
      const int at = (first + k + q) * stacked_stride;
      multiply_add(share, -rows[at], -rows[at + 8], stacked[at + column + g]);
    }
    to[0] = share[0];
    to[stacked_stride] = share[1];
    to[8] = share[2];
    to[stacked_stride + 8] = share[3];
  }
}

/// A stacked block := the factor, lower part only, on the inverse transposed, upper part only.
/// Visible to all behind a barrier. `meanwhile(strip_index)` runs in warps 2 to 7 while the others
/// eliminate. Returns to thread 0 the first column whose pivot failed (eliminate_strip), 64 if
/// there is none.
template <class Meanwhile>
__device__ inline int factor_stacked(double* stacked, Meanwhile meanwhile) {
  const bool eliminates = threadIdx.x < 32 * elimination_warps;
  int first_failed = block_size;
#pragma unroll 1
  for (int first = 0; first < block_size; first += strip) {
    StripRows rows;
    if (eliminates) load_strip(rows, stacked, first);
    // Warp 0 overwrites the top rows that warp 1 has read.
    __syncthreads();
    if (eliminates) {
      const unsigned failed = eliminate_strip(rows);
      if (failed != 0 && first_failed == block_size) {
        first_failed = first + __ffs(static_cast<int>(failed)) - 1;
      }
      store_strip(rows, stacked, first);
    } else {
      meanwhile(first / strip);
    }
    __syncthreads();
    update_right_of_strip(stacked, first);
    // Behind the last strip there is nothing to update, and store_strip has had its barrier.
    if (first + strip < block_size) __syncthreads();
  }
  return first_failed;
}

}  // namespace heddle::kernel::cuda::device
