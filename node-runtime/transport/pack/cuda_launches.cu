#include "node-runtime/transport/pack/cuda_launches.hpp"

#include <algorithm>

#include "kernels/cuda/context.hpp"

namespace heddle::packing {
namespace {

__device__ Crew crew() {
  return {blockIdx.x, gridDim.x, threadIdx.x, blockDim.x};
}

template <class Word, std::uint32_t Levels, bool Packs, std::uint32_t AtOnce>
__global__ void __launch_bounds__(block_threads_limited)
    strided_kernel(const __grid_constant__ Strided work) {
  copy_strided<Word, Levels, Packs, AtOnce>(work, crew());
}

template <class Word, bool Packs>
__global__ void __launch_bounds__(tile_threads)
    transposed_kernel(const __grid_constant__ Transposed work) {
  __shared__ Tile<Word> tile;
  for (std::uint32_t number = blockIdx.x; number < work.tiles; number += gridDim.x) {
    load_tile<Word, Packs>(work, number, threadIdx.x, tile);
    __syncthreads();
    store_tile<Word, Packs>(work, number, threadIdx.x, tile);
    __syncthreads();
  }
  for (const Edge& edge : work.edges) {
    copy_bytes<Packs>(edge.place, edge.bytes, crew().number(), crew().count());
  }
}

template <class Word, bool Packs>
__global__ void __launch_bounds__(block_threads_limited)
    trapezoid_kernel(const __grid_constant__ Trapezoid work) {
  copy_trapezoid<Word, Packs>(work, crew());
}

template <class Word, bool Packs, bool InMemory>
__global__ void __launch_bounds__(block_threads_limited)
    trapezoid_by_lines_kernel(const __grid_constant__ Trapezoid work) {
  copy_trapezoid_by_lines<Word, Packs, InMemory>(work, crew());
}

template <bool Packs>
__global__ void __launch_bounds__(block_threads_limited)
    units_kernel(const __grid_constant__ Units work) {
  copy_units<Packs>(work, crew());
}

template <class Word, std::uint32_t Levels>
__global__ void __launch_bounds__(block_threads_limited)
    between_kernel(const __grid_constant__ StridedBetween work) {
  copy_between<Word, Levels>(work, crew());
}

template <class Word>
__global__ void __launch_bounds__(block_threads_limited)
    between_kernel(const __grid_constant__ TrapezoidBetween work) {
  copy_between<Word>(work, crew());
}

template <class Word, bool InMemory>
__global__ void __launch_bounds__(block_threads_limited)
    between_by_lines_kernel(const __grid_constant__ TrapezoidBetween work) {
  copy_between_by_lines<Word, InMemory>(work, crew());
}

struct Shape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = block_threads;
};

/// One thread for each of the things that are wanted, unless blocks are limited. Blocks that are
/// begun as others end keep all multiprocessors busy to the end, which as many as fit at a time,
/// with equal shares, do not.
Shape shape_for(std::uint64_t threads_wanted, const Grid& grid) {
  constexpr std::uint64_t blocks_of_grid = std::uint64_t{1} << 22U;
  Shape shape;
  if (grid.blocks_max > 0) shape.threads = block_threads_limited;
  const std::uint64_t most = grid.blocks_max > 0 ? grid.blocks_max : blocks_of_grid;
  const std::uint64_t blocks = (threads_wanted + shape.threads - 1) / shape.threads;
  shape.blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most));
  return shape;
}

/// Calls with a word of the given size.
template <class Call>
void with_word(std::size_t word_bytes, const Call& call) {
  switch (word_bytes) {
    case 1:
      return call(std::uint8_t{});
    case 2:
      return call(std::uint16_t{});
    case 4:
      return call(std::uint32_t{});
    case 8:
      return call(std::uint64_t{});
    default:
      return call(Word16{});
  }
}

template <class Word, std::uint32_t Levels, std::uint32_t AtOnce>
void launch_strided_of(const Strided& work, bool packs, const Grid& grid) {
  const Shape shape = shape_for(work.words / AtOnce + 1, grid);
  if (packs) {
    strided_kernel<Word, Levels, true, AtOnce>
        <<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  } else {
    strided_kernel<Word, Levels, false, AtOnce>
        <<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  }
}

template <class Word, std::uint32_t Levels>
void launch_strided_of(const Strided& work, bool packs, const Grid& grid) {
  if (grid.blocks_max > 0) {
    launch_strided_of<Word, Levels, words_at_once_limited<Word>>(work, packs, grid);
  } else {
    launch_strided_of<Word, Levels, words_at_once<Word>>(work, packs, grid);
  }
}

/// Threads for the numbers of a trapezoid and its edges, each of which has `at_once` of both.
Shape shape_for(const Trapezoid& work, std::size_t bytes, std::uint32_t at_once, const Grid& grid) {
  std::uint64_t threads = work.words / at_once + 1;
  // Where a range is part of a column, there is nothing else.
  for (const Edge& edge : work.edges) {
    threads = std::max(threads, static_cast<std::uint64_t>(edge.bytes) / bytes / at_once + 1);
  }
  return shape_for(threads, grid);
}

