#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace heddle {

/// Median, the upper of the middle two for an even count; 0 if empty.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Longest time of a repeated measurement that still counts as undisturbed by other processes.
[[nodiscard]] inline double longest_undisturbed(std::vector<double> times) {
  return 3 * median(std::move(times));
}

}  // namespace heddle
