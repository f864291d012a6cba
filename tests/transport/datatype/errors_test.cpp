#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::test {
namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 2;

/// The message of the usage error that `wrong` throws.
std::string error_of(const std::function<void()>& wrong) {
  try {
    wrong();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& part, const std::function<void()>& wrong) {
  const std::string message = error_of(wrong);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace

TEST(DatatypeErrors, name_negative_counts_and_lengths) {
  const std::vector<Datatype::IndexedBlock> blocks{{0, 2}, {7, -3}};
  const std::vector<std::int64_t> places{0, 4};
  expect_error("a vector: the count is -1",
               [] { static_cast<void>(Datatype::vector(-1, 2, 3, Scalar::int8)); });
  expect_error("a contiguous type: the count is -2",
               [] { static_cast<void>(Datatype::contiguous(-2, Scalar::int8)); });
  expect_error("an indexed type: the length of a block is -3",
               [&] { static_cast<void>(Datatype::indexed(blocks, Scalar::int8)); });
  expect_error("an hindexed type: the length of a block is -3",
               [&] { static_cast<void>(Datatype::hindexed(blocks, Scalar::int8)); });
  expect_error("the block length is -4",
               [&] { static_cast<void>(Datatype::indexed_block(-4, places, Scalar::int8)); });
  expect_error("the number of rows is -5", [] {
    static_cast<void>(Datatype::triangle({.rows = -5, .leading = 1}, Scalar::int8));
  });
  const PackPlan plan = make_plan(Scalar::int8);
  expect_error("-1 elements", [&] { static_cast<void>(plan.stream_bytes(-1)); });
  expect_error("-1 elements", [&] { pack(plan, -1, nullptr, {0, 0}, nullptr); });
}

TEST(DatatypeErrors, name_parts_outside_their_array) {
  for (const Datatype::Dimension wrong :
       {Datatype::Dimension{4, 3, 2}, {4, 1, -1}, {4, 0, 5}, {huge, huge, huge}}) {
    expect_error("are not within a dimension of", [&] {
      static_cast<void>(
          Datatype::subarray(std::span(&wrong, 1), Datatype::Order::row_major, Scalar::byte));
    });
  }
  expect_error("a leading dimension of 4 is less than the 5 rows", [] {
    static_cast<void>(Datatype::triangle({.rows = 5, .columns = 5, .leading = 4}, Scalar::float64));
  });
}

TEST(DatatypeErrors, name_what_does_not_fit_64_bits) {
  const std::string wide = "must fit 64 bits, and";
  expect_error(wide, [] { static_cast<void>(Datatype::contiguous(huge, Scalar::float64)); });
  expect_error(wide, [] { static_cast<void>(Datatype::vector(3, 1, huge, Scalar::float64)); });
  expect_error(wide, [] { static_cast<void>(Datatype::hvector(5, 1, huge, Scalar::float64)); });
  expect_error(wide, [] {
    const std::array<Datatype::IndexedBlock, 2> apart{{{-huge, 1}, {huge, 4}}};
    static_cast<void>(Datatype::hindexed(apart, Scalar::float64));
  });
  expect_error(wide, [] { static_cast<void>(Datatype::resized(Scalar::byte, huge, huge + 2)); });
  expect_error(wide, [] {
    const std::array<Datatype::Dimension, 2> square{{{huge, 1, 0}, {huge, 1, 0}}};
    static_cast<void>(Datatype::subarray(square, Datatype::Order::row_major, Scalar::byte));
  });
  expect_error(wide, [] {
    static_cast<void>(
        Datatype::triangle({.rows = 1, .columns = huge, .leading = huge}, Scalar::float64));
  });
  const PackPlan plan = make_plan(Datatype::resized(Scalar::float64, 0, huge));
  expect_error(wide, [&] { static_cast<void>(plan.nest_of(4)); });
  expect_error(wide, [&] { static_cast<void>(plan.stream_bytes(huge)); });
}

TEST(DatatypeErrors, name_ranges_beyond_the_stream) {
  const PackPlan plan = make_plan(Datatype::vector(3, 1, 2, Scalar::float64));
  std::array<std::byte, 64> memory{};
  for (const StreamRange wrong : {StreamRange{0, 49}, {48, 1}, {-1, 2}, {8, -1}, {huge, huge}}) {
    expect_error("are not within the packed stream of 48 bytes",
                 [&] { pack(plan, 2, memory.data(), wrong, memory.data()); });
    expect_error("are not within the packed stream of 48 bytes",
                 [&] { unpack(plan, 2, wrong, memory.data(), memory.data()); });
  }
}

TEST(DatatypeErrors, name_what_has_too_many_blocks_to_be_listed) {
  const Datatype rows = Datatype::vector(10'000, 1, 10'000, Scalar::float64);
  const Datatype all = Datatype::hvector(10'000, 1, 8, rows);
  const std::array<Datatype::Member, 2> members{
      {{0, 1, all}, {std::int64_t{1} << 40, 1, Scalar::byte}}};
  expect_error("a datatype of 100000001 blocks without a common stride is beyond the limit",
               [&] { static_cast<void>(make_plan(Datatype::structure(members))); });
}

TEST(DatatypeErrors, name_receive_types_that_overlap) {
  const std::string expected = "some byte would be written twice";
  expect_error(expected,
               [] { check_receivable(make_plan(Datatype::vector(3, 2, 1, Scalar::int32)), 1); });
  const PackPlan narrow = make_plan(Datatype::resized(Scalar::int32, 0, 3));
  EXPECT_NO_THROW(check_receivable(narrow, 1));
  expect_error("2 elements of 4 bytes, 3 bytes apart", [&] { check_receivable(narrow, 2); });
}

}  // namespace heddle::test
