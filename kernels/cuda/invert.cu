#include <algorithm>

#include "kernels/cuda/invert_block.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/own_kernels.hpp"

/// Inverse blocks of a lower triangle that has been factored.
namespace heddle::kernel::cuda {
namespace {

using device::block_elements;
using device::block_size;
using device::block_stride;
using device::block_threads;
using device::BlockShare;

/// The triangle l and its inverse blocks d (kernels/kernels.hpp). Each of these is cut into
/// 64 x 64 blocks from its own corner.
struct InverseBlocks {
  const double* l;
  std::int64_t ldl;
  double* d;
  std::int64_t ldd;
  std::int64_t inner;
  std::int64_t w;
  std::int64_t tiles;  ///< 64 x 64 blocks along an inverse block's diagonal
};

/// The share of one thread block: column `tile` of 64 x 64 blocks of the inverse block at `begin`.
struct TileColumn {
  std::int64_t begin;
  std::int64_t count;
  std::int64_t tile;

  __device__ explicit TileColumn(const InverseBlocks& blocks)
      : begin(blockIdx.x / blocks.tiles * blocks.inner),
        count(min(blocks.inner, blocks.w - begin)),
        tile(blockIdx.x % blocks.tiles) {}

  [[nodiscard]] __device__ bool exists() const { return tile * block_size < count; }
  [[nodiscard]] __device__ std::int64_t tile_count() const {
    return (count + block_size - 1) / block_size;
  }
  /// Columns, or rows, of block t: 64 unless it is the last.
  [[nodiscard]] __device__ int extent(std::int64_t t) const {
    return static_cast<int>(min(static_cast<std::int64_t>(block_size), count - t * block_size));
  }
  [[nodiscard]] __device__ const double* l(const InverseBlocks& blocks, std::int64_t i,
                                           std::int64_t j) const {
    return blocks.l + (begin + i * block_size) + (begin + j * block_size) * blocks.ldl;
  }
  [[nodiscard]] __device__ double* d(const InverseBlocks& blocks, std::int64_t i,
                                     std::int64_t j) const {
    return blocks.d + i * block_size + (begin + j * block_size) * blocks.ldd;
  }
};

/// The inverses of the 64 x 64 diagonal blocks, one per thread block; all else of d := 0.
__global__ void __launch_bounds__(block_threads) invert_tiles_kernel(InverseBlocks blocks) {
  extern __shared__ double memory[];
  const TileColumn at(blocks);
  if (!at.exists()) return;
  double* l = memory;
  double* inverse = memory + block_elements;
  const int extent = at.extent(at.tile);
  const double* from = at.l(blocks, at.tile, at.tile);
  device::for_block([&](int i, int j) {
    const bool inside = i < extent && j <= i;
    l[j * block_stride + i] = inside ? from[i + j * blocks.ldl] : (i == j ? 1 : 0);
  });
  __syncthreads();
  device::invert_block(l, inverse);
  double* to = at.d(blocks, 0, at.tile);
  const std::int64_t row = at.tile * block_size;
  for (std::int64_t base = 0; base < blocks.inner; base += block_size) {
    device::for_block([&](int i, int j) {
      const std::int64_t i_all = base + i;
      if (i_all >= blocks.inner || j >= extent) return;
      const bool inside = base == row && j <= i && i < extent;
      to[i_all + j * blocks.ldd] = inside ? inverse[i * block_stride + j] : 0;
    });
  }
}

/// The blocks below the diagonal of a column of an inverse block, from the top: each is
/// -inv(l(i, i)) * sum over k of l(i, k) * d(k, column).
__global__ void __launch_bounds__(block_threads) invert_columns_kernel(InverseBlocks blocks) {
  extern __shared__ double memory[];
  const TileColumn at(blocks);
  if (!at.exists()) return;
  double* x = memory;
  double* y = memory + block_elements;
  const std::int64_t column = at.tile;
  const int columns = at.extent(column);
  for (std::int64_t i = column + 1; i < at.tile_count(); ++i) {
    const int rows = at.extent(i);
    BlockShare sum;
    for (std::int64_t k = column; k < i; ++k) {
      device::load_block(x, at.l(blocks, i, k), blocks.ldl, rows, at.extent(k));
      device::load_block(y, at.d(blocks, k, column), blocks.ldd, at.extent(k), columns);
      device::wait_for_blocks();
      __syncthreads();
      device::multiply_add<false>(sum, x, y);
      __syncthreads();
    }
    sum.store(y);
    device::load_block(x, at.d(blocks, i, i), blocks.ldd, rows, rows);
    device::wait_for_blocks();
    __syncthreads();
    BlockShare product;
    device::multiply_add<false>(product, x, y);
    double* to = at.d(blocks, i, column);
    product.for_each([&](int r, int c, double value) {
      if (r < rows && c < columns) to[r + c * blocks.ldd] = -value;
    });
    // The next i reads what this one has written.
    __syncthreads();
  }
}

constexpr int two_blocks_bytes = 2 * block_elements * static_cast<int>(sizeof(double));

}  // namespace

void launch_invert_diagonal_blocks(Context& context, const TileView& l, const TileView& inverses) {
  const std::int64_t w = l.columns;
  if (w == 0) return;
  const std::int64_t inner = inverses.rows;
  const std::int64_t tiles = (std::min(inner, w) + block_size - 1) / block_size;
  const InverseBlocks blocks{l.data, l.leading, inverses.data, inverses.leading, inner, w, tiles};
  const auto grid = static_cast<unsigned>((w + inner - 1) / inner * tiles);
  for (const auto kernel : {invert_tiles_kernel, invert_columns_kernel}) {
    if (kernel == invert_columns_kernel && tiles == 1) break;
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, two_blocks_bytes),
        "cudaFuncSetAttribute");
    kernel<<<grid, block_threads, two_blocks_bytes, context.stream()>>>(blocks);
    check(cudaGetLastError(), "launch of the inversion of diagonal blocks");
  }
}

}  // namespace heddle::kernel::cuda
