#pragma once

#include "kernels/byte_kernel.hpp"
#include "kernels/cuda/context.hpp"

namespace heddle {

/// What a byte kernel's CUDA definition sees. It queues its work on `context.stream()`, waits for
/// nothing, and returns; `parameters` is valid until then.
struct CudaByteLaunch {
  const ByteParameters& parameters;
  kernel::cuda::Context& context;
};

}  // namespace heddle
