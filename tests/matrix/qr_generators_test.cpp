#include <algorithm>
#include <array>
#include <bit>
#include <cblas.h>
#include <cmath>
#include <gtest/gtest.h>
#include <lapacke.h>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/matrix/generators.hpp"
#include "tests/matrix/files.hpp"
#include "tests/support/dense.hpp"

namespace heddle {

namespace {

using testing::Dense;

Dense read(const GeneratorOptions& options) {
  const auto source = make_generator(options);
  Dense a(source->rows(), source->columns());
  source->read(GlobalRow{0}, GlobalColumn{0},
               {a.elements.data(), a.rows, a.columns, std::max<std::int64_t>(a.rows, 1)});
  return a;
}

/// Descending singular values by LAPACK.
std::vector<double> singular_values(Dense a) {
  const auto m = static_cast<lapack_int>(a.rows);
  const auto n = static_cast<lapack_int>(a.columns);
  std::vector<double> values(static_cast<std::size_t>(std::min(m, n)));
  std::vector<double> work(static_cast<std::size_t>(64 * (m + n)));
  const auto work_size = static_cast<lapack_int>(work.size());
  const lapack_int one = 1;
  lapack_int info = -1;
  openblas_set_num_threads(1);  // its own threads race in the eyes of the thread sanitizer
  LAPACK_dgesvd("N", "N", &m, &n, a.elements.data(), &m, values.data(), nullptr, &one, nullptr,
                &one, work.data(), &work_size, &info);
  EXPECT_EQ(info, 0);
  return values;
}

/// The columns from `rank` on as combinations of those before, by LAPACK.
struct Dependence {
  Dense coefficients;             ///< a column for each of them
  std::vector<double> residuals;  ///< root mean square of an element's
};

Dependence dependence(Dense a, std::int64_t rank) {
  const auto m = static_cast<lapack_int>(a.rows);
  const auto n = static_cast<lapack_int>(rank);
  const auto sides = static_cast<lapack_int>(a.columns - rank);
  double* const right = a.elements.data() + rank * a.rows;
  std::vector<double> work(static_cast<std::size_t>(64 * (n + sides)));
  const auto work_size = static_cast<lapack_int>(work.size());
  lapack_int info = -1;
  openblas_set_num_threads(1);
  LAPACK_dgels("N", &m, &n, &sides, a.elements.data(), &m, right, &m, work.data(), &work_size,
               &info);
  EXPECT_EQ(info, 0);
  Dependence result{Dense(rank, sides), {}};
  for (std::int64_t j = 0; j < sides; ++j) {
    double squares = 0.0;
    for (std::int64_t i = 0; i < m; ++i) {
      const double value = a(i, rank + j);
      if (i < rank) {
        result.coefficients(i, j) = value;
      } else {
        squares += value * value;
      }
    }
    result.residuals.push_back(std::sqrt(squares / static_cast<double>(m - n)));
  }
  return result;
}

}  // namespace

TEST(ConditionedMatrix, has_the_singular_values_that_were_asked_for) {
  for (const auto& [m, n] :
       {std::pair{1, 1}, {2, 2}, {5, 1}, {1, 5}, {40, 17}, {17, 40}, {100, 100}, {3000, 6}}) {
    const auto count = static_cast<std::size_t>(std::min(m, n));
    for (const double condition : {1.0, 10.0, 1e4, 1e10}) {
      const auto values = singular_values(read(
          {.kind = GeneratorKind::conditioned, .n = n, .m = m, .seed = 5, .condition = condition}));
      ASSERT_EQ(values.size(), count);
      for (std::size_t k = 0; k < count; ++k) {
        const double power = k == 0 ? 0.0 : static_cast<double>(k) / static_cast<double>(count - 1);
        ASSERT_NEAR(values[k], std::pow(condition, -power), 5e-15)
            << m << " x " << n << ", condition " << condition;
      }
    }
  }
}

TEST(ConditionedMatrix, is_full_and_changes_with_the_seed) {
  const Dense a = read({.kind = GeneratorKind::conditioned, .n = 30, .m = 50, .seed = 1});
  const Dense b = read({.kind = GeneratorKind::conditioned, .n = 30, .m = 50, .seed = 2});
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    ASSERT_NE(a.elements[i], 0.0);
    ASSERT_NE(a.elements[i], b.elements[i]);
  }
}

TEST(ConditionedMatrix, has_its_singular_values_in_random_order) {
  // With the reflectors' mixing small, the diagonal shows the order.
  const Dense a = read({.kind = GeneratorKind::conditioned, .n = 200, .m = 200, .condition = 1e3});
  int rises = 0;
  for (std::int64_t j = 1; j < 200; ++j) rises += std::abs(a(j, j)) > std::abs(a(j - 1, j - 1));
  EXPECT_GT(rises, 60);
  EXPECT_LT(rises, 140);
}

