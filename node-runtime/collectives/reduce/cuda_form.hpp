#pragma once

/// The kernel of a functor, for sources that nvcc compiles. Nothing is checked here but the launch:
/// fmt, which assertions print with, does not compile under nvcc.
#ifdef __CUDACC__
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>

#include "node-runtime/collectives/reduce/definition.hpp"
#include "node-runtime/collectives/reduce/unit_reduction.hpp"

namespace heddle::reduction {

inline constexpr std::uint32_t reducing_threads = 256;

template <class T, class U, std::uint32_t Inputs, bool HasRows, class Functor>
__global__ void __launch_bounds__(reducing_threads)
    reduction_kernel(const __grid_constant__ Work work, const __grid_constant__ Cut cut,
                     const __grid_constant__ Functor functor) {
  const Worker worker{std::int64_t{blockIdx.x} * reducing_threads + threadIdx.x,
                      std::int64_t{gridDim.x} * reducing_threads};
  reduce_range<T, U, Inputs, HasRows>(work, functor, cut, worker);
}

template <class Functor>
struct KernelLaunch {
  const Work& work;
  const DeviceGrid& grid;

  /// One thread for what it has at once, unless blocks are limited: blocks that are begun as others
  /// end keep all multiprocessors busy to the end.
  template <class T, class U, std::uint32_t Inputs, bool HasRows>
  [[nodiscard]] int run(const Cut& cut) const {
    constexpr std::int64_t blocks_of_grid = std::int64_t{1} << 22U;
    constexpr std::int64_t for_each_block =
        std::int64_t{reducing_threads} * (Inputs > 0 ? units_at_once<Inputs> : 1U);
    std::int64_t blocks = (cut.units + for_each_block - 1) / for_each_block;
    const std::int64_t most = grid.blocks_max > 0 ? grid.blocks_max : blocks_of_grid;
    blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
    Functor functor;
    std::memcpy(&functor, work.functor.bytes.data(), sizeof(Functor));
    reduction_kernel<T, U, Inputs, HasRows, Functor>
        <<<static_cast<std::uint32_t>(blocks), reducing_threads, 0,
           static_cast<cudaStream_t>(grid.stream)>>>(work, cut, functor);
    return static_cast<int>(cudaGetLastError());
  }
};

/// A CudaForm.
template <class T, class Functor>
int launch_reduction(const Work& work, const DeviceGrid& grid) {
  return cut_and_launch<T>(work, KernelLaunch<Functor>{work, grid});
}

}  // namespace heddle::reduction
#endif
