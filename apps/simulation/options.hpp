#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// What `heddle simulate` and `heddle replay` are told alike.
struct PredictionOptions {
  std::optional<std::string> machine;
  /// key.path=value of the problem, machine.key.path=value, or policy.key=value
  std::vector<std::string> overrides;
  std::vector<std::string> sweeps;  ///< key.path=value,value,...
  bool policies = false;            ///< under several rules and windows
  std::uint64_t seed = 1;           ///< of what is drawn: noise, random priorities
  std::int32_t repeat = 1;          ///< with so many seeds from that one on
  std::optional<std::string> report;
  std::optional<std::string> picture;
  std::optional<std::string> trace;
};

}  // namespace heddle
