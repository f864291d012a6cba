#include "algorithms/matrix/generators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cblas.h>
#include <cmath>
#include <gtest/gtest.h>
#include <lapacke.h>
#include <limits>
#include <random>
#include <vector>

#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

constexpr std::array<GeneratorKind, 9> all_kinds{
    GeneratorKind::spd,    GeneratorKind::random,    GeneratorKind::kriging,
    GeneratorKind::lehmer, GeneratorKind::identity,  GeneratorKind::conditioned,
    GeneratorKind::graded, GeneratorKind::dependent, GeneratorKind::polynomial};

constexpr bool is_always_square(GeneratorKind kind) {
  return kind == GeneratorKind::spd || kind == GeneratorKind::kriging;
}

constexpr bool is_symmetric_when_square(GeneratorKind kind) {
  return is_always_square(kind) || kind == GeneratorKind::lehmer || kind == GeneratorKind::identity;
}

std::unique_ptr<MatrixSource> make(GeneratorKind kind, std::int64_t n,
                                   std::optional<std::int64_t> m = {}) {
  GeneratorOptions options;
  options.kind = kind;
  options.n = n;
  options.m = m;
  return make_generator(options);
}

/// Ascending eigenvalues by LAPACK.
std::vector<double> eigenvalues(const MatrixSource& source) {
  const std::int64_t n = source.rows();
  std::vector<double> a(static_cast<std::size_t>(n * n));
  source.read(GlobalRow{0}, GlobalColumn{0}, {a.data(), n, n, n});
  std::vector<double> values(static_cast<std::size_t>(n));
  const auto order = static_cast<lapack_int>(n);
  std::vector<double> work(static_cast<std::size_t>(40 * n));
  const auto work_size = static_cast<lapack_int>(work.size());
  lapack_int info = -1;
  openblas_set_num_threads(1);  // its own threads race in the eyes of the thread sanitizer
  // The C interface proper is in a library that not every OpenBLAS brings along.
  LAPACK_dsyev("N", "L", &order, a.data(), &order, values.data(), work.data(), &work_size, &info);
  EXPECT_EQ(info, 0);
  return values;
}

}  // namespace

TEST(Generators, names_and_kinds_are_two_ways_to_say_the_same) {
  for (const GeneratorKind kind : all_kinds) {
    EXPECT_EQ(generator_kind(generator_name(kind)), kind);
    EXPECT_NE(make(kind, 3)->description().find(generator_name(kind)), std::string::npos);
  }
  EXPECT_EQ(generator_names().size(), all_kinds.size());
  EXPECT_EQ(generator_kind("hilbert"), std::nullopt);
}

TEST(Generators, any_block_has_the_bits_of_the_whole_matrix) {
  constexpr std::int64_t n = 71;
  std::mt19937 random(3);
  for (const GeneratorKind kind : all_kinds) {
    for (const std::int64_t m : {71, 1700, 40}) {
      if (is_always_square(kind) && m != n) continue;
      const auto source = make(kind, n, m);
      const auto whole = testing::read_all(*source);
      for (int repeat = 0; repeat < 50; ++repeat) {
        const auto up_to = [&](std::int64_t most) {
          return std::uniform_int_distribution<std::int64_t>(0, most)(random);
        };
        const std::int64_t row = up_to(m);
        const std::int64_t column = up_to(n);
        const std::int64_t rows = up_to(m - row);
        const std::int64_t columns = up_to(n - column);
        const auto block = testing::read_block(*source, row, column, rows, columns);
        for (std::int64_t j = 0; j < columns; ++j) {
          for (std::int64_t i = 0; i < rows; ++i) {
            ASSERT_TRUE(testing::same_bits(block(i, j), whole(row + i, column + j)))
                << source->description() << ": " << row + i << " " << column + j;
          }
        }
      }
    }
  }
}

TEST(Generators, of_any_shape_have_that_shape_and_finite_elements) {
  for (const GeneratorKind kind : all_kinds) {
    for (const std::int64_t n : {0, 1, 2, 9}) {
      for (const std::int64_t m : {0, 1, 2, 9, 30}) {
        if (is_always_square(kind) && m != n) continue;
        const auto source = make(kind, n, m);
        EXPECT_EQ(source->rows(), m);
        EXPECT_EQ(source->columns(), n);
        const auto a = testing::read_all(*source);
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            ASSERT_TRUE(std::isfinite(a(i, j))) << source->description();
          }
        }
      }
    }
  }
}

