#pragma once

#include <array>
#include <cstdint>

#include "kernels/kernel_case.hpp"

namespace heddle {

/// What one run of a kernel on whole tiles computes: a main output of `rows` x `columns`, the
/// others as wide. As measured times of kernels are named (KernelTime).
[[nodiscard]] inline double flops_of(const Kernel& kernel, std::int64_t rows,
                                     std::int64_t columns) {
  std::array<OperandShape, 4> shapes;
  shapes.fill({rows, columns});
  return flops_of({&kernel, {}, shapes});
}

}  // namespace heddle
