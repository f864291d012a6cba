#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"
#include "node-runtime/device/emulated/options.hpp"

namespace heddle {

struct DoctorOptions {
  std::vector<std::string> overrides;  ///< key.path=value: devices
  std::optional<std::string> report;
  Verbosity verbosity = Verbosity::normal;
  /// For tests: faults of emulated devices, "refuse-mappings" on all nodes, "refuse-mappings@1" on
  /// node 1.
  std::vector<std::string> faults;
};

/// `heddle doctor`. Collective over the run's processes. Returns the exit status: 0 if all places
/// can exchange data, else 1. Throws Error, the same on all processes.
int doctor(const DoctorOptions& options, Run& run);

}  // namespace heddle