TEST(GradedMatrix, columns_are_random_and_scaled_geometrically) {
  // 16 steps of a factor of 2, each of them exact.
  const Dense graded =
      read({.kind = GeneratorKind::graded, .n = 17, .m = 40, .seed = 3, .condition = 0x1p16});
  const Dense random = read({.kind = GeneratorKind::random, .n = 17, .m = 40, .seed = 3});
  for (std::int64_t j = 0; j < 17; ++j) {
    for (std::int64_t i = 0; i < 40; ++i) {
      ASSERT_EQ(graded(i, j), std::ldexp(random(i, j), -static_cast<int>(j)));
    }
  }
}

TEST(GradedMatrix, column_norms_fall_from_one_to_the_reciprocal_of_the_condition) {
  constexpr std::int64_t m = 4000;
  for (const double condition : {1.0, 3.0, 1e8, 1e200}) {
    const Dense a = read({.kind = GeneratorKind::graded, .n = 12, .m = m, .condition = condition});
    for (std::int64_t j = 0; j < 12; ++j) {
      const double scale = std::pow(condition, -static_cast<double>(j) / 11.0);
      double squares = 0.0;
      for (std::int64_t i = 0; i < m; ++i) squares += std::pow(a(i, j) / scale, 2);
      // Five standard deviations of 4000 independent uniform numbers.
      EXPECT_NEAR(squares / m, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / m)) << condition << " " << j;
    }
  }
}

TEST(DependentMatrix, later_columns_are_as_far_from_the_first_ones_as_asked_for) {
  constexpr std::int64_t m = 2000;
  for (const std::int64_t rank : {1, 2, 3, 20, 28}) {
    for (const double distance : {10.0, 1e-3, 1e-10}) {
      const Dense a = read(
          {.kind = GeneratorKind::dependent, .n = 29, .m = m, .rank = rank, .distance = distance});
      const auto residuals = dependence(a, rank).residuals;
      ASSERT_EQ(std::ssize(residuals), 29 - rank);
      for (const double residual : residuals) {
        // Uniform numbers; five standard deviations of the mean of their squares.
        EXPECT_NEAR(std::pow(residual / distance, 2), 1.0 / 3, 5 * std::sqrt(4.0 / 45 / m))
            << rank << " " << distance;
      }
    }
  }
}

TEST(DependentMatrix, without_distance_has_the_rank_up_to_rounding) {
  for (const std::int64_t rank : {1, 7, 30}) {
    const auto values = singular_values(
        read({.kind = GeneratorKind::dependent, .n = 30, .m = 90, .rank = rank, .distance = 0.0}));
    EXPECT_GT(values[static_cast<std::size_t>(rank - 1)], 1e-1) << rank;
    for (std::size_t k = static_cast<std::size_t>(rank); k < values.size(); ++k) {
      EXPECT_LT(values[k], 1e-13) << rank;
    }
  }
}

TEST(DependentMatrix, later_columns_combine_different_three_of_the_first_ones) {
  for (const std::int64_t rank : {1, 2, 3, 4, 25}) {
    const Dense a =
        read({.kind = GeneratorKind::dependent, .n = 60, .m = 80, .rank = rank, .distance = 0.0});
    const Dense coefficients = dependence(a, rank).coefficients;
    std::vector<int> uses(static_cast<std::size_t>(rank));
    for (std::int64_t j = 0; j < coefficients.columns; ++j) {
      int terms = 0;
      for (std::int64_t k = 0; k < rank; ++k) {
        const double coefficient = std::abs(coefficients(k, j));
        EXPECT_LT(coefficient, 1.0);
        if (coefficient < 1e-12) continue;
        ++terms;
        ++uses[static_cast<std::size_t>(k)];
      }
      EXPECT_EQ(terms, std::min<std::int64_t>(rank, 3)) << rank;
    }
    if (rank != 4) continue;
    for (const int count : uses) {  // of 56 columns; each is taken by some and left out by others
      EXPECT_GT(count, 0);
      EXPECT_LT(count, 56);
    }
  }
}

TEST(DependentMatrix, first_columns_are_random_and_all_but_one_unless_told) {
  const Dense random = read({.kind = GeneratorKind::random, .n = 9, .m = 20, .seed = 4});
  const Dense whole =
      read({.kind = GeneratorKind::dependent, .n = 9, .m = 20, .seed = 4, .rank = 9});
  EXPECT_EQ(whole.elements, random.elements);
  const Dense left_out = read({.kind = GeneratorKind::dependent, .n = 9, .m = 20, .seed = 4});
  const Dense said =
      read({.kind = GeneratorKind::dependent, .n = 9, .m = 20, .seed = 4, .rank = 8});
  EXPECT_EQ(left_out.elements, said.elements);
  for (std::int64_t j = 0; j < 9; ++j) {
    for (std::int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(left_out(i, j) == random(i, j), j < 8) << i << " " << j;
    }
  }
}

