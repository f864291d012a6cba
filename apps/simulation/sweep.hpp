#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle {

/// Most cases of a sweep.
inline constexpr std::size_t sweep_cases_max = 1000;

/// Cases that differ in the values of some keys.
struct Sweep {
  std::vector<std::string> keys;  ///< whole: "layout.tile"
  std::vector<std::vector<std::string>>
      cases;  ///< values by key; an empty one leaves the key as is

  [[nodiscard]] bool empty() const { return cases.empty(); }
  /// "key=value" of what a case changes.
  [[nodiscard]] std::vector<std::string> overrides(std::size_t number) const;
  /// A key's name for people: its last part, unless another one has the same.
  [[nodiscard]] std::string label(std::size_t key) const;
};

/// All combinations of "key=a,b,c", the last key's values changing first; commas within brackets or
/// quotes are the value's own. With `policies` each of them under every rule of priorities (where
/// there are `devices` with either placement), and under some windows: of these keys, those that
/// are not among the others.
/// Throws Error(usage) with the count when there are too many.
[[nodiscard]] Sweep plan_sweep(const std::vector<std::string>& texts, bool policies, bool devices);

}  // namespace heddle
