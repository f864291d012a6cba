#pragma once

#include <array>

#include "kernels/cholesky.hpp"
#include "kernels/qr.hpp"

namespace heddle {

/// Kernels of the factorizations that have operations: those that machines are measured by.
inline constexpr std::array<const Kernel*, 10> factorization_kernels{
    &kernel::potrf, &kernel::trsm,  &kernel::syrk,  &kernel::gsmm,  &kernel::geqrt,
    &kernel::tsqrt, &kernel::ttqrt, &kernel::unmqr, &kernel::tsmqr, &kernel::ttmqr};

}  // namespace heddle