TEST(Generators, have_the_same_bits_on_every_machine) {
  // FNV-1a of the elements, column by column.
  const auto hash_of = [](GeneratorKind kind) {
    const auto source = make(kind, 33, is_always_square(kind) ? 33 : 41);
    const auto a = testing::read_all(*source);
    std::uint64_t hash = 14695981039346656037ULL;
    for (std::int64_t j = 0; j < source->columns(); ++j) {
      for (std::int64_t i = 0; i < source->rows(); ++i) {
        const auto bits = std::bit_cast<std::uint64_t>(a(i, j));
        for (int shift = 0; shift < 64; shift += 8) {
          hash = (hash ^ (bits >> shift & 0xFFU)) * 1099511628211ULL;
        }
      }
    }
    return hash;
  };
  EXPECT_EQ(hash_of(GeneratorKind::spd), 0xDB12F7D8DEB08516U);
  EXPECT_EQ(hash_of(GeneratorKind::random), 0x30CE64D8A86CD42DU);
  EXPECT_EQ(hash_of(GeneratorKind::kriging), 0x9A3E96C4A1BD7DE1U);
  EXPECT_EQ(hash_of(GeneratorKind::lehmer), 0x70CE848CED311EA4U);
  EXPECT_EQ(hash_of(GeneratorKind::conditioned), 0xCD05CEA4D558AB1BU);
  EXPECT_EQ(hash_of(GeneratorKind::graded), 0x81DE39F93B234EAEU);
  EXPECT_EQ(hash_of(GeneratorKind::dependent), 0x9A03283BAB0C69C3U);
  EXPECT_EQ(hash_of(GeneratorKind::polynomial), 0xA8F0195255236280U);
}

TEST(Generators, that_say_so_are_symmetric_to_the_bit) {
  for (const GeneratorKind kind : all_kinds) {
    EXPECT_TRUE(is_always_square(kind) || !make(kind, 67, 68)->is_symmetric());
    for (const double smoothness : {0.5, 1.5, 2.5, 0.8}) {
      const auto source =
          make_generator({.kind = kind, .n = 67, .m = {}, .smoothness = smoothness});
      EXPECT_EQ(source->is_symmetric(), is_symmetric_when_square(kind));
      if (!source->is_symmetric()) continue;
      const auto a = testing::read_all(*source);
      for (std::int64_t j = 0; j < 67; ++j) {
        for (std::int64_t i = 0; i < j; ++i) ASSERT_TRUE(testing::same_bits(a(i, j), a(j, i)));
      }
    }
  }
}

TEST(RandomMatrix, entries_are_uniform_between_minus_one_and_one) {
  const auto a = testing::read_all(*make(GeneratorKind::random, 400));
  double sum = 0.0;
  double squares = 0.0;
  std::array<int, 10> histogram{};
  for (std::int64_t j = 0; j < 400; ++j) {
    for (std::int64_t i = 0; i < 400; ++i) {
      const double x = a(i, j);
      ASSERT_LT(std::abs(x), 1.0);
      ASSERT_NE(x, 0.0);
      sum += x;
      squares += x * x;
      ++histogram[static_cast<std::size_t>((x + 1.0) * 5.0)];
    }
  }
  // Five standard deviations of 160000 independent uniform numbers.
  EXPECT_NEAR(sum / 160000, 0.0, 5 * std::sqrt(1.0 / 3 / 160000));
  EXPECT_NEAR(squares / 160000, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / 160000));
  for (const int count : histogram) EXPECT_NEAR(count, 16000, 5 * 120);
}

