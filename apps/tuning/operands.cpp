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

SharedPanel::SharedPanel(std::int64_t elements, const NormalValues& normal)
    : elements_(elements), memory_(static_cast<std::size_t>(tiles * elements)) {
  normal.fill(memory_);
}

TileView SharedPanel::tile(std::int64_t i, std::int64_t rows, std::int64_t columns) {
  return {memory_.data() + i % tiles * elements_, rows, columns, std::max<std::int64_t>(1, rows)};
}

double definite_diagonal(std::int64_t n) {
  return 4 * std::sqrt(static_cast<double>(n)) + 4;
}

double microseconds(double seconds) {
  return std::max(1.0, std::round(seconds * 1e9)) / 1000;
}

}  // namespace heddle::tuning
