#include "apps/collective_elements.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace heddle {
namespace {

constexpr double outside_elements = -1;

/// Numbers whose sums over a few thousand ranks are exact.
double element(int rank, std::int64_t i) {
  return static_cast<double>(std::int64_t{rank} * 31 + i % 1009);
}

double sum_of(int ranks, std::int64_t i) {
  double all = 0;
  for (int r = 0; r < ranks; ++r) all += element(r, i);
  return all;
}

}  // namespace

std::size_t BlockLayout::at(std::int64_t i) const {
  return static_cast<std::size_t>(i / doubles() * extent +
                                  places[static_cast<std::size_t>(i % doubles())]);
}

BlockKind block_kind(std::string_view name) {
  const auto* const found = std::ranges::find(block_kind_names, name);
  return static_cast<BlockKind>(found - std::begin(block_kind_names));
}

std::int64_t BlockShape::order() const {
  const auto doubles = static_cast<double>(kind == BlockKind::triangle ? 2 * count : count);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(doubles)));
}

std::int64_t BlockShape::doubles() const {
  switch (kind) {
    case BlockKind::triangle:
      return order() * (order() + 1) / 2;
    case BlockKind::submatrix:
      return order() * order();
    case BlockKind::contiguous:
    case BlockKind::gaps:
      break;
  }
  return count;
}

BlockLayout BlockShape::layout() const {
  BlockLayout layout;
  const std::int64_t n = order();
  switch (kind) {
    case BlockKind::triangle:
      for (std::int64_t c = 0; c < n; ++c) {
        for (std::int64_t r = c; r < n; ++r) layout.places.push_back(c * n + r);
      }
      layout.extent = n * n;
      break;
    case BlockKind::submatrix:
      for (std::int64_t c = 0; c < n; ++c) {
        for (std::int64_t r = 0; r < n; ++r) layout.places.push_back(c * 2 * n + r);
      }
      layout.extent = 2 * n * (n - 1) + n;
      break;
    case BlockKind::contiguous:
    case BlockKind::gaps: {
      const std::int64_t stride = kind == BlockKind::gaps ? 2 : 1;
      for (std::int64_t i = 0; i < count; ++i) layout.places.push_back(stride * i);
      layout.extent = stride * (count - 1) + 1;
      break;
    }
  }
  return layout;
}

Datatype BlockShape::type() const {
  const std::int64_t n = order();
  switch (kind) {
    case BlockKind::triangle:
      return Datatype::triangle({.rows = n, .columns = n, .leading = n}, Scalar::float64);
    case BlockKind::submatrix:
      return Datatype::vector(n, n, 2 * n, Scalar::float64);
    case BlockKind::gaps:
      return Datatype::vector(count, 1, 2, Scalar::float64);
    case BlockKind::contiguous:
      break;
  }
  return Scalar::float64;
}

std::int64_t CollectiveElements::in_blocks() const {
  const std::string& o = operation_;
  return o == "all_to_all" || o == "scatter" || o == "reduce_scatter" ? size_ : 1;
}

std::int64_t CollectiveElements::out_blocks() const {
  const std::string& o = operation_;
  return o == "all_to_all" || o == "gather" || o == "all_gather" ? size_ : 1;
}

/// Double i of this rank's output.
double CollectiveElements::result(std::int64_t i) const {
  const std::int64_t n = layout_.doubles();
  const std::string& o = operation_;
  if (o == "broadcast") return element(0, i);
  if (o == "scatter") return element(0, rank_ * n + i);
  if (o == "gather" || o == "all_gather") return element(static_cast<int>(i / n), i % n);
  if (o == "all_to_all") return element(static_cast<int>(i / n), rank_ * n + i % n);
  if (o == "reduce_scatter") return sum_of(size_, rank_ * n + i);
  return sum_of(o == "scan" ? rank_ + 1 : size_, i);
}

void CollectiveElements::write(std::span<double> input, std::span<double> output,
                               bool is_in_place) const {
  const std::int64_t n = layout_.doubles();
  for (std::int64_t i = 0; i < n * in_blocks(); ++i) input[layout_.at(i)] = element(rank_, i);
  std::fill_n(output.begin(), layout_.extent * out_blocks(), outside_elements);
  const bool is_root_of_one = operation_ == "broadcast" && rank_ == 0;
  if (!is_in_place && !is_root_of_one) return;
  const std::int64_t own = operation_ == "all_gather" ? rank_ * n : 0;
  for (std::int64_t i = 0; i < n; ++i) output[layout_.at(own + i)] = element(rank_, i);
}

bool CollectiveElements::are_right(std::span<const double> output) const {
  const std::string& o = operation_;
  std::vector<double> expected(static_cast<std::size_t>(layout_.extent * out_blocks()),
                               outside_elements);
  const bool has_result = rank_ == 0 || (o != "gather" && o != "reduce");
  for (std::int64_t i = 0; has_result && i < layout_.doubles() * out_blocks(); ++i) {
    expected[layout_.at(i)] = result(i);
  }
  return std::equal(expected.begin(), expected.end(), output.begin());
}

}  // namespace heddle