TEST(RandomMatrix, another_seed_or_position_gives_other_numbers) {
  const auto a = make_generator({.kind = GeneratorKind::random, .n = 40, .m = 60, .seed = 1});
  const auto b = make_generator({.kind = GeneratorKind::random, .n = 40, .m = 60, .seed = 2});
  const auto high = make_generator(
      {.kind = GeneratorKind::random, .n = 40, .m = 60, .seed = 1 + (std::uint64_t{1} << 32)});
  std::vector<double> values;
  for (const auto* source : {a.get(), b.get(), high.get()}) {
    const auto block = testing::read_all(*source);
    for (std::int64_t j = 0; j < 40; ++j) {
      for (std::int64_t i = 0; i < 60; ++i) values.push_back(block(i, j));
    }
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

TEST(RandomMatrix, positions_beyond_32_bits_have_numbers_of_their_own) {
  const auto source = make_generator(
      {.kind = GeneratorKind::random, .n = std::int64_t{1} << 40, .m = std::int64_t{1} << 40});
  const std::int64_t far = std::int64_t{1} << 36;
  const double here = testing::read_block(*source, 3, 5, 1, 1)(0, 0);
  EXPECT_NE(testing::read_block(*source, far + 3, 5, 1, 1)(0, 0), here);
  EXPECT_NE(testing::read_block(*source, 3, far + 5, 1, 1)(0, 0), here);
}

TEST(SpdMatrix, has_the_eigenvalues_that_were_asked_for) {
  for (const std::int64_t n : {2, 3, 17, 100}) {
    for (const double condition : {1.0, 10.0, 1e4, 1e10}) {
      const auto source = make_generator(
          {.kind = GeneratorKind::spd, .n = n, .m = {}, .seed = 5, .condition = condition});
      const std::vector<double> values = eigenvalues(*source);
      for (std::int64_t k = 0; k < n; ++k) {
        const double power = static_cast<double>(k) / static_cast<double>(n - 1);
        ASSERT_NEAR(values[static_cast<std::size_t>(n - 1 - k)], std::pow(condition, -power),
                    5e-15);
      }
    }
  }
}

TEST(SpdMatrix, is_full_and_changes_with_the_seed) {
  const auto one = make_generator({.kind = GeneratorKind::spd, .n = 50, .m = {}, .seed = 1});
  const auto two = make_generator({.kind = GeneratorKind::spd, .n = 50, .m = {}, .seed = 2});
  const auto a = testing::read_all(*one);
  const auto b = testing::read_all(*two);
  for (std::int64_t j = 0; j < 50; ++j) {
    for (std::int64_t i = 0; i < 50; ++i) {
      ASSERT_NE(a(i, j), 0.0);
      ASSERT_NE(a(i, j), b(i, j));
    }
  }
}

TEST(SpdMatrix, of_one_row_is_one) {
  EXPECT_EQ(testing::read_all(*make(GeneratorKind::spd, 1))(0, 0), 1.0);
  static_cast<void>(testing::read_all(*make(GeneratorKind::spd, 0)));
}

TEST(KrigingMatrix, is_positive_definite_with_the_nugget_as_lower_bound) {
  for (const double smoothness : {0.5, 1.5, 2.5, 0.3, 1.0, 4.0}) {
    const auto source = make_generator({.kind = GeneratorKind::kriging,
                                        .n = 120,
                                        .m = {},
                                        .range = 0.3,
                                        .smoothness = smoothness,
                                        .nugget = 1e-6});
    EXPECT_GE(eigenvalues(*source).front(), 1e-6 - 1e-12) << smoothness;
    EXPECT_EQ(testing::read_block(*source, 7, 7, 1, 1)(0, 0), 1.0 + 1e-6);
  }
}

TEST(KrigingMatrix, closed_forms_agree_with_the_bessel_function) {
  for (const double smoothness : {0.5, 1.5, 2.5}) {
    GeneratorOptions options{.kind = GeneratorKind::kriging, .n = 60, .m = {}};
    options.range = 0.05;
    options.smoothness = smoothness;
    const auto closed = testing::read_all(*make_generator(options));
    options.smoothness = std::nextafter(smoothness, 10.0);
    const auto general = testing::read_all(*make_generator(options));
    for (std::int64_t j = 0; j < 60; ++j) {
      for (std::int64_t i = 0; i < 60; ++i) {
        ASSERT_NEAR(closed(i, j), general(i, j), 1e-13) << smoothness;
      }
    }
  }
}

TEST(KrigingMatrix, is_finite_for_extreme_ranges) {
  for (const double smoothness : {0.01, 0.5, 3.3, 20.0}) {
    for (const double range : {1e-200, 1e-6, 1.0, 1e6, 1e200}) {
      GeneratorOptions options{.kind = GeneratorKind::kriging, .n = 20, .m = {}};
      options.range = range;
      options.smoothness = smoothness;
      const auto a = testing::read_all(*make_generator(options));
      for (std::int64_t j = 0; j < 20; ++j) {
        for (std::int64_t i = 0; i < j; ++i) {
          ASSERT_GE(a(i, j), 0.0) << smoothness << " " << range;
          ASSERT_LE(a(i, j), 1.0 + 1e-12) << smoothness << " " << range;
        }
      }
    }
  }
}

TEST(KrigingMatrix, neighbours_in_the_order_are_near_each_other) {
  constexpr std::int64_t n = 400;
  const auto a = testing::read_all(*make(GeneratorKind::kriging, n));
  double neighbours = 0.0;
  double all = 0.0;
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    neighbours += a(i + 1, i) / static_cast<double>(n - 1);
    for (std::int64_t j = 0; j < i; ++j) all += a(i, j) / (static_cast<double>(n * (n - 1)) / 2);
  }
  EXPECT_GT(neighbours, 5 * all);
}

TEST(LehmerMatrix, and_identity_have_their_elements) {
  const auto lehmer =
      testing::read_all(*make_generator({.kind = GeneratorKind::lehmer, .n = 4, .m = 6}));
  EXPECT_EQ(lehmer(0, 3), 0.25);
  EXPECT_EQ(lehmer(5, 2), 0.5);
  EXPECT_EQ(lehmer(2, 2), 1.0);
  EXPECT_GT(eigenvalues(*make(GeneratorKind::lehmer, 30)).front(), 0.0);
  const auto identity =
      testing::read_all(*make_generator({.kind = GeneratorKind::identity, .n = 4, .m = 6}));
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(identity(i, j), i == j ? 1.0 : 0.0);
  }
}

