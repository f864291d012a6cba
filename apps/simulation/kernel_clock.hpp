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

/// Seconds of a kernel; 0 where it cannot run, or nobody knows.
struct KernelSeconds {
  double host = 0;    ///< on a worker, the others at work too
  double device = 0;  ///< on a device, alone
};

/// Who knows how long kernels take on a machine. Asked once for each case of a run.
class KernelClock {
 public:
  KernelClock() = default;
  KernelClock(const KernelClock&) = delete;
  KernelClock& operator=(const KernelClock&) = delete;
  virtual ~KernelClock() = default;

  [[nodiscard]] virtual KernelSeconds seconds(const KernelCase& what) = 0;
};

}  // namespace heddle
