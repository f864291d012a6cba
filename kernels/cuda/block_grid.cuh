#pragma once

#include <cstdint>
#include <cuda_pipeline_primitives.h>

#include "kernels/cuda/mma.cuh"

/// Exchange of 64 x 64 blocks between the CTAs of one kernel. Each block of a grid has a place of
/// its own and a stage, a counter that grows: a block is written first and its stage after that,
/// with release order; a CTA that finds the stage, with acquire order, reads the block. Barriers
/// carry that order from the thread that publishes, or has looked, to the others of its CTA. Blocks
/// are read past the first-level cache, which does not see other multiprocessors' writes.
namespace heddle::kernel::cuda::device {

struct BlockGrid {
  double* blocks;  ///< aligned to 16 bytes
  int* stages;     ///< zero at first, as many as blocks
  int count;       ///< blocks along each side

  [[nodiscard]] __device__ double* block(int i, int j) const {
    return blocks + static_cast<std::int64_t>(i + j * count) * (block_size * block_size);
  }
  [[nodiscard]] __device__ int* stage(int i, int j) const { return stages + i + j * count; }

  [[nodiscard]] __device__ bool has(int i, int j, int least) const {
    int stage_now = 0;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                 : "=r"(stage_now)
                 : "l"(stage(i, j))
                 : "memory");
    return stage_now >= least;
  }
  /// By one thread, after a barrier of the threads that have written the block.
  __device__ void publish(int i, int j, int stage_now) const {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(stage(i, j)), "r"(stage_now)
                 : "memory");
  }
};

/// Copies the thread's share to a block of a grid.
__device__ inline void write_share(double* block, BlockShare& share) {
  share.for_each([&](int i, int j, double value) { block[j * block_size + i] = value; });
}

/// The thread's share of a block of a grid.
__device__ inline void read_share(BlockShare& share, const double* block) {
  share.for_each([&](int i, int j, double& value) { value = __ldcg(block + j * block_size + i); });
}

/// Starts to copy `pairs` pairs of doubles of a block of a grid into shared memory, from pair
/// `first` on, every `step`-th one.
template <int pairs, int step>
__device__ inline void start_pairs(double* to, const double* block, int first) {
  constexpr int pairs_per_column = block_size / 2;
#pragma unroll
  for (int at = 0; at < pairs; ++at) {
    const int pair = first + at * step;
    __pipeline_memcpy_async(
        to + pair / pairs_per_column * block_stride + pair % pairs_per_column * 2, block + 2 * pair,
        2 * sizeof(double));
  }
}

/// Starts to copy a block of a grid, by all threads.
__device__ inline void start_block(double* to, const double* block) {
  start_pairs<block_size * block_size / 2 / block_threads, block_threads>(
      to, block, static_cast<int>(threadIdx.x));
}

/// Looks from `from` on, up to 32 places far, how many in a row are ready; returns one past the
/// last of them. With `wait` it waits until there is one. A barrier of all threads.
template <class Ready>
__device__ inline int ready_until(int from, int end, bool wait, Ready ready) {
  bool counts = false;
  if (threadIdx.x < 32) {
    const int place = from + static_cast<int>(threadIdx.x);
    unsigned missing = 0;
    do {
      missing = ~__ballot_sync(0xffffffffU, place < end && ready(place));
    } while (wait && missing % 2 == 1);
    counts = missing == 0 || static_cast<int>(threadIdx.x) < __ffs(static_cast<int>(missing)) - 1;
  }
  return from + __syncthreads_count(counts ? 1 : 0);
}

}  // namespace heddle::kernel::cuda::device
