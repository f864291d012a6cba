#pragma once

#include <cstdint>
#include <cuda_pipeline_primitives.h>

/// Products of 64 x 64 blocks on the tensor cores, for thread blocks of 256 threads. A block lies
/// in shared memory by columns.
namespace heddle::kernel::cuda::device {

inline constexpr int block_size = 64;
/// From one column to the next in shared memory: 4 modulo 16, so that the 4 x 4 elements that half
/// a warp reads for its operands lie in different banks, whichever way they are transposed.
inline constexpr int block_stride = 68;
inline constexpr int block_elements = block_size * block_stride;
inline constexpr int block_threads = 256;

/// c (16 x 8) += a (16 x 4) * b (4 x 8), spread over a warp: lane 4g + q has a(g, q), a(g + 8, q),
/// b(q, g), and of c (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1).
__device__ inline void multiply_add(double (&c)[4], double a_upper, double a_lower, double b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a_upper), "d"(a_lower), "d"(b));
#else
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a_upper), "d"(b));
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[2]), "+d"(c[3])
      : "d"(a_lower), "d"(b));
#endif
}

/// A thread's share of a 64 x 64 block: each of the eight warps has 16 rows and 32 columns. Warps w
/// and w + 4, which run on the same quarter of a multiprocessor, have different rows, so that
/// triangles are work for all quarters.
struct BlockShare {
  static constexpr int warp_rows = 16;
  static constexpr int warp_columns = 32;
  double value[4][4] = {};

  [[nodiscard]] __device__ static int warp_row() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    return (warp < 4 ? warp : 7 - warp) * warp_rows;
  }
  [[nodiscard]] __device__ static int warp_column() {
    return static_cast<int>(threadIdx.x) / 128 * warp_columns;
  }
  [[nodiscard]] __device__ static int group() { return static_cast<int>(threadIdx.x) % 32 / 4; }
  [[nodiscard]] __device__ static int place() { return static_cast<int>(threadIdx.x) % 4; }

  /// Calls visit(row, column, value) for each element of the share.
  template <class Visit>
  __device__ void for_each(Visit visit) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        visit(warp_row() + group() + e / 2 * 8, warp_column() + 8 * t + 2 * place() + e % 2,
              value[t][e]);
      }
    }
  }

  __device__ void store(double* block) {
    for_each([&](int i, int j, double x) { block[j * block_stride + i] = x; });
  }
};

/// share += a * b, or a * b^T, of blocks in shared memory, in the tiles [first, last) of 8 columns
/// that the warp has, over columns [begin, end) of a. `stride` is from one column of b to the next.
template <bool transposed, int stride, int first, int last>
__device__ inline void add_tiles(BlockShare& share, const double* a, const double* b, int begin,
                                 int end) {
  const int g = BlockShare::group();
  const int q = BlockShare::place();
  const int row = BlockShare::warp_row() + g;
  const int column = BlockShare::warp_column() + g;
#pragma unroll 4
  for (int k = begin + q; k < end; k += 4) {
    const double upper = a[k * block_stride + row];
    const double lower = a[k * block_stride + row + 8];
#pragma unroll
    for (int t = first; t < last; ++t) {
      const int j = column + 8 * t;
      multiply_add(share.value[t], upper, lower,
                   transposed ? b[k * stride + j] : b[j * stride + k]);
    }
  }
}

/// share += a * b, or a * b^T, over the first `depth` (a multiple of 4) columns of a.
template <bool transposed, int stride = block_stride>
__device__ inline void multiply_add(BlockShare& share, const double* a, const double* b,
                                    int depth = block_size) {
  add_tiles<transposed, stride, 0, 4>(share, a, b, 0, depth);
}

/// The same where b, or b^T, is an upper triangle: a tile of columns ends the sum at its own end.
template <bool transposed, int stride = block_stride>
__device__ inline void multiply_add_upper(BlockShare& share, const double* a, const double* b) {
  const int column = BlockShare::warp_column();
  add_tiles<transposed, stride, 0, 4>(share, a, b, 0, column + 8);
  add_tiles<transposed, stride, 1, 4>(share, a, b, column + 8, column + 16);
  add_tiles<transposed, stride, 2, 4>(share, a, b, column + 16, column + 24);
  add_tiles<transposed, stride, 3, 4>(share, a, b, column + 24, column + 32);
}

/// share += a * a^T, of which only the lower part is wanted.
__device__ inline void multiply_add_lower(BlockShare& share, const double* a) {
  const int wanted =
      (BlockShare::warp_row() + BlockShare::warp_rows - BlockShare::warp_column()) / 8;
  if (wanted >= 4) {
    add_tiles<true, block_stride, 0, 4>(share, a, a, 0, block_size);
  } else if (wanted == 2) {
    add_tiles<true, block_stride, 0, 2>(share, a, a, 0, block_size);
  }
}

/// Starts to copy one double into shared memory, a zero unless `inside`. `from` need not be
/// readable then. pipeline_memcpy_async of the toolkit would branch.
__device__ inline void copy_async(double* to, const double* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(address), "l"(from), "r"(inside ? 8 : 0)
               : "memory");
}

/// Starts to copy the rows x columns block at `from` into shared memory, with zeros around it.
/// Complete for the thread's own share after wait_for_blocks, for all after __syncthreads too.
__device__ inline void load_block(double* block, const double* from, std::int64_t leading, int rows,
                                  int columns) {
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x); at < block_size * block_size; at += block_threads) {
    const int i = at % block_size;
    const int j = at / block_size;
    const bool inside = i < rows && j < columns;
    copy_async(block + j * block_stride + i, inside ? from + i + j * leading : from, inside);
  }
}

__device__ inline void wait_for_blocks() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/// Calls visit(row, column) for the elements of a block, neighbours in a column by neighbouring
/// threads.
template <class Visit>
__device__ inline void for_block(Visit visit) {
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x); at < block_size * block_size; at += block_threads) {
    visit(at % block_size, at / block_size);
  }
}

/// Place of element `index` of a lower triangle that is counted by rows.
struct TriangleIndex {
  int row;
  int column;
};

__device__ inline TriangleIndex triangle_index(int index) {
  int row = static_cast<int>((sqrtf(8.0F * static_cast<float>(index) + 1.0F) - 1.0F) / 2.0F);
  while (row * (row + 1) / 2 > index) --row;
  while ((row + 1) * (row + 2) / 2 <= index) ++row;
  return {row, index - row * (row + 1) / 2};
}

}  // namespace heddle::kernel::cuda::device
