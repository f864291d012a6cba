#include "apps/tuning/operands.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace heddle::tuning {

NormalValues::NormalValues() : values_((std::size_t{1} << 20) + 7) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::generate(values_.begin(), values_.end(), [&] { return normal(random); });
}

void NormalValues::fill(std::span<double> elements) const {
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = values_[i % values_.size()];
}

double definite_diagonal(std::int64_t n) {
  return 4 * std::sqrt(static_cast<double>(n)) + 4;
}

double microseconds(double seconds) {
  return std::max(1.0, std::round(seconds * 1e9)) / 1000;
}

}  // namespace heddle::tuning
