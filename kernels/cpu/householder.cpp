#include "kernels/cpu/householder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/assert.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/cpu/tile_operations.hpp"

namespace heddle::host {
namespace {

/// Widest panel that is factored column by column.
constexpr std::int64_t leaf_columns_max = 8;
using LeafValues = std::array<double, leaf_columns_max>;

constexpr Triangle t_factor{Triangle::Part::upper, false, false};
constexpr Triangle t_factor_transposed{Triangle::Part::upper, false, true};
constexpr Triangle unit_lower{Triangle::Part::lower, true, false};
constexpr Triangle unit_lower_transposed{Triangle::Part::lower, true, true};

/// A matrix of this thread's scratch memory, which grows to the largest request and is reused; its
/// content is undefined.
TileView scratch(std::int64_t rows, std::int64_t columns) {
  thread_local std::vector<double> memory;
  const auto size = static_cast<std::size_t>(rows * columns);
  if (memory.size() < size) memory.resize(size);
  return {memory.data(), rows, columns, std::max<std::int64_t>(rows, 1)};
}

void dots(std::int64_t m, std::int64_t n, const double* x, const TileView& a, double* results) {
  if (const MicroKernels* micro = blas().micro; micro != nullptr) {
    micro->dots(m, n, x, a.data, a.leading, results);
    return;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < m; ++i) sum += x[i] * a(i, j);
    results[j] = sum;
  }
}

void subtract_multiples(std::int64_t m, std::int64_t n, const double* x, const double* factors,
                        const TileView& a) {
  if (const MicroKernels* micro = blas().micro; micro != nullptr) {
    micro->subtract_multiples(m, n, x, factors, a.data, a.leading);
    return;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) a(i, j) -= x[i] * factors[j];
  }
}

/// The 2-norm of `x`, without overflow or loss where squares leave the range of double.
double norm(double* x, std::int64_t count) {
  constexpr double small = 1e-280;
  constexpr double large = 1e280;
  double square = 0;
  dots(count, 1, x, {x, count, 1, std::max<std::int64_t>(count, 1)}, &square);
  if (square > small && square < large) return std::sqrt(square);
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isnan(x[i])) return x[i];
    most = std::max(most, std::abs(x[i]));
  }
  if (most == 0 || std::isinf(most)) return most;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += (x[i] / most) * (x[i] / most);
  return most * std::sqrt(sum);
}

/// Makes the reflector I - tau v v^T, v = (1, x'), that maps (alpha, x) to (alpha', 0): alpha :=
/// alpha', x := x'. Returns tau; 0 where x is zero.
double reflect(double& alpha, double* x, std::int64_t count) {
  constexpr double safe = 1e-290;  // its inverse is far from overflow
  const double below = norm(x, count);
  if (below == 0) return 0;
  const double beta = -std::copysign(std::hypot(alpha, below), alpha);
  const double tau = (beta - alpha) / beta;
  const double divisor = alpha - beta;
  if (std::abs(divisor) > safe) {
    const double factor = 1 / divisor;
    for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
  } else {
    for (std::int64_t i = 0; i < count; ++i) x[i] /= divisor;
  }
  alpha = beta;
  return tau;
}

/// Column j of T from tau and the products of the earlier reflectors with this one.
void set_t_column(const TileView& t, std::int64_t j, double tau, const LeafValues& common) {
  for (std::int64_t i = 0; i < j; ++i) {
    double sum = 0;
    for (std::int64_t k = i; k < j; ++k) {
      sum += t(i, k) * common[static_cast<std::size_t>(k)];
    }
    t(i, j) = -tau * sum;
  }
  t(j, j) = tau;
  for (std::int64_t i = j + 1; i < t.rows; ++i) t(i, j) = 0;
}

