#pragma once

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

}  // namespace heddle
