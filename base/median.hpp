#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace heddle {

/// The upper one of the two in the middle where there are two; 0 of nothing.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of times of one thing: what is longer was disturbed, as somebody else had the core meanwhile.
[[nodiscard]] inline double longest_undisturbed(std::vector<double> times) {
  return 3 * median(std::move(times));
}

}  // namespace heddle