void factor_leaf(const TileView& a, const TileView& t) {
  const std::int64_t n = a.columns;
  for (std::int64_t j = 0; j < n; ++j) {
    double* v = &a(j, j) + 1;
    const std::int64_t below = a.rows - j - 1;
    const double tau = reflect(a(j, j), v, below);
    LeafValues values{};
    const TileView right = a.block(j + 1, j + 1, below, n - j - 1);
    dots(below, right.columns, v, right, values.data());
    for (std::int64_t k = 0; k < right.columns; ++k) {
      double& value = values[static_cast<std::size_t>(k)];
      value = tau * (a(j, j + 1 + k) + value);
      a(j, j + 1 + k) -= value;
    }
    subtract_multiples(below, right.columns, v, values.data(), right);
    LeafValues common{};
    dots(below, j, v, a.block(j + 1, 0, below, j), common.data());
    for (std::int64_t k = 0; k < j; ++k) common[static_cast<std::size_t>(k)] += a(j, k);
    set_t_column(t, j, tau, common);
  }
}

void factor_leaf_below(const TileView& r, const TileView& b, const TileView& t) {
  const std::int64_t n = b.columns;
  for (std::int64_t j = 0; j < n; ++j) {
    double* v = &b(0, j);
    const double tau = reflect(r(j, j), v, b.rows);
    LeafValues values{};
    const TileView right = b.block(0, j + 1, b.rows, n - j - 1);
    dots(b.rows, right.columns, v, right, values.data());
    for (std::int64_t k = 0; k < right.columns; ++k) {
      double& value = values[static_cast<std::size_t>(k)];
      value = tau * (r(j, j + 1 + k) + value);
      r(j, j + 1 + k) -= value;
    }
    subtract_multiples(b.rows, right.columns, v, values.data(), right);
    LeafValues common{};
    dots(b.rows, j, v, b.block(0, 0, b.rows, j), common.data());
    set_t_column(t, j, tau, common);
  }
}

/// Columns of the left half: whole leaves, so that few columns are left over.
std::int64_t half_of(std::int64_t n) {
  return (n / 2 + leaf_columns_max - 1) / leaf_columns_max * leaf_columns_max;
}

/// The part of T that joins two halves, which holds V1^T V2 so far: := -T1 (V1^T V2) T2.
void join(const TileView& t, std::int64_t half) {
  const std::int64_t rest = t.rows - half;
  const TileView t12 = t.block(0, half, half, rest);
  multiply_triangle(-1.0, t.block(0, 0, half, half), t_factor, t12);
  multiply_by_triangle(t12, t.block(half, half, rest, rest), t_factor);
  clear(t.block(half, 0, rest, half));
}

void copy_transposed(const TileView& from, const TileView& to) {
  constexpr std::int64_t side = 16;
  for (std::int64_t j0 = 0; j0 < from.columns; j0 += side) {
    for (std::int64_t i0 = 0; i0 < from.rows; i0 += side) {
      for (std::int64_t j = j0; j < std::min(j0 + side, from.columns); ++j) {
        for (std::int64_t i = i0; i < std::min(i0 + side, from.rows); ++i) to(j, i) = from(i, j);
      }
    }
  }
}

void subtract_transposed(const TileView& from, const TileView& what) {
  constexpr std::int64_t side = 16;
  for (std::int64_t j0 = 0; j0 < from.columns; j0 += side) {
    for (std::int64_t i0 = 0; i0 < from.rows; i0 += side) {
      for (std::int64_t j = j0; j < std::min(j0 + side, from.columns); ++j) {
        for (std::int64_t i = i0; i < std::min(i0 + side, from.rows); ++i) from(i, j) -= what(j, i);
      }
    }
  }
}

/// w := (op(T) V^T C)^T from w = (V^T C)^T.
void apply_t(Side side, const TileView& w, const TileView& t) {
  multiply_by_triangle(w, t, side == Side::transposed ? t_factor : t_factor_transposed);
}

}  // namespace

