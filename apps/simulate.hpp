#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

struct SimulateOptions {
  std::string file;
  std::optional<std::string> machine;
  std::vector<std::string> overrides;  ///< key.path=value of the problem, or machine.key.path=value
  std::optional<std::string> report;
  std::optional<std::string> trace;
};

/// `heddle simulate`: the factorization of a problem on a machine that need not be there, in
/// virtual time. Returns the exit status.
[[nodiscard]] int simulate_problem(const SimulateOptions& options);

}  // namespace heddle
