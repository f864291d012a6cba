#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"

namespace heddle {

struct SolveOptions {
  std::string file;
  std::vector<std::string> overrides;  ///< key.path=value
  std::optional<std::string> report;
  std::optional<std::string> trace;
  bool dry_run = false;
  Verbosity verbosity = Verbosity::normal;
};

/// `heddle solve`. Collective over the run's processes; returns the exit status, or throws Error
/// before a node exists. Exits the process after the failure of a node.
[[nodiscard]] int solve(const SolveOptions& options, Run& run);

}  // namespace heddle