TEST(DependentMatrix, of_rank_zero_is_small_and_without_distance_zero) {
  const Dense random = read({.kind = GeneratorKind::random, .n = 5, .m = 20});
  const Dense small =
      read({.kind = GeneratorKind::dependent, .n = 5, .m = 20, .rank = 0, .distance = 1e-3});
  const Dense zero =
      read({.kind = GeneratorKind::dependent, .n = 5, .m = 20, .rank = 0, .distance = 0.0});
  for (std::size_t i = 0; i < random.elements.size(); ++i) {
    EXPECT_EQ(small.elements[i], 1e-3 * random.elements[i]);
    EXPECT_TRUE(testing::same_bits(zero.elements[i], 0.0));
  }
}

TEST(PolynomialMatrix, has_exact_powers_where_they_are_numbers) {
  const Dense a = read({.kind = GeneratorKind::polynomial, .n = 23, .m = 9});
  for (std::int64_t i = 0; i < 9; ++i) {
    std::int64_t power = 1;  // of point i times 4
    for (std::int64_t j = 0; j < 23; ++j) {
      EXPECT_EQ(a(i, j), std::ldexp(static_cast<double>(power), -2 * static_cast<int>(j)))
          << i << " " << j;
      power *= i - 4;
    }
  }
}

TEST(PolynomialMatrix, has_rounded_powers_elsewhere) {
  constexpr std::int64_t m = 1000;
  const Dense a = read({.kind = GeneratorKind::polynomial, .n = 100, .m = m});
  for (std::int64_t i = 0; i < m; ++i) {
    EXPECT_EQ(a(i, 1), static_cast<double>(2 * i - 999) / 999.0);
    for (std::int64_t j = 0; j < 100; ++j) {
      const auto exponent = static_cast<double>(j);
      ASSERT_NEAR(a(i, j) / std::pow(a(i, 1), exponent), 1.0,
                  (exponent + 2) * std::numeric_limits<double>::epsilon() / 2)
          << i << " " << j;
      ASSERT_EQ(a(m - 1 - i, j), j % 2 == 0 ? a(i, j) : -a(i, j)) << i << " " << j;
    }
  }
}

TEST(PolynomialMatrix, of_one_or_two_points_has_them_in_the_middle_or_at_the_ends) {
  const Dense one = read({.kind = GeneratorKind::polynomial, .n = 4, .m = 1});
  EXPECT_EQ(one.elements, (std::vector<double>{1.0, 0.0, 0.0, 0.0}));
  const Dense two = read({.kind = GeneratorKind::polynomial, .n = 3, .m = 2});
  EXPECT_EQ(two.elements, (std::vector<double>{1.0, 1.0, -1.0, 1.0, 1.0, 1.0}));
}

TEST(QrGenerators, compute_elements_beyond_32_bits_alone) {
  constexpr std::int64_t size = std::int64_t{1} << 40;
  constexpr std::int64_t middle = size / 2;
  const auto element = [](const GeneratorOptions& options, std::int64_t row, std::int64_t column) {
    return testing::read_block(*make_generator(options), row, column, 1, 1)(0, 0);
  };
  const GeneratorOptions polynomial{.kind = GeneratorKind::polynomial, .n = size, .m = 4};
  EXPECT_EQ(element(polynomial, 3, size - 1), 1.0);
  EXPECT_EQ(element(polynomial, 0, size - 1), -1.0);
  EXPECT_EQ(element(polynomial, 0, size - 2), 1.0);

  const GeneratorOptions random{.kind = GeneratorKind::random, .n = size, .m = size};
  const GeneratorOptions graded{
      .kind = GeneratorKind::graded, .n = 70, .m = size, .condition = 1e6};
  EXPECT_EQ(element(graded, middle, 69), element(random, middle, 69) * (1 / 1e6));

  const GeneratorOptions dependent{
      .kind = GeneratorKind::dependent, .n = 70, .m = size, .rank = 40, .distance = 0.0};
  EXPECT_EQ(element(dependent, middle, 39), element(random, middle, 39));
  const double here = element(dependent, middle, 45);
  EXPECT_NE(here, 0.0);
  EXPECT_NE(here, element(dependent, middle, 46));
  EXPECT_NE(here, element(dependent, middle + 1, 45));
}

}  // namespace heddle
