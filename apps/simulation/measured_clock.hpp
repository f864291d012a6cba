#pragma once

#include <string>
#include <utility>

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

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override;
  [[nodiscard]] std::string source() const override {
    return "as measured on this machine, all workers at work";
  }

 private:
  tuning::Workers workers_;
  tuning::NormalValues normal_;
};

}  // namespace heddle
