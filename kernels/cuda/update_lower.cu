#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/own_kernels.hpp"

/// cuBLAS's DSYRK fills a GPU only from some 2000 columns on. Smaller updates are one kernel here,
/// a thread block for each 64 x 64 block on and below the diagonal.
namespace heddle::kernel::cuda {
namespace {

using device::block_size;
using device::block_stride;

/// Four warps of 32 x 32 each.
constexpr int update_threads = 128;
/// Columns of `a` per stage, and stages in shared memory: while one is multiplied two are loaded.
constexpr int stage_depth = 16;
constexpr int stage_count = 3;
constexpr int operand_elements = stage_depth * block_stride;
constexpr int update_bytes = stage_count * 2 * operand_elements * static_cast<int>(sizeof(double));

struct LowerUpdate {
  double* c;
  std::int64_t ldc;
  const double* a;
  std::int64_t lda;
  int rows;
  int columns;
  int depth;
  int block_columns;
};

/// Rows [row, row + 64) of columns [k, k + stage_depth) of a, zeros where there are none.
__device__ void load_operand(double* operand, const LowerUpdate& update, int row, int row_end,
                             int k) {
#pragma unroll
  for (int at = static_cast<int>(threadIdx.x); at < block_size * stage_depth;
       at += update_threads) {
    const int i = at % block_size;
    const int j = at / block_size;
    const bool inside = row + i < row_end && k + j < update.depth;
    const double* from = update.a + (row + i) + (k + j) * update.lda;
    device::copy_async(operand + j * block_stride + i, inside ? from : update.a, inside);
  }
}

/// share += (32 rows of a from `row`) * (32 rows of b from `column`)^T, one stage deep.
__device__ void multiply_stage(double (&share)[2][4][4], const double* a, const double* b, int row,
                               int column) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int k = 0; k < stage_depth; k += 4) {
    const double* a_column = a + (k + q) * block_stride + row + g;
    const double* b_column = b + (k + q) * block_stride + column + g;
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        device::multiply_add(share[s][t], a_column[16 * s], a_column[16 * s + 8], b_column[8 * t]);
      }
    }
  }
}

__global__ void __launch_bounds__(update_threads) update_lower_kernel(LowerUpdate update) {
  extern __shared__ double stages[];
  const int square = update.block_columns * (update.block_columns + 1) / 2;
  const int index = static_cast<int>(blockIdx.x);
  const device::TriangleIndex place =
      index < square
          ? device::triangle_index(index)
          : device::TriangleIndex{update.block_columns + (index - square) / update.block_columns,
                                  (index - square) % update.block_columns};
  const int row = place.row * block_size;
  const int column = place.column * block_size;
  const auto load = [&](int stage) {
    double* operands = stages + stage % stage_count * 2 * operand_elements;
    load_operand(operands, update, row, update.rows, stage * stage_depth);
    load_operand(operands + operand_elements, update, column, update.columns, stage * stage_depth);
  };
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp % 2 * 32;
  const int warp_column = warp / 2 * 32;
  const int stages_all = (update.depth + stage_depth - 1) / stage_depth;
  double share[2][4][4] = {};

  // One group of copies per stage, perhaps an empty one, so that the count of groups tells which
  // stage has arrived.
  for (int stage = 0; stage < stage_count - 1; ++stage) {
    if (stage < stages_all) load(stage);
    __pipeline_commit();
  }
  for (int stage = 0; stage < stages_all; ++stage) {
    __pipeline_wait_prior(stage_count - 2);
    // All threads have the stage, and have read the one before, whose place is filled next.
    __syncthreads();
    if (stage + stage_count - 1 < stages_all) load(stage + stage_count - 1);
    __pipeline_commit();
    const double* operands = stages + stage % stage_count * 2 * operand_elements;
    multiply_stage(share, operands, operands + operand_elements, warp_row, warp_column);
  }

  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int s = 0; s < 2; ++s) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = row + warp_row + 16 * s + g + e / 2 * 8;
        const int j = column + warp_column + 8 * t + 2 * q + e % 2;
        if (i >= j && i < update.rows && j < update.columns) {
          update.c[i + j * update.ldc] -= share[s][t][e];
        }
      }
    }
  }
}

std::int64_t blocks_along(std::int64_t count) {
  return (count + block_size - 1) / block_size;
}

}  // namespace

std::int64_t update_lower_blocks(std::int64_t m, std::int64_t n) {
  const std::int64_t columns = blocks_along(n);
  return columns * (columns + 1) / 2 + (blocks_along(m) - columns) * columns;
}

void launch_update_lower(Context& context, const TileView& c, const TileView& a) {
  const std::int64_t blocks = update_lower_blocks(c.rows, c.columns);
  if (blocks == 0 || a.columns == 0) return;
  const LowerUpdate update{.c = c.data,
                           .ldc = c.leading,
                           .a = a.data,
                           .lda = a.leading,
                           .rows = static_cast<int>(c.rows),
                           .columns = static_cast<int>(c.columns),
                           .depth = static_cast<int>(a.columns),
                           .block_columns = static_cast<int>(blocks_along(c.columns))};
  check(cudaFuncSetAttribute(update_lower_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             update_bytes),
        "cudaFuncSetAttribute");
  update_lower_kernel<<<static_cast<unsigned>(blocks), update_threads, update_bytes,
                        context.stream()>>>(update);
  check(cudaGetLastError(), "launch of update_lower");
}

}  // namespace heddle::kernel::cuda
