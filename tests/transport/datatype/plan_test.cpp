#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

using Body = PackPlan::Body;
using Part = Datatype::TriangleShape::Part;

std::vector<datatype::Loop> loops_of(const LoopNest& nest) {
  return {nest.loops.begin(), nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.depth)};
}

using Loops = std::vector<datatype::Loop>;

Datatype columns_of_matrix(std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  return Datatype::vector(columns, rows, leading, Scalar::float64);
}

}  // namespace

TEST(Plan, of_neighbours_is_one_block) {
  const Datatype nested = Datatype::contiguous(3, Datatype::vector(4, 2, 2, Scalar::float64));
  const PackPlan plan = make_plan(nested);
  EXPECT_EQ(plan.body, Body::block);
  EXPECT_EQ(plan.nest.depth, 0U);
  EXPECT_EQ(plan.nest.body_bytes, 192);
  EXPECT_EQ(plan.nest_of(5).body_bytes, 960);
  EXPECT_EQ(plan.nest_of(5).depth, 0U);
}

TEST(Plan, of_the_same_blocks_is_the_same_whichever_way_they_are_described) {
  const PackPlan vector = make_plan(Datatype::resized(columns_of_matrix(3, 4, 7), 0, 224));
  EXPECT_EQ(loops_of(vector.nest), (Loops{{4, 56}}));
  const std::array<Datatype::Dimension, 2> part{{{7, 3, 0}, {4, 4, 0}}};
  EXPECT_EQ(make_plan(Datatype::subarray(part, Datatype::Order::column_major, Scalar::float64)),
            vector);
  const std::array<Datatype::IndexedBlock, 5> blocks{{{0, 3}, {7, 1}, {8, 2}, {14, 3}, {21, 3}}};
  EXPECT_EQ(make_plan(Datatype::resized(Datatype::indexed(blocks, Scalar::float64), 0, 224)),
            vector);
  const Datatype half = Datatype::resized(columns_of_matrix(3, 2, 7), 0, 112);
  EXPECT_EQ(make_plan(Datatype::contiguous(2, half)), vector);
  EXPECT_EQ(loops_of(make_plan(half).nest_of(2)), loops_of(vector.nest));
  const std::array<Datatype::Member, 2> members{{{0, 1, half}, {112, 1, half}}};
  EXPECT_EQ(make_plan(Datatype::structure(members)), vector);
  EXPECT_EQ(make_plan(Datatype::resized(columns_of_matrix(3, 4, 7), 0, 224)).hash(), vector.hash());
}

TEST(Plan, of_vectors_of_vectors_has_a_loop_for_each_stride) {
  const Datatype row = Datatype::vector(50, 1, 100, Scalar::float64);
  const PackPlan transposed = make_plan(Datatype::hvector(40, 1, 8, row));
  EXPECT_EQ(transposed.body, Body::block);
  EXPECT_EQ(transposed.nest.body_bytes, 8);
  EXPECT_EQ(loops_of(transposed.nest), (Loops{{40, 8}, {50, 800}}));
  std::vector<Datatype::IndexedBlock> listed;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 50; ++j) listed.push_back({i + 100 * j, 1});
  }
  EXPECT_EQ(make_plan(Datatype::indexed(listed, Scalar::float64)).nest.depth, 2U);
  EXPECT_EQ(make_plan(Datatype::indexed(listed, Scalar::float64)), transposed);
}

TEST(Plan, of_a_triangle_is_computed_and_found_in_lists) {
  for (const Part part : {Part::lower, Part::upper}) {
    for (const bool diagonal : {true, false}) {
      constexpr std::int64_t n = 9;
      const Datatype triangle = Datatype::triangle(
          {.part = part, .diagonal = diagonal, .rows = n, .columns = n, .leading = 11},
          Scalar::float64);
      const PackPlan plan = make_plan(triangle);
      EXPECT_EQ(plan.body, Body::triangle);
      EXPECT_EQ(plan.size, 8 * (diagonal ? n * (n + 1) : n * (n - 1)) / 2);
      std::vector<Datatype::IndexedBlock> columns;
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t without = diagonal ? 0 : 1;
        const std::int64_t begin = part == Part::lower ? j + without : 0;
        const std::int64_t end = part == Part::lower ? n : j + 1 - without;
        columns.push_back({j * 11 + begin, end - begin});
      }
      EXPECT_EQ(make_plan(Datatype::indexed(columns, Scalar::float64)), plan);
    }
  }
}

TEST(Plan, of_trapezoids_takes_the_rectangle_along) {
  const PackPlan tall =
      make_plan(Datatype::triangle({.rows = 9, .columns = 4, .leading = 9}, Scalar::float64));
  EXPECT_EQ(tall.body, Body::triangle);
  EXPECT_EQ(tall.triangle.columns, 4);
  const Datatype wide = Datatype::triangle(
      {.part = Part::upper, .rows = 4, .columns = 9, .leading = 6}, Scalar::float64);
  const PackPlan plan = make_plan(wide);
  EXPECT_EQ(plan.body, Body::units);
  EXPECT_EQ(plan.size, 8 * (10 + 5 * 4));
  EXPECT_EQ(plan.units.size(), 9U);
}

