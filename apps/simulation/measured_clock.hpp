#pragma once

#include <cstdint>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/tuning/cpu.hpp"
#include "apps/tuning/operands.hpp"

namespace heddle {

/// Times the host's kernels on this machine as they are asked for: on all workers at the same
/// time, on operands from memory in turns, as in a factorization. Some 50 ms for each case.
/// OpenBLAS has been loaded.
class MeasuredClock final : public KernelClock {
 public:
  explicit MeasuredClock(tuning::Workers workers) : workers_(std::move(workers)) {}

  [[nodiscard]] KernelSeconds seconds(const KernelCase& what) override;
  /// Cases that were timed.
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  tuning::Workers workers_;
  tuning::NormalValues normal_;
  std::int64_t count_ = 0;
};

}  // namespace heddle
