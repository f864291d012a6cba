#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"

namespace heddle {

struct TuneOptions {
  std::optional<std::string> output;   ///< unset: the default machine file
  double seconds = 90;                 ///< total time to measure
  std::vector<std::string> overrides;  ///< key.path=value: devices and workers
  Verbosity verbosity = Verbosity::normal;
};

/// `heddle tune`. Collective over the run's processes: two of them measure messages, then process 0
/// measures the rest and writes the file. Throws Error, the same on all processes.
void tune(const TuneOptions& options, Run& run);

}  // namespace heddle
