#pragma once

#include "kernels/kernels.hpp"

/// The CUDA definitions of the kernels, by their names. A build without CUDA links stubs
/// (without_cuda.cpp).
namespace heddle::kernel::cuda {

#define HEDDLE_DECLARE_DEFINITION(name) void name(const CudaLaunch& launch);
HEDDLE_KERNELS(HEDDLE_DECLARE_DEFINITION)
#undef HEDDLE_DECLARE_DEFINITION

}  // namespace heddle::kernel::cuda
