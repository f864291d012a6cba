#include <array>
#include <gtest/gtest.h>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/signature.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

void expect_bounds(const Datatype& type, std::int64_t lower, std::int64_t upper) {
  EXPECT_EQ(type.lower_bound(), lower);
  EXPECT_EQ(type.upper_bound(), upper);
  EXPECT_EQ(type.extent(), upper - lower);
}

}  // namespace

TEST(Bounds, of_scalars_are_their_sizes) {
  expect_bounds(Scalar::uint16, 0, 2);
  expect_bounds(Scalar::complex_float32, 0, 8);
  expect_bounds(Scalar::complex_float64, 0, 16);
}

TEST(Bounds, of_a_structure_are_padded_to_its_strictest_scalar) {
  const std::array<Datatype::Member, 2> members{{{0, 1, Scalar::float64}, {8, 1, Scalar::int8}}};
  const Datatype type = Datatype::structure(members);
  expect_bounds(type, 0, 16);
  EXPECT_EQ(type.true_upper_bound(), 9);
  EXPECT_EQ(type.size(), 9);
  expect_bounds(Datatype::contiguous(3, type), 0, 48);
}

TEST(Bounds, that_were_set_are_the_only_ones_that_count) {
  // The example of MPI's standard: bounds of some members, none of the others.
  const Datatype set = Datatype::resized(Scalar::int32, -3, 9);
  const std::array<Datatype::Member, 2> members{{{0, 1, Scalar::float64}, {8, 1, set}}};
  const Datatype type = Datatype::structure(members);
  expect_bounds(type, 5, 14);
  EXPECT_EQ(type.true_lower_bound(), 0);
  EXPECT_EQ(type.true_upper_bound(), 12);
}

TEST(Bounds, follow_negative_strides_and_extents) {
  expect_bounds(Datatype::vector(3, 2, -4, Scalar::int32), -32, 8);
  const Datatype backwards = Datatype::resized(Scalar::int32, 0, -8);
  const Datatype three = Datatype::contiguous(3, backwards);
  EXPECT_EQ(three.lower_bound(), -16);
  EXPECT_EQ(three.true_lower_bound(), -16);
  EXPECT_EQ(three.true_upper_bound(), 4);
}

TEST(Bounds, of_nothing_are_zero_unless_they_were_set) {
  const Datatype nothing = Datatype::vector(3, 0, 5, Scalar::float64);
  expect_bounds(nothing, 0, 0);
  EXPECT_EQ(nothing.size(), 0);
  const std::array<Datatype::Member, 2> members{{{-40, 1, nothing}, {8, 1, Scalar::int32}}};
  expect_bounds(Datatype::structure(members), 8, 12);
  expect_bounds(Datatype::contiguous(3, Datatype::resized(nothing, -5, 20)), -5, 55);
}

TEST(Bounds, of_a_subarray_are_those_of_the_array) {
  const std::array<Datatype::Dimension, 2> part{{{4, 2, 1}, {5, 3, 2}}};
  const Datatype columns = Datatype::subarray(part, Datatype::Order::column_major, Scalar::int32);
  expect_bounds(columns, 0, 80);
  EXPECT_EQ(columns.true_lower_bound(), 36);
  EXPECT_EQ(columns.true_upper_bound(), 76);
  const Datatype rows = Datatype::subarray(part, Datatype::Order::row_major, Scalar::int32);
  EXPECT_EQ(rows.true_lower_bound(), 28);
  EXPECT_EQ(rows.true_upper_bound(), 60);
}

TEST(Bounds, agree_with_the_type_maps_of_random_types) {
  for (const std::uint64_t seed : simulation::seeds(6000)) {
    const DescribedType described = RandomType(seed).next();
    SCOPED_TRACE(simulation::replay_hint(seed) + "\n" + to_string(described));
    const Datatype type = datatype_of(described);
    const TypeMap map = type_map_of(described);
    ASSERT_EQ(type.size(), map.size());
    ASSERT_EQ(type.lower_bound(), map.lower_bound);
    ASSERT_EQ(type.upper_bound(), map.upper_bound);
    ASSERT_EQ(type.true_lower_bound(), map.true_lower_bound());
    ASSERT_EQ(type.true_upper_bound(), map.true_upper_bound());
    ASSERT_EQ(type.signature().bytes(), map.size());
  }
}

}  // namespace heddle::test
