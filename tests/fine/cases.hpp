#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel_case.hpp"

/// Kernels with a fine-grain form on tiles of some shapes.
namespace heddle::test {

struct FineCase {
  const Kernel* kernel = nullptr;
  KernelParameters parameters;
  std::vector<OperandShape> operands;
  std::string name;  ///< of the case, for messages

  [[nodiscard]] KernelCase what() const { return {kernel, parameters, operands}; }
};

/// All kernels of Cholesky and QR, with all their forms: with and without inverse blocks, with R
/// from elsewhere or not, at an offset or not, of square and other shapes, of no rows or columns.
/// `scale` is about the size of a tile.
[[nodiscard]] std::vector<FineCase> fine_cases(std::int64_t scale);

}  // namespace heddle::test