void factor_reflectors(const TileView& a, const TileView& t) {
  HEDDLE_CHECK(a.rows >= a.columns && t.rows == a.columns && t.columns == a.columns,
               "a panel of {} x {}, T of {} x {}", a.rows, a.columns, t.rows, t.columns);
  const std::int64_t n = a.columns;
  if (n <= leaf_columns_max) return factor_leaf(a, t);
  const std::int64_t half = half_of(n);
  const std::int64_t rest = n - half;
  const TileView left = a.block(0, 0, a.rows, half);
  const TileView t1 = t.block(0, 0, half, half);
  factor_reflectors(left, t1);
  apply_reflectors(Side::transposed, left, t1, a.block(0, half, a.rows, rest));
  factor_reflectors(a.block(half, half, a.rows - half, rest), t.block(half, half, rest, rest));
  // V1^T V2: the triangle of V2, then the rows below it.
  const TileView t12 = t.block(0, half, half, rest);
  copy_transposed(a.block(half, 0, rest, half), t12);
  multiply_by_triangle(t12, a.block(half, half, rest, rest), unit_lower);
  const std::int64_t below = a.rows - n;
  multiply_transposed(1.0, a.block(n, 0, below, half), a.block(n, half, below, rest), 1.0, t12);
  join(t, half);
}

void factor_reflectors_below(const TileView& r, const TileView& b, const TileView& t,
                             bool triangular) {
  const std::int64_t n = b.columns;
  HEDDLE_CHECK(r.rows == n && r.columns == n && t.rows == n && t.columns == n,
               "a panel of {} x {}, R of {} x {}, T of {} x {}", b.rows, n, r.rows, r.columns,
               t.rows, t.columns);
  if (n <= leaf_columns_max) return factor_leaf_below(r, b, t);
  const std::int64_t half = half_of(n);
  const std::int64_t rest = n - half;
  // Rows in which the left half can be nonzero: zeros are not touched.
  const std::int64_t rows = triangular ? std::min(b.rows, b.rows - n + half) : b.rows;
  const TileView left = b.block(0, 0, rows, half);
  const TileView t1 = t.block(0, 0, half, half);
  factor_reflectors_below(r.block(0, 0, half, half), left, t1, triangular);
  apply_reflectors_below(Side::transposed, left, t1, r.block(0, half, half, rest),
                         b.block(0, half, rows, rest));
  factor_reflectors_below(r.block(half, half, rest, rest), b.block(0, half, b.rows, rest),
                          t.block(half, half, rest, rest), triangular);
  multiply_transposed(1.0, left, b.block(0, half, rows, rest), 0.0, t.block(0, half, half, rest));
  join(t, half);
}

void apply_reflectors(Side side, const TileView& v, const TileView& t, const TileView& c) {
  const std::int64_t k = v.columns;
  HEDDLE_CHECK(v.rows == c.rows && v.rows >= k && t.rows == k && t.columns == k,
               "reflectors of {} x {} with T of {} x {} on {} x {}", v.rows, k, t.rows, t.columns,
               c.rows, c.columns);
  const std::int64_t below = c.rows - k;
  const TileView v1 = v.block(0, 0, k, k);
  const TileView v2 = v.block(k, 0, below, k);
  const TileView c1 = c.block(0, 0, k, c.columns);
  const TileView c2 = c.block(k, 0, below, c.columns);
  const TileView w = scratch(c.columns, k);
  copy_transposed(c1, w);
  multiply_by_triangle(w, v1, unit_lower);
  multiply_transposed(1.0, c2, v2, 1.0, w);
  apply_t(side, w, t);
  update(c2, v2, w);
  multiply_by_triangle(w, v1, unit_lower_transposed);
  subtract_transposed(c1, w);
}

void apply_reflectors_below(Side side, const TileView& v, const TileView& t, const TileView& d,
                            const TileView& c) {
  const std::int64_t k = v.columns;
  HEDDLE_CHECK(
      v.rows == c.rows && d.rows == k && d.columns == c.columns && t.rows == k && t.columns == k,
      "reflectors of {} x {} with T of {} x {} on {} x {} and {} x {}", v.rows, k, t.rows,
      t.columns, d.rows, d.columns, c.rows, c.columns);
  const TileView w = scratch(c.columns, k);
  copy_transposed(d, w);
  multiply_transposed(1.0, c, v, 1.0, w);
  apply_t(side, w, t);
  subtract_transposed(d, w);
  update(c, v, w);
}

}  // namespace heddle::host
