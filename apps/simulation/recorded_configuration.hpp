#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "replay/run.hpp"

namespace heddle {

/// The configuration of a recorded run, whole: as it was given, and what became of it. Of its
/// matrix it has the size; `machine`, the measurements of where it was recorded, is open.
class RecordedConfiguration {
 public:
  /// Throws Error(usage) for a run that does not keep its configuration.
  explicit RecordedConfiguration(const replay::RunTrace& run);

  /// The run's report.
  [[nodiscard]] const nlohmann::json& about() const { return about_; }
  /// With what the run has chosen for `auto`, but for the keys `anew`: these are `auto` again where
  /// they were. Then come `overrides` ("key.path=value"). Throws ConfigError.
  [[nodiscard]] Config with(const std::vector<std::string>& overrides,
                            std::span<const std::string_view> anew) const;
  /// The key was `auto` when the run began.
  [[nodiscard]] bool was_open(std::string_view key) const;

 private:
  std::string source_;
  nlohmann::json about_;
  nlohmann::json given_;
  nlohmann::json resolved_;
};

}  // namespace heddle
