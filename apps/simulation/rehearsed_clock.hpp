#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/rehearsal.hpp"

namespace heddle {

/// Times of kernels as a rehearsal of the very factorization has them, each beside what is beside
/// it there. What is not rehearsed (devices' tasks, those that workers divide, of large matrices
/// all but the updates) another clock tells.
class RehearsedClock final : public KernelClock {
 public:
  RehearsedClock(std::shared_ptr<const RehearsedTimes> rehearsed,
                 std::shared_ptr<KernelClock> others)
      : rehearsed_(std::move(rehearsed)), others_(std::move(others)) {}

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override;
  [[nodiscard]] std::string source() const override;

 private:
  std::shared_ptr<const RehearsedTimes> rehearsed_;
  std::shared_ptr<KernelClock> others_;
  bool has_rehearsed_ = false;     ///< of some case
  bool has_asked_others_ = false;  ///< likewise
};

}  // namespace heddle
