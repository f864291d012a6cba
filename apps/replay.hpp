#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heddle {

struct ReplayOptions {
  std::string run;
  std::optional<std::string> machine;
  std::vector<std::string> overrides;  ///< key.path=value of the problem, or machine.key.path=value
  std::optional<std::string> report;
  std::optional<std::string> trace;
};

/// `heddle replay`: a recorded factorization once more in virtual time, as it was or with changes.
/// Returns the exit status.
[[nodiscard]] int replay_run(const ReplayOptions& options);

}  // namespace heddle
