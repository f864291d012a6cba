#pragma once

#include <cstdint>

#include "algorithms/reductions/measures.hpp"
#include "node-runtime/matrix.hpp"

/// The random vectors of checks (docs/decisions/031-sampled-checks.md). Collective; the same on all
/// nodes.
namespace heddle {

inline constexpr std::int64_t sample_count = 3;

/// Element i of vector s: 1 or -1, by a seed of heddle's own. An error in one element (i, j) of a
/// matrix changes element i of each product by the whole error.
[[nodiscard]] double sample_element(std::int64_t i, std::int64_t s);

/// By how much the vectors are multiplied so that products with a matrix of `columns` columns stay
/// in the range of doubles, whose columns have 1-norms of at most `norm`: a power of two.
[[nodiscard]] double sample_unit(Norm norm, std::int64_t columns);

/// z(i, s) := unit times element i of vector s.
void fill_with_sample(Matrix<double> z, double unit);
void fill_with_zeros(Matrix<double> matrix);

/// The largest |v(i, s) - unit z(i, s)| over rows from `first` on; 0 for none of them, not a number
/// if an element is none. `unit` 0: the largest |v(i, s)|.
[[nodiscard]] Norm largest_deviation(Matrix<double> v, double unit, GlobalRow first = GlobalRow{0});

}  // namespace heddle
