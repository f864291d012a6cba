#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

#include "node-runtime/transport/pack/device_work.hpp"
#include "node-runtime/transport/pack/triangle_work.hpp"

/// Launches of the packing kernels. Nothing is checked here but the launch: fmt, which assertions
/// print with, does not compile under nvcc.
namespace heddle::packing {

/// Where a kernel runs and how much of the GPU it may take.
struct Grid {
  cudaStream_t stream = nullptr;
  std::uint32_t multiprocessors = 1;
  std::uint32_t blocks_max = 0;  ///< of block_threads_limited threads; 0: no limit
};

/// Threads of a block where there may be few: half of a multiprocessor's.
inline constexpr std::uint32_t block_threads_limited = 1024;
inline constexpr std::uint32_t block_threads = 256;

void launch_strided(const Strided& work, std::size_t word_bytes, bool packs, const Grid& grid);
void launch_transposed(const Transposed& work, std::size_t word_bytes, bool packs,
                       const Grid& grid);
void launch_trapezoid(const Trapezoid& work, std::size_t word_bytes, bool packs, const Grid& grid);
void launch_units(const Units& work, bool packs, const Grid& grid);
void launch_between(const StridedBetween& work, std::size_t word_bytes, const Grid& grid);
void launch_between(const TrapezoidBetween& work, std::size_t word_bytes, const Grid& grid);

}  // namespace heddle::packing
