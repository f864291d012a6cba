#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"

namespace heddle {

struct OperandShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  friend bool operator==(const OperandShape&, const OperandShape&) = default;
};

/// A kernel with its parameters on operands of some shapes, in the order of its accesses.
struct KernelCase {
  const Kernel* kernel = nullptr;
  KernelParameters parameters;
  std::span<const OperandShape> operands;

  /// Sizes of an operand.
  [[nodiscard]] double rows(std::size_t i) const { return static_cast<double>(operands[i].rows); }
  [[nodiscard]] double columns(std::size_t i) const {
    return static_cast<double>(operands[i].columns);
  }
};

/// Floating-point operations of a case; 0 where its kernel counts none.
[[nodiscard]] inline double flops_of(const KernelCase& what) {
  return what.kernel->flops == nullptr ? 0.0 : what.kernel->flops(what);
}
/// The same for whole tiles: a main output of `rows` x `columns`, the others as wide, as measured
/// times of kernels are named (KernelTime).
[[nodiscard]] inline double flops_of(const Kernel& kernel, std::int64_t rows,
                                     std::int64_t columns) {
  std::array<OperandShape, 4> shapes;
  shapes.fill({rows, columns});
  return flops_of({&kernel, {}, shapes});
}

}  // namespace heddle
