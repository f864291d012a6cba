#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// What `heddle simulate` and `heddle replay` are told alike.
struct PredictionOptions {
  std::optional<std::string> machine;
  /// key.path=value of the problem, or machine.key.path=value
  std::vector<std::string> overrides;
  std::vector<std::string> sweeps;  ///< key.path=value,value,...
  bool policies = false;            ///< under several rules and windows
  /// Seed of drawn values: noise, random priorities, paces of workers. Nothing: 1.
  std::optional<std::uint64_t> seed;
  /// Number of seeds, from that one on. Nothing: as many as are worth it
  /// (PreparedPrediction::usual_repeats()), but one where a seed is given.
  std::optional<std::int32_t> repeat;
  std::optional<std::string> report;
  std::optional<std::string> picture;
  std::optional<std::string> trace;
};

/// Keys that were called otherwise before get their new names; a line for each goes to the
/// terminal.
void take_old_spellings(PredictionOptions& options);

}  // namespace heddle
