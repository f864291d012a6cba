#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "algorithms/reductions/measures.hpp"
#include "node-runtime/matrix.hpp"

/// The random vectors of checks (docs/decisions/031-sampled-checks.md). Collective; the same on all
/// nodes.
namespace heddle {

inline constexpr std::int64_t sample_count = 3;

/// Element i of vector s: 1 or -1, by a seed of heddle's own. An error in one element (i, j) of a
/// matrix changes element i of each product by the whole error.
[[nodiscard]] double sample_element(std::int64_t i, std::int64_t s);

/// What vectors are multiplied by, in one pass after the other until all results are in the range
/// of doubles. No double is so large or small that its square, and the sum of 2^40 of them, is
/// outside with all three.
inline constexpr double sample_units[] = {1, 0x1p-768, 0x1p768};

/// z(i, s) := unit times element i of vector s.
void fill_with_sample(Matrix<double> z, double unit);
void fill_with(Matrix<double> matrix, double value);

/// The largest |v(i, s) - unit z(i, s)| over rows from `first` on; 0 for none of them, not a number
/// if an element is none. `unit` 0: the largest |v(i, s)|.
[[nodiscard]] double largest_deviation(Matrix<double> v, double unit,
                                       GlobalRow first = GlobalRow{0});

/// The elements of a matrix of one column.
[[nodiscard]] std::vector<double> elements_of(const Matrix<double>& column);

/// Results of passes with several units. Each is taken from the first pass in which its size was in
/// [least, most], or else from the last one.
class Settled {
 public:
  explicit Settled(double least = 0, double most = std::numeric_limits<double>::max())
      : least_(least), most_(most) {}

  /// The sizes of one pass's results, as many in each pass, are divided by `unit`. True once all
  /// have been in the range.
  [[nodiscard]] bool take(std::span<const double> results, Norm unit);
  [[nodiscard]] const std::vector<Norm>& sizes() const { return sizes_; }

 private:
  double least_;
  double most_;
  std::vector<Norm> sizes_;
  std::vector<bool> is_settled_;
};

}  // namespace heddle
