#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/tuning/cpu.hpp"
#include "apps/tuning/operands.hpp"

namespace heddle {

/// Times the host's kernels on this machine as they are asked for: on all workers at the same
/// time (potrf and a panel's kernels on one of them, while the others update), on operands in
/// turns, as in a factorization. Some 75 ms for each case. OpenBLAS has been loaded.
///
/// Nodes of one host are processes, each with its own copy of what all its workers read: the same
/// workers have more to read from memory in several of them. So kernels are timed in as many, in
/// copies of this process, which shall have no threads but the caller's.
class MeasuredClock final : public KernelClock {
 public:
  /// `processes`: the workers of each, at least one; the first are this process's.
  /// `operand_bytes`: of each worker's operands together, which is what it has of a matrix: a small
  /// one stays in the caches, and more workers do not wait for the memory then.
  MeasuredClock(std::vector<tuning::Workers> processes, std::int64_t operand_bytes)
      : processes_(std::move(processes)), operand_bytes_(operand_bytes) {}

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override;
  /// What one kernel takes on this clock's workers over what another one takes on those of another
  /// clock, by turns (tuning::ratio_by_turns); of workers the one in the middle counts. A quarter
  /// of a second.
  [[nodiscard]] double ratio(const KernelCase& what, MeasuredClock& of_other,
                             const KernelCase& other);
  [[nodiscard]] std::string source() const override {
    return "as measured on this machine, all workers at work";
  }

 private:
  std::vector<tuning::Workers> processes_;
  std::int64_t operand_bytes_;
  tuning::NormalValues normal_;
};

}  // namespace heddle
