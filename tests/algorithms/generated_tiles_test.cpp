#include "algorithms/generated/generated_tiles.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/generated_kind.hpp"
#include "config/config.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

constexpr std::array kinds{
    GeneratorKind::spd,    GeneratorKind::random,    GeneratorKind::kriging,
    GeneratorKind::lehmer, GeneratorKind::identity,  GeneratorKind::conditioned,
    GeneratorKind::graded, GeneratorKind::dependent, GeneratorKind::polynomial};

GeneratorOptions options_of(GeneratorKind kind, std::int64_t m, std::int64_t n) {
  GeneratorOptions options;
  options.kind = kind;
  options.n = n;
  options.m = m;
  options.seed = 17;
  options.rank = n / 2;
  return options;
}

/// Elements of `a` that have other bits than those of `source`; above the diagonal of a lower
/// triangle zeros are expected.
std::int64_t differences(Matrix<double> a, const MatrixSource& source) {
  std::mutex mutex;
  std::int64_t count = 0;
  const bool is_lower = a.storage() == Storage::lower;
  a.for_each_tile([&, layout = a.layout()](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t row = layout.row_begin(i);
    const std::int64_t column = layout.column_begin(c);
    std::vector<double> elements(static_cast<std::size_t>(tile.rows * tile.columns));
    const TileView expected{elements.data(), tile.rows, tile.columns,
                            std::max<std::int64_t>(1, tile.rows)};
    source.read(GlobalRow{row}, GlobalColumn{column}, expected);
    const std::lock_guard lock(mutex);
    for (std::int64_t q = 0; q < tile.columns; ++q) {
      for (std::int64_t p = 0; p < tile.rows; ++p) {
        const double wanted = is_lower && row + p < column + q ? 0 : expected(p, q);
        if (std::bit_cast<std::uint64_t>(tile(p, q)) != std::bit_cast<std::uint64_t>(wanted)) {
          ++count;
        }
      }
    }
  });
  return count;
}

class GeneratedTilesOf : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(GeneratedTilesOf, all_kinds_have_the_bits_of_their_source) {
  Node node(Config::from_text(GetParam(), "generated tiles"));
  const auto make = [&](const MatrixSpec& spec) { return node.matrix<double>(spec); };
  for (const GeneratorKind kind : kinds) {
    for (const auto& [m, n] : {std::pair{150, 150}, {310, 90}, {60, 200}, {0, 0}}) {
      const bool is_symmetric = kind == GeneratorKind::spd || kind == GeneratorKind::kriging;
      if (is_symmetric && m != n) continue;
      for (const Storage storage : {Storage::full, Storage::lower}) {
        if (m != n && storage == Storage::lower) continue;
        const GeneratorOptions options = options_of(kind, m, n);
        const auto source = make_generator(options);
        SCOPED_TRACE(source->description());
        ASSERT_NE(source->generated(), nullptr);
        const Matrix<double> a = node.matrix<double>(m, n, storage);
        GeneratedTiles tiles =
            GeneratedTiles::made_by(a.spec(), generated_kind(options).value(), make);
        tiles.fill(source->generated());
        run_job(node, tiles.job(a));
        EXPECT_EQ(differences(a, *source), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, GeneratedTilesOf,
    testing::Values(
        "runtime: {cpu_workers: 2, devices: {backend: none}}\nlayout: {tile: 32, strip: 0}\n",
        "runtime: {cpu_workers: 2, devices: {backend: none}}\nlayout: {tile: 2, strip: 0}\n",
        "runtime: {cpu_workers: 2, devices: {backend: emulated, per_node: 2}}\n"
        "layout: {tile: 40, strip: 16, small: 8}\n"));

TEST(GeneratedKinds, that_may_not_be_finite_have_to_be_read) {
  GeneratorOptions options = options_of(GeneratorKind::kriging, 5, 5);
  EXPECT_TRUE(generated_kind(options).has_value());
  options.range = 1e-200;
  EXPECT_FALSE(generated_kind(options).has_value());
  EXPECT_EQ(make_generator(options)->generated(), nullptr);
  options.range = 0.1;
  options.smoothness = 1.1;
  EXPECT_FALSE(generated_kind(options).has_value());
  EXPECT_EQ(make_generator(options)->generated(), nullptr);
}

}  // namespace heddle