TEST(Generators, refuse_impossible_options_by_name_and_value) {
  const auto refused = [](const GeneratorOptions& options, const std::vector<std::string>& parts) {
    testing::expect_error(ErrorCode::usage, parts,
                          [&] { static_cast<void>(make_generator(options)); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused({.kind = GeneratorKind::spd, .n = 4, .m = 5}, {"spd", "m is 5", "n (4)"});
  refused({.kind = GeneratorKind::random, .n = -4, .m = {}}, {"n is -4"});
  refused({.kind = GeneratorKind::spd, .n = 4, .m = {}, .condition = 0.5}, {"condition is 0.5"});
  refused({.kind = GeneratorKind::spd, .n = 4, .m = {}, .condition = nan}, {"condition is nan"});
  refused({.kind = GeneratorKind::kriging, .n = 4, .m = {}, .range = 0.0}, {"range is 0"});
  refused({.kind = GeneratorKind::kriging, .n = 4, .m = {}, .smoothness = 21.0},
          {"smoothness is 21", "20"});
  refused({.kind = GeneratorKind::kriging, .n = 4, .m = {}, .nugget = -1.0}, {"nugget is -1"});
  refused({.kind = GeneratorKind::conditioned, .n = 4, .m = 9, .condition = 0.5},
          {"conditioned", "condition is 0.5", "from 1 on"});
  refused({.kind = GeneratorKind::graded, .n = 4, .m = 9, .condition = nan},
          {"graded", "condition is nan"});
  refused({.kind = GeneratorKind::dependent, .n = 4, .m = 9, .rank = 5},
          {"dependent", "rank is 5", "0 to n (4)"});
  refused({.kind = GeneratorKind::dependent, .n = 4, .m = 9, .rank = -1}, {"rank is -1"});
  refused({.kind = GeneratorKind::dependent, .n = 4, .m = 9, .distance = -1e-3},
          {"dependent", "distance is -0.001", "from 0 on"});
  refused({.kind = GeneratorKind::dependent, .n = 4, .m = 9, .distance = nan}, {"distance is nan"});
  refused({.kind = GeneratorKind::polynomial, .n = 4, .m = -9}, {"polynomial", "m is -9"});
}

}  // namespace heddle
