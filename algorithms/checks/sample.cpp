#include "algorithms/checks/sample.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "algorithms/io/agreement.hpp"
#include "kernels/philox.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

double sample_element(std::int64_t i, std::int64_t s) {
  constexpr kernel::Philox4x32::Key seed{0x68656464, 0x6c65};
  const auto k = static_cast<std::uint64_t>(i);
  const kernel::Philox4x32::Counter bits = kernel::Philox4x32::generate(
      {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32),
       static_cast<std::uint32_t>(s), 0},
      seed);
  return (bits[0] & 1) == 0 ? 1.0 : -1.0;
}

void fill_with_sample(Matrix<double> z, double unit) {
  z.fill([unit](std::int64_t i, std::int64_t s) { return unit * sample_element(i, s); });
}

void fill_with(Matrix<double> matrix, double value) {
  matrix.fill([value](std::int64_t, std::int64_t) { return value; });
}

double largest_deviation(Matrix<double> v, double unit, GlobalRow first) {
  struct Largest {
    std::mutex mutex;
    double value = 0;
  };
  const auto largest = std::make_shared<Largest>();
  v.read_columns([largest, unit, first, layout = v.layout()](TileRow r, TileColumn c,
                                                             std::int64_t at, TileView part) {
    const std::int64_t row = layout.row_begin(r);
    const std::int64_t column = layout.column_begin(c) + at;
    const std::int64_t begin = std::clamp<std::int64_t>(first.value() - row, 0, part.rows);
    double most = 0;
    for (std::int64_t j = 0; j < part.columns && !std::isnan(most); ++j) {
      for (std::int64_t i = begin; i < part.rows; ++i) {
        const double expected = unit == 0 ? 0 : unit * sample_element(row + i, column + j);
        const double deviation = std::abs(part(i, j) - expected);
        if (!(deviation <= most)) most = deviation;
        if (std::isnan(most)) break;
      }
    }
    const std::scoped_lock lock(largest->mutex);
    if (!(most <= largest->value) && !std::isnan(largest->value)) largest->value = most;
  });
  return reduce(v.node(), largest->value, Reduction::maximum);
}

std::vector<double> elements_of(const Matrix<double>& column) {
  // Each element is set by the one node that has it.
  const auto elements =
      std::make_shared<std::vector<double>>(static_cast<std::size_t>(column.rows()), 0.0);
  column.read_columns(
      [elements, layout = column.layout()](TileRow i, TileColumn, std::int64_t, TileView part) {
        std::copy_n(part.data, part.rows, elements->begin() + layout.row_begin(i));
      });
  column.node().all_reduce(*elements, Reduction::sum);
  return *elements;
}

bool Settled::take(std::span<const double> results, Norm unit) {
  sizes_.resize(results.size());
  is_settled_.resize(results.size(), false);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (is_settled_[k]) continue;
    const double size = std::abs(results[k]);
    sizes_[k] = size / unit;
    is_settled_[k] = least_ <= size && size <= most_;
  }
  return std::ranges::find(is_settled_, false) == is_settled_.end();
}

}  // namespace heddle