template <class Word, bool Packs>
void launch_trapezoid_of(const Trapezoid& work, const Grid& grid) {
  if (work.line_mask > 0) {
    const Shape shape = shape_for(work, sizeof(Group<Word>), groups_at_once, grid);
    const auto kernel = work.has_lines_in_memory ? trapezoid_by_lines_kernel<Word, Packs, true>
                                                 : trapezoid_by_lines_kernel<Word, Packs, false>;
    kernel<<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  } else {
    const Shape shape = shape_for(work, sizeof(Word), words_at_once<Word>, grid);
    trapezoid_kernel<Word, Packs><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  }
}

}  // namespace

void launch_strided(const Strided& work, std::size_t word_bytes, bool packs, const Grid& grid) {
  with_word(word_bytes, [&](auto word) {
    using Word = decltype(word);
    if (work.path.levels <= 1) {
      launch_strided_of<Word, 1>(work, packs, grid);
    } else if (work.path.levels == 2) {
      launch_strided_of<Word, 2>(work, packs, grid);
    } else {
      launch_strided_of<Word, Path::levels_max>(work, packs, grid);
    }
  });
  kernel::cuda::check(cudaGetLastError(), "launch of strided_kernel");
}

void launch_transposed(const Transposed& work, std::size_t word_bytes, bool packs,
                       const Grid& grid) {
  // A tile's blocks are smaller than those that a limit counts.
  constexpr std::uint32_t blocks_in_limited = block_threads_limited / tile_threads;
  const std::uint64_t most = std::uint64_t{grid.blocks_max} * blocks_in_limited;
  const std::uint32_t blocks =
      grid.blocks_max > 0 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(work.tiles, most))
                          : work.tiles;
  const auto run = [&](auto word) {
    using Word = decltype(word);
    if (packs) {
      transposed_kernel<Word, true><<<blocks, tile_threads, 0, grid.stream>>>(work);
    } else {
      transposed_kernel<Word, false><<<blocks, tile_threads, 0, grid.stream>>>(work);
    }
  };
  if (word_bytes == 4) {
    run(std::uint32_t{});
  } else if (word_bytes == 8) {
    run(std::uint64_t{});
  } else {
    run(Word16{});
  }
  kernel::cuda::check(cudaGetLastError(), "launch of transposed_kernel");
}

void launch_trapezoid(const Trapezoid& work, std::size_t word_bytes, bool packs, const Grid& grid) {
  with_word(word_bytes, [&](auto word) {
    using Word = decltype(word);
    packs ? launch_trapezoid_of<Word, true>(work, grid)
          : launch_trapezoid_of<Word, false>(work, grid);
  });
  kernel::cuda::check(cudaGetLastError(), "launch of trapezoid_kernel");
}

void launch_between(const StridedBetween& work, std::size_t word_bytes, const Grid& grid) {
  with_word(word_bytes, [&](auto word) {
    using Word = decltype(word);
    const Shape shape = shape_for(work.words / words_at_once<Word> + 1, grid);
    if (work.from.levels <= 1 && work.to.levels <= 1) {
      between_kernel<Word, 1><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
    } else {
      between_kernel<Word, Path::levels_max><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
    }
  });
  kernel::cuda::check(cudaGetLastError(), "launch of between_kernel");
}

void launch_between(const TrapezoidBetween& work, std::size_t word_bytes, const Grid& grid) {
  with_word(word_bytes, [&](auto word) {
    using Word = decltype(word);
    if (work.line_mask > 0) {
      const Shape shape = shape_for(work.words / groups_at_once + 1, grid);
      const auto kernel = work.has_lines_in_memory ? between_by_lines_kernel<Word, true>
                                                   : between_by_lines_kernel<Word, false>;
      kernel<<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
      return;
    }
    const Shape shape = shape_for(work.words / words_at_once<Word> + 1, grid);
    between_kernel<Word><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  });
  kernel::cuda::check(cudaGetLastError(), "launch of between_kernel");
}

void launch_units(const Units& work, bool packs, const Grid& grid) {
  // Where there are many, each group of lanes takes several in turn, and asks for the next one
  // ahead.
  constexpr std::uint64_t units_in_turn = 4;
  constexpr std::uint64_t threads_of_multiprocessor = 2048;
  const std::uint64_t all = std::uint64_t{work.number} << work.lanes_log2;
  const std::uint64_t filled = grid.multiprocessors * threads_of_multiprocessor;
  const Shape shape = shape_for(std::min(all, std::max(filled, all / units_in_turn)), grid);
  if (packs) {
    units_kernel<true><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  } else {
    units_kernel<false><<<shape.blocks, shape.threads, 0, grid.stream>>>(work);
  }
  kernel::cuda::check(cudaGetLastError(), "launch of units_kernel");
}

}  // namespace heddle::packing
