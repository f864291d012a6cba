#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "apps/simulation/kernel_clock.hpp"
#include "kernels/case_key.hpp"

namespace heddle {

/// Asks another clock once for each case, however many runs meet it: a kernel that was timed takes
/// the same in all of them.
class RememberingClock final : public KernelClock {
 public:
  explicit RememberingClock(std::unique_ptr<KernelClock> clock) : clock_(std::move(clock)) {}

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override {
    auto& known = known_.at(static_cast<std::size_t>(runner));
    const CaseKey key = CaseKey::of(what);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
    return known.emplace(key, clock_->seconds(what, runner)).first->second;
  }
  [[nodiscard]] std::string source() const override { return clock_->source(); }

 private:
  std::unique_ptr<KernelClock> clock_;
  std::array<std::unordered_map<CaseKey, double, CaseKey::Hash>, runner_count> known_;
};

}  // namespace heddle
