#include "node-runtime/transport/datatype/overlap.hpp"

#include <array>
#include <gtest/gtest.h>
#include <set>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

bool is_receivable(const Datatype& type, std::int64_t count = 1) {
  try {
    check_receivable(make_plan(type), count);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Whether the blocks of a nest of loops overlap, by the definition.
bool overlaps(std::int64_t bytes, const std::vector<datatype::Loop>& loops) {
  std::vector<std::int64_t> origins{0};
  for (const auto& loop : loops) {
    std::vector<std::int64_t> all;
    for (const std::int64_t origin : origins) {
      for (std::int64_t i = 0; i < loop.count; ++i) all.push_back(origin + i * loop.stride);
    }
    origins = all;
  }
  std::set<std::int64_t> written;
  for (const std::int64_t origin : origins) {
    for (std::int64_t b = 0; b < bytes; ++b) {
      if (!written.insert(origin + b).second) return true;
    }
  }
  return false;
}

}  // namespace

TEST(Overlap, is_found_between_blocks_columns_and_elements) {
  const std::array<Datatype::IndexedBlock, 3> apart{{{5, 2}, {0, 2}, {3, 2}}};
  const std::array<Datatype::IndexedBlock, 3> touching{{{5, 2}, {0, 2}, {4, 2}}};
  EXPECT_TRUE(is_receivable(Datatype::indexed(apart, Scalar::float64)));
  EXPECT_FALSE(is_receivable(Datatype::indexed(touching, Scalar::float64)));
  const std::array<Datatype::IndexedBlock, 3> growing{{{0, 1}, {2, 2}, {4, 3}}};
  EXPECT_TRUE(is_receivable(Datatype::indexed(growing, Scalar::float64)));
  const std::array<Datatype::IndexedBlock, 4> grown{{{0, 1}, {2, 2}, {4, 3}, {6, 4}}};
  EXPECT_FALSE(is_receivable(Datatype::indexed(grown, Scalar::float64)));
}

TEST(Overlap, is_none_between_interleaved_elements) {
  // Columns 0, 2, 4 and 1, 3, 5.
  const Datatype even = Datatype::resized(Datatype::vector(3, 1, 2, Scalar::float64), 0, 8);
  EXPECT_TRUE(is_receivable(even, 2));
  EXPECT_FALSE(is_receivable(even, 3));
  // Both triangles of a matrix, one behind the other in the stream.
  const Datatype lower = Datatype::triangle({.rows = 9, .columns = 9, .leading = 9}, Scalar::int32);
  const Datatype upper = Datatype::triangle({.part = Datatype::TriangleShape::Part::upper,
                                             .diagonal = false,
                                             .rows = 9,
                                             .columns = 9,
                                             .leading = 9},
                                            Scalar::int32);
  const std::array<Datatype::Member, 2> both{{{0, 1, lower}, {0, 1, upper}}};
  EXPECT_TRUE(is_receivable(Datatype::structure(both)));
  const std::array<Datatype::Member, 2> shifted{{{0, 1, lower}, {4, 1, upper}}};
  EXPECT_FALSE(is_receivable(Datatype::structure(shifted)));
}

TEST(Overlap, of_huge_regular_types_is_told_at_once) {
  constexpr std::int64_t n = 3'000'000;
  const Datatype transposed =
      Datatype::hvector(n, 1, 8, Datatype::vector(n, 1, n, Scalar::float64));
  EXPECT_TRUE(is_receivable(transposed));
  EXPECT_FALSE(is_receivable(Datatype::hvector(1000, 1, 7, transposed)));
}

TEST(Overlap, of_random_loops_agrees_with_the_definition) {
  for (const std::uint64_t seed : simulation::seeds(4000)) {
    RandomType random(seed);
    const std::int64_t bytes = random.number(1, 5);
    Datatype type = Datatype::contiguous(bytes, Scalar::byte);
    std::vector<datatype::Loop> loops;
    for (std::int64_t depth = random.number(1, 4); depth > 0; --depth) {
      loops.insert(loops.begin(), {random.number(1, 5), random.number(-40, 40)});
      type = Datatype::hvector(loops.front().count, 1, loops.front().stride, type);
    }
    ASSERT_EQ(is_receivable(type), !overlaps(bytes, loops)) << simulation::replay_hint(seed);
  }
}

}  // namespace heddle::test
