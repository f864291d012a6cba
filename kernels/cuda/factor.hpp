#pragma once

#include <cstdint>

#include "kernels/cuda/launch.hpp"

/// The two ways to factor a piece of a diagonal tile.
namespace heddle::kernel::cuda {

enum class FactorMethod : std::uint8_t {
  own,      ///< factor_square, which leaves the inverse blocks on its way
  cusolver  ///< cuSOLVER's potrf of the whole square, its inverse blocks afterwards
};

/// The faster one for a piece of `w` columns.
[[nodiscard]] FactorMethod factor_method(std::int64_t w);

/// potrf's CUDA definition by the given method.
void potrf_by(FactorMethod method, const CudaLaunch& launch);

}  // namespace heddle::kernel::cuda
