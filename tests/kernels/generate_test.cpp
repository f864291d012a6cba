#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cpu/generator_loops.hpp"
#include "kernels/element_formulas.hpp"
#include "tests/kernels/generated_part.hpp"

/// The kernel `generate` against the formulas for single elements, which GPUs use, too.
namespace heddle::test {
namespace {

using host::GeneratorLoops;
using host::usable_generator_loops;
using kernel::ElementKind;
using kernel::RandomStream;

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

TEST(GeneratorLoops, of_all_processors_give_the_same_bits) {
  std::vector<double> vector(300);
  host::generator_loops().uniform(1, RandomStream::points, 0, 0, vector);
  const auto run = [&](const GeneratorLoops& loops) {
    std::vector<double> all;
    std::vector<double> out(253);
    const auto keep = [&] { all.insert(all.end(), out.begin(), out.end()); };
    for (const std::int64_t row : {0, 5, 16}) {
      const double* const v = vector.data() + row;
      loops.uniform(99, RandomStream::entries, row, 4, out);
      keep();
      loops.low_rank({v, v + 10, v + 20, v + 30}, {v[10], v[0], v[5], v[15]}, out);
      keep();
      for (const ElementKind kind : matern_kinds) {
        loops.distance(v, v + 1, v[7], v[8], 300.0, out);
        keep();
        loops.matern(kind, out);
        keep();
      }
    }
    return all;
  };
  const auto expected = run(*usable_generator_loops().front());
  for (const GeneratorLoops* loops : usable_generator_loops()) {
    const auto found = run(*loops);
    ASSERT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), same_bits)) << loops->name;
  }
}

TEST(GeneratorLoops, have_an_exponential_as_good_as_the_librarys) {
  std::vector<double> x;
  for (double value = 0.0; value < 700.0; value += 0.0173) x.push_back(value);
  for (const GeneratorLoops* loops : usable_generator_loops()) {
    std::vector<double> result = x;
    loops->matern(ElementKind::matern_half, result);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(result[i] / std::exp(-x[i]), 1.0, 2 * std::numeric_limits<double>::epsilon())
          << x[i];
    }
    std::vector<double> far{1e4, 1e300};
    loops->matern(ElementKind::matern_half, far);
    EXPECT_LT(far[0], 1e-300);
    EXPECT_LT(far[1], 1e-300);
  }
}

TEST(Generate, has_the_bits_of_the_formulas_in_parts_of_any_shape_and_place) {
  for (const ElementKind kind : all_element_kinds) {
    for (const PartPlace& place : part_places) {
      GeneratedPart part(kind, place);
      GuardedTile out(place.rows, place.columns);
      std::vector<TileView> views;
      for (const GuardedTile* tile : part.with_inputs(out)) views.push_back(tile->view());
      ASSERT_EQ(run(kernel::generate, part.parameters(), views), 0);
      for (std::int64_t j = 0; j < place.columns; ++j) {
        for (std::int64_t i = 0; i < place.rows; ++i) {
          ASSERT_TRUE(same_bits(out(i, j), part.element(i, j)))
              << "kind " << static_cast<int>(kind) << ", element " << i << ", " << j << " of "
              << place.rows << " x " << place.columns << " from " << place.row << ", "
              << place.column << ": " << out(i, j) << ", not " << part.element(i, j);
        }
      }
    }
  }
}

}  // namespace heddle::test
