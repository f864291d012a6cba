#pragma once

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
};

/// What a case computes, by the usual counts; 0 for copies.
[[nodiscard]] double flops_of(const KernelCase& what);

}  // namespace heddle
