#include "apps/tuning/operands.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/assert.hpp"

namespace heddle::tuning {

NormalValues::NormalValues() : values_((std::size_t{1} << 20) + 7) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::generate(values_.begin(), values_.end(), [&] { return normal(random); });
}

void NormalValues::fill(std::span<double> elements) const {
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = values_[i % values_.size()];
}

NormalElements::NormalElements(std::int64_t count, const NormalValues& normal)
    : block_(allocate_memory_block(static_cast<std::size_t>(std::max<std::int64_t>(1, count)) *
                                   sizeof(double))),
      count_(count) {
  normal.fill({data(), static_cast<std::size_t>(count)});
}

SharedPanel::SharedPanel(std::int64_t height, std::int64_t rows_max, std::int64_t columns_max,
                         const NormalValues& normal)
    : height_(std::max(height, rows_max)), memory_(height_ * columns_max, normal) {}

std::int64_t SharedPanel::tiles(std::int64_t rows) const {
  return height_ / std::max<std::int64_t>(1, rows);
}

SharedPanel::Pair SharedPanel::pair(std::int64_t run, std::int32_t worker, std::int32_t workers,
                                    std::int64_t rows) const {
  const std::int64_t task = run * workers + worker;
  return {task % tiles(rows), task / tiles(rows)};
}

TileView SharedPanel::tile(std::int64_t i, std::int64_t rows, std::int64_t columns) {
  HEDDLE_CHECK(rows <= height_, "a tile of {} rows of a panel of {}", rows, height_);
  return {memory_.data() + i % tiles(rows) * rows * columns, rows, columns,
          std::max<std::int64_t>(1, rows)};
}

double definite_diagonal(std::int64_t n) {
  return 4 * std::sqrt(static_cast<double>(n)) + 4;
}

double microseconds(double seconds) {
  return std::max(1.0, std::round(seconds * 1e9)) / 1000;
}

}  // namespace heddle::tuning
