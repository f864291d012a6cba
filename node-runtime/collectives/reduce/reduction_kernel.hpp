#pragma once

#include "kernels/byte_kernel.hpp"
#include "node-runtime/collectives/reduce/definition.hpp"

/// The byte kernel of all reductions, whose parameters are a Work.
namespace heddle::reduction {

static_assert(sizeof(Work) <= ByteParameters::size_max);

/// The host's loop.
void reduce_emulated(const ByteParameters& parameters);
// cuda_kernel.cpp
void reduce_cuda(const CudaByteLaunch& launch);

inline constexpr ByteKernel reduce_kernel{"reduce", reduce_emulated, reduce_cuda};

}  // namespace heddle::reduction