TEST(Plan, of_anything_else_lists_units_once_and_loops_over_them) {
  const std::array<Datatype::Member, 3> members{
      {{0, 1, Scalar::int32}, {8, 1, Scalar::float64}, {24, 3, Scalar::int16}}};
  const Datatype record = Datatype::structure(members);
  const PackPlan plan = make_plan(Datatype::contiguous(1'000'000'000, record));
  EXPECT_EQ(plan.body, Body::units);
  EXPECT_EQ(plan.units, (std::vector<WorkUnit>{{0, 0, 4}, {8, 4, 8}, {24, 12, 6}}));
  EXPECT_EQ(loops_of(plan.nest), (Loops{{1'000'000'000, 32}}));
  EXPECT_EQ(loops_of(plan.nest_of(3)), (Loops{{3'000'000'000, 32}}));
  std::vector<Datatype::Member> written_out;
  for (std::int64_t i = 0; i < 7; ++i) {
    for (const auto& m : members) {
      written_out.push_back({m.displacement_bytes + 32 * i, m.length, m.type});
    }
  }
  EXPECT_EQ(make_plan(Datatype::structure(written_out)),
            make_plan(Datatype::contiguous(7, record)));
}

TEST(Plan, has_three_loops_at_most_and_units_inside_them) {
  Datatype type = Scalar::float64;
  for (std::int64_t depth = 1; depth <= 5; ++depth) {
    type = Datatype::hvector(3, 1, depth * 100'000 / (depth * depth * depth), type);
  }
  const PackPlan plan = make_plan(type);
  EXPECT_EQ(plan.body, Body::units);
  EXPECT_EQ(plan.nest.depth, 3U);
  EXPECT_EQ(plan.units.size(), 9U);
}

TEST(Plan, of_nothing_is_empty) {
  const PackPlan plan = make_plan(Datatype::vector(0, 3, 4, Scalar::float64));
  EXPECT_EQ(plan.size, 0);
  EXPECT_EQ(plan.nest_of(5).body_bytes, 0);
  EXPECT_TRUE(plan.is_valid());
}

TEST(Plan, of_random_types_is_valid_and_equal_to_itself_made_again) {
  for (const std::uint64_t seed : simulation::seeds(2000)) {
    const DescribedType described = RandomType(seed).next();
    const PackPlan plan = make_plan(datatype_of(described));
    ASSERT_TRUE(plan.is_valid()) << simulation::replay_hint(seed);
    const PackPlan again = make_plan(datatype_of(described));
    ASSERT_EQ(again, plan);
    ASSERT_EQ(again.hash(), plan.hash());
  }
}

TEST(Plan, of_nested_doublings_is_folded_without_being_written_out) {
  Datatype type = Scalar::float64;
  std::int64_t distance = 16;
  for (int level = 0; level < 40; ++level, distance *= 2) {
    const std::array<Datatype::Member, 2> twice{{{0, 1, type}, {distance, 1, type}}};
    type = Datatype::structure(twice);
  }
  const PackPlan plan = make_plan(type);
  EXPECT_EQ(plan.body, Body::block);
  EXPECT_EQ(loops_of(plan.nest), (Loops{{std::int64_t{1} << 40, 16}}));
}

TEST(LoopShapes, go_together_by_their_blocks_and_over_a_link_by_those_behind_it) {
  const auto shape_of = [](const Datatype& type) { return loop_shape(make_plan(type), 1).value(); };
  const LoopShape run = shape_of(Datatype::contiguous(400, Scalar::float64));
  const LoopShape part = shape_of(Datatype::vector(20, 20, 23, Scalar::float64));
  const LoopShape halves = shape_of(Datatype::vector(40, 10, 11, Scalar::float64));
  const LoopShape transpose =
      shape_of(Datatype::hvector(20, 1, 8, Datatype::vector(20, 1, 20, Scalar::float64)));
  const LoopShape shorter = shape_of(Datatype::vector(19, 20, 23, Scalar::float64));
  const LoopShape triangle =
      shape_of(Datatype::triangle({.rows = 20, .columns = 20, .leading = 20}, Scalar::float64));
  for (const LoopShape& other : {run, halves}) {
    EXPECT_TRUE(part.goes_with(other));
    EXPECT_TRUE(part.goes_far_with(other));
  }
  EXPECT_FALSE(part.goes_with(transpose));
  EXPECT_TRUE(part.goes_far_with(transpose));
  EXPECT_FALSE(transpose.goes_far_with(part)) << "single elements behind the link";
  EXPECT_TRUE(transpose.goes_far_with(transpose)) << "alike";
  EXPECT_TRUE(triangle.goes_far_with(triangle));
  EXPECT_FALSE(part.goes_far_with(shorter)) << "fewer bytes";
  EXPECT_FALSE(run.goes_far_with(triangle));
}

}  // namespace heddle::test
