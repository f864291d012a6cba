#pragma once

#include "kernels/byte_kernel.hpp"
#include "node-runtime/transport/pack/prepare.hpp"

/// The byte kernels of packing, whose parameters are a BlocksWork, a UnitsWork and a BetweenWork.
namespace heddle::packing {

static_assert(sizeof(BlocksWork) <= ByteParameters::size_max);
static_assert(sizeof(UnitsWork) <= ByteParameters::size_max);
static_assert(sizeof(BetweenWork) <= ByteParameters::size_max);

// emulated_kernels.cpp: the host's engine.
void blocks_emulated(const ByteParameters& parameters);
void units_emulated(const ByteParameters& parameters);
void between_emulated(const ByteParameters& parameters);

// cuda_kernels.cpp
void blocks_cuda(const CudaByteLaunch& launch);
void units_cuda(const CudaByteLaunch& launch);
void between_cuda(const CudaByteLaunch& launch);

inline constexpr ByteKernel blocks_kernel{"pack-blocks", blocks_emulated, blocks_cuda};
inline constexpr ByteKernel units_kernel{"pack-units", units_emulated, units_cuda};
inline constexpr ByteKernel between_kernel{"pack-between", between_emulated, between_cuda};

}  // namespace heddle::packing
