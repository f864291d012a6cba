#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "replay/run.hpp"

namespace heddle {

/// Times of kernels as a run's trace has them: the mean of those of one case, which is what a
/// factorization's time adds up from. A case that the run has not met takes as long as another
/// clock says, times what the run's nearest case of that kernel took of that clock's time for it.
/// Of workers alone.
class RecordedClock final : public KernelClock {
 public:
  /// The run's job was `what`: its tasks are told apart by walking that again. `others` outlives
  /// the clock. Throws Error(usage) when the run's tasks are not those of the program.
  RecordedClock(const replay::RunTrace& run, std::int32_t job, const SimulatedFactorization& what,
                KernelClock& others);

  [[nodiscard]] KernelSeconds seconds(const KernelCase& what) override;
  /// Cases that the run had not.
  [[nodiscard]] std::int64_t estimated() const { return estimated_; }

 private:
  struct Recorded {
    const Kernel* kernel = nullptr;
    KernelParameters parameters;
    std::vector<OperandShape> operands;
    double seconds = 0;  ///< of all tasks
    std::int64_t count = 0;

    [[nodiscard]] KernelCase as_case() const { return {kernel, parameters, operands}; }
    [[nodiscard]] double mean() const { return seconds / static_cast<double>(count); }
  };
  class Collector;

  [[nodiscard]] const Recorded* find(const KernelCase& what) const;
  [[nodiscard]] const Recorded* nearest(const KernelCase& what) const;

  KernelClock& others_;
  std::vector<Recorded> recorded_;
  std::int64_t estimated_ = 0;
};

}  // namespace heddle
