#pragma once

#include <istream>
#include <optional>
#include <string>

namespace heddle {

/// The machine that this process runs on, as far as measured values depend on it.
struct Host {
  std::string name;  ///< of the host in its network
  std::string
      cpu_model;  ///< "AMD EPYC 9454 48-Core Processor"; "unknown" if the system does not say
  int cores = 1;  ///< that this process may use
};

/// Asks the system. Any thread.
[[nodiscard]] Host describe_host();

/// Seconds of processor time since the system came up, over all its processors, in which these had
/// something to run and ran something else's: what a virtual machine's own host gave to others.
/// Hundredths of a second; 0 where nothing is above the system. Nothing: it does not say. Any
/// thread.
[[nodiscard]] std::optional<double> stolen_seconds();
/// Likewise, of what /proc/stat says.
[[nodiscard]] std::optional<double> stolen_seconds(std::istream& stat);

/// Seconds since the start of this process, in hundredths; nothing: the system does not say. Any
/// thread.
[[nodiscard]] std::optional<double> seconds_of_process();
/// Likewise, of what /proc/self/stat says and the seconds since the system came up.
[[nodiscard]] std::optional<double> seconds_of_process(std::istream& stat, double uptime_seconds);

}  // namespace heddle
