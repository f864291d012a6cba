#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/simulation/subject.hpp"
#include "config/config.hpp"
#include "config/config_error.hpp"
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
  /// With what the run has chosen for `auto`.
  [[nodiscard]] Config as_it_was() const;
  /// With changes. Keys that were `auto` are so again where a change is of what they follow from;
  /// on another machine, where they follow from the machine. The tile stays: whoever asks about
  /// another machine asks about the same tasks. Throws ConfigError.
  [[nodiscard]] Config with(const SplitOverrides& changes, bool on_another_machine) const;
  /// The key was `auto` when the run began.
  [[nodiscard]] bool was_open(std::string_view key) const;

 private:
  std::string source_;
  nlohmann::json about_;
  nlohmann::json given_;
  nlohmann::json resolved_;
};

}  // namespace heddle
