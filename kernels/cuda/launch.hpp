#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

/// What a kernel's CUDA definition sees. It queues its work on `context.stream()`, waits for
/// nothing, and returns; `tiles` and `parameters` are valid until then.
struct CudaLaunch {
  std::span<const TileView> tiles;  ///< in the memory of the context's GPU
  const KernelParameters& parameters;
  kernel::cuda::Context& context;
  /// Where device code leaves a positive `info`; zero before. Host memory that the GPU reaches.
  std::int64_t* info;
};

}  // namespace heddle
