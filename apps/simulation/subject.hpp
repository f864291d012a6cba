#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/prediction.hpp"

namespace heddle {

/// Whether one of the overrides ("key.path=value") says the key, or a group that it is in.
[[nodiscard]] bool sets(const std::vector<std::string>& overrides, std::string_view key);

/// Overrides by whom they are for, those of the machine without their prefix.
struct SplitOverrides {
  explicit SplitOverrides(const std::vector<std::string>& overrides);

  std::vector<std::string> problem;
  std::vector<std::string> machine;
};

/// Whose factorization is predicted: a problem's, or a recorded run's.
class PredictionSubject {
 public:
  PredictionSubject() = default;
  PredictionSubject(const PredictionSubject&) = delete;
  PredictionSubject& operator=(const PredictionSubject&) = delete;
  virtual ~PredictionSubject() = default;

  /// The case with these changes. Throws Error(usage).
  [[nodiscard]] virtual PredictionCase with(const SplitOverrides& changes) = 0;
  /// What gives the times of the case's kernels.
  [[nodiscard]] virtual std::shared_ptr<KernelClock> clock(const PredictionCase& one) = 0;
  /// More lines for the table of one prediction.
  [[nodiscard]] virtual std::string more(const Prediction& /*prediction*/) const { return {}; }
  /// More lines for any table: what is known to make predictions wrong.
  [[nodiscard]] virtual std::string limits() const { return {}; }
  /// More members of a report.
  virtual void add_to(nlohmann::json& /*report*/) const {}
};

}  // namespace heddle
