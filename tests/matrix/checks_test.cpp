#include "algorithms/matrix/checks.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "algorithms/matrix/generators.hpp"
#include "algorithms/matrix/mtx_file.hpp"
#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST(FindNonFinite, passes_all_finite_numbers) {
  testing::Block block(37, 5);
  const TileView view = block.view();
  const std::vector<double> values{0.0, -0.0, 4.9e-324, 1.7976931348623157e308,
                                   -1.7976931348623157e308};
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t i = 0; i < 37; ++i)
      view(i, j) = values[static_cast<std::size_t>((i + j) % 5)];
  }
  EXPECT_FALSE(find_non_finite(view, GlobalRow{0}, GlobalColumn{0}).has_value());
  EXPECT_FALSE(find_non_finite({}, GlobalRow{0}, GlobalColumn{0}).has_value());
}

TEST(FindNonFinite, names_the_first_in_column_major_order) {
  testing::Block block(37, 5);
  const TileView view = block.view();
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    view(3, 4) = infinity;
    view(36, 2) = bad;
    view(1, 3) = infinity;
    const auto found = find_non_finite(view, GlobalRow{100}, GlobalColumn{200});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->row, GlobalRow{136});
    EXPECT_EQ(found->column, GlobalColumn{202});
    EXPECT_EQ(std::isnan(found->value), std::isnan(bad));
  }
  EXPECT_EQ(describe(NonFinite{GlobalRow{2}, GlobalColumn{4}, -infinity}),
            "-inf at row 3, column 5 (counted from 1)");
  EXPECT_TRUE(comes_before({GlobalRow{9}, GlobalColumn{1}}, {GlobalRow{0}, GlobalColumn{2}}));
  EXPECT_FALSE(comes_before({GlobalRow{9}, GlobalColumn{1}}, {GlobalRow{0}, GlobalColumn{1}}));
}

TEST(FindAsymmetry, refuses_a_mirror_or_diagonals_of_another_shape) {
  testing::Block block(20, 11);
  testing::Block mirror(11, 19);
  testing::Block right(11, 20);
  const std::vector<double> rows(20, 1.0);
  const std::vector<double> columns(11, 1.0);
  const auto find = [&](TileView mirrored, std::span<const double> row_diagonal) {
    static_cast<void>(find_asymmetry(block.view(), mirrored, GlobalRow{40}, GlobalColumn{10},
                                     row_diagonal, columns, symmetry_tolerance));
  };
  testing::expect_error(ErrorCode::usage, {"find_asymmetry", "mirror of 11 x 19", "11 x 20"},
                        [&] { find(mirror.view(), rows); });
  testing::expect_error(ErrorCode::usage, {"find_asymmetry", "11 and 11 elements", "20 x 11"},
                        [&] { find(right.view(), columns); });
}

TEST(FindAsymmetry, names_the_worst_pair_relative_to_its_scale) {
  testing::Block block(20, 11);
  testing::Block mirror(11, 20);
  for (std::int64_t j = 0; j < 11; ++j) {
    for (std::int64_t i = 0; i < 20; ++i) block.view()(i, j) = mirror.view()(j, i) = 0.25;
  }
  const std::vector<double> rows(20, 4.0);
  const std::vector<double> columns(11, 1.0);
  const auto find = [&] {
    return find_asymmetry(block.view(), mirror.view(), GlobalRow{40}, GlobalColumn{10}, rows,
                          columns);
  };
  EXPECT_FALSE(find().has_value());
  block.view()(7, 3) += 1e-6;
  block.view()(17, 9) += 1e-3;
  mirror.view()(9, 18) -= 1e-3;
  const auto found = find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->row, GlobalRow{57});
  EXPECT_EQ(found->column, GlobalColumn{19});
  EXPECT_EQ(found->value, 0.25 + 1e-3);
  EXPECT_EQ(found->mirrored, 0.25);
  EXPECT_NEAR(found->difference, 1e-3, 1e-15);
  EXPECT_NEAR(found->relative, 5e-4, 1e-15);
}

TEST(FindAsymmetry, bears_rounding_relative_to_the_diagonal) {
  double value = 1e-10;
  double mirrored = 1e-10;
  const double one = 1.0;
  const auto differs = [&] {
    return find_asymmetry({&value, 1, 1, 1}, {&mirrored, 1, 1, 1}, GlobalRow{1}, GlobalColumn{0},
                          {&one, 1}, {&one, 1})
        .has_value();
  };
  mirrored = value + 7 * epsilon;
  EXPECT_FALSE(differs());
  mirrored = value + 10 * epsilon;
  EXPECT_TRUE(differs());
  value = mirrored = 0.0;
  EXPECT_FALSE(differs());
  value = 1e10;
  mirrored = value * (1 + 4 * epsilon);
  EXPECT_FALSE(differs());
  mirrored = -value;
  EXPECT_TRUE(differs());
  mirrored = std::nan("");
  EXPECT_FALSE(differs());
}

TEST(FindAsymmetry, reads_mirror_and_diagonal_from_the_source) {
  const testing::TemporaryFolder folder;
  MtxSource source(folder.write("a.mtx",
                                "%%MatrixMarket matrix array real general\n3 3\n"
                                "4\n1\n2\n1\n5\n3\n2.5\n3\n6\n"));
  source.prepare(testing::all_rows(3));
  auto block = testing::read_block(source, 2, 0, 1, 2);
  const auto found = find_asymmetry(source, block.view(), GlobalRow{2}, GlobalColumn{0});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(describe(*found),
            "element (3, 1) is 2 but element (1, 3) is 2.5, difference 0.5 (counted from 1)");
  auto diagonal = testing::read_block(source, 0, 0, 2, 2);
  EXPECT_FALSE(find_asymmetry(source, diagonal.view(), GlobalRow{0}, GlobalColumn{0}).has_value());
}

TEST(FindAsymmetry, finds_each_pair_of_an_unsymmetric_matrix_from_either_side) {
  const auto source = make_generator({.kind = GeneratorKind::random, .n = 30, .m = {}});
  auto low = testing::read_block(*source, 20, 3, 9, 8);
  auto high = testing::read_block(*source, 3, 20, 8, 9);
  const auto from_below = find_asymmetry(*source, low.view(), GlobalRow{20}, GlobalColumn{3});
  const auto from_above = find_asymmetry(*source, high.view(), GlobalRow{3}, GlobalColumn{20});
  ASSERT_TRUE(from_below.has_value() && from_above.has_value());
  EXPECT_EQ(from_below->row.value(), from_above->column.value());
  EXPECT_EQ(from_below->relative, from_above->relative);
  EXPECT_TRUE(is_worse(*from_below, *from_above));
}

}  // namespace heddle
