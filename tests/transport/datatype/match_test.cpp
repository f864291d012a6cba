#include "node-runtime/transport/datatype/match.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

Datatype pair_of(Scalar first, Scalar second) {
  const std::array<Datatype::Member, 2> members{{{0, 1, first}, {16, 1, second}}};
  return Datatype::structure(members);
}

/// Empty if they match.
std::string mismatch(const TypedCount& sent, const TypedCount& received) {
  try {
    check_match(sent, received);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

std::vector<Scalar> written_out(const TypeMap& map, std::int64_t count) {
  std::vector<Scalar> scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const auto& entry : map.entries) scalars.push_back(entry.scalar);
  }
  return scalars;
}

std::optional<std::int64_t> first_difference(const std::vector<Scalar>& a,
                                             const std::vector<Scalar>& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

}  // namespace

TEST(Match, takes_other_shapes_of_the_same_scalars) {
  const Datatype columns = Datatype::vector(300, 200, 250, Scalar::float64);
  const Datatype row = Datatype::vector(200, 1, 300, Scalar::float64);
  EXPECT_EQ(mismatch({columns, 2}, {Scalar::float64, 120'000}), "");
  EXPECT_EQ(mismatch({columns, 1}, {row, 300}), "");
  EXPECT_EQ(mismatch({columns, 1}, {row, 1000}), "");  // with room to spare
}

TEST(Match, names_the_first_scalar_that_differs) {
  const Datatype sent =
      Datatype::contiguous(1'000'000'000'000, pair_of(Scalar::int32, Scalar::float64));
  const Datatype same = pair_of(Scalar::int32, Scalar::float64);
  const std::array<Datatype::Member, 2> members{
      {{0, 999'999'999'999, same}, {0, 1, pair_of(Scalar::int32, Scalar::float32)}}};
  const std::string message = mismatch({sent, 1}, {Datatype::structure(members), 1});
  EXPECT_NE(message.find("scalar 1999999999999 is sent as float64 and received as float32"),
            std::string::npos)
      << message;
  EXPECT_NE(mismatch({Scalar::byte, 8}, {Scalar::float64, 1}), "");
  EXPECT_NE(mismatch({Scalar::complex_float64, 1}, {Scalar::float64, 2}), "");
}

TEST(Match, compares_unlike_repetitions_without_writing_them_out) {
  const Datatype one = pair_of(Scalar::int32, Scalar::float64);
  const Datatype six = Datatype::contiguous(6, one);
  const std::array<Datatype::Member, 2> members{{{0, 7, six}, {0, 1, one}}};  // 43 pairs
  const Datatype many = Datatype::structure(members);
  constexpr std::int64_t count = 10'000'000'000;
  EXPECT_EQ(mismatch({six, 43 * count}, {many, 6 * count}), "");
  EXPECT_EQ(mismatch({Datatype::contiguous(count, many), 1}, {one, 43 * count}), "");
  EXPECT_NE(mismatch({Datatype::contiguous(count, many), 1}, {one, 43 * count - 1}), "");
}

TEST(Match, names_both_lengths_where_a_message_would_be_truncated) {
  EXPECT_NE(mismatch({Scalar::float64, 11}, {Scalar::float64, 10})
                .find("11 scalars (88 bytes) are sent and 10 (80 bytes) fit"),
            std::string::npos);
  EXPECT_NE(mismatch({Scalar::float64, -1}, {Scalar::float64, 10}).find("-1 elements are sent"),
            std::string::npos);
  EXPECT_NE(mismatch({Scalar::float64, 1}, {Scalar::float64, -2}).find("-2 elements are received"),
            std::string::npos);
}

TEST(Match, by_bytes_alone_sees_truncation_and_broken_scalars) {
  const Datatype type = pair_of(Scalar::int32, Scalar::float64);
  for (const std::int64_t good : {0, 4, 12, 16, 24}) {
    EXPECT_NO_THROW(check_room(good, {type, 2})) << good;
  }
  for (const std::int64_t bad : {-1, 1, 8, 13, 23, 25}) {
    EXPECT_THROW(check_room(bad, {type, 2}), Error) << bad;
  }
}

TEST(Match, sums_up_sequences_of_any_length_in_a_number) {
  const Datatype one = pair_of(Scalar::int32, Scalar::float64);
  const Datatype six = Datatype::contiguous(6, one);
  constexpr std::int64_t count = 1'000'000'000'000;
  const Signature described = six.signature().repeated(count);
  const Signature otherwise = one.signature().repeated(6 * count);
  EXPECT_EQ(described.digest(described.bytes()), otherwise.digest(otherwise.bytes()));
  for (const std::int64_t bytes : {0, 4, 12, 16, 24, 1'200'004}) {
    EXPECT_EQ(described.digest(bytes), otherwise.digest(bytes)) << bytes;
  }
  EXPECT_NE(described.digest(12), described.digest(16));
  EXPECT_NE(Datatype(Scalar::float64).signature().digest(8),
            Datatype(Scalar::int64).signature().digest(8));
  EXPECT_EQ(Signature().digest(0), 0U);
  EXPECT_DEATH(static_cast<void>(described.digest(8)), "8 bytes end within a scalar");
}

TEST(Match, agrees_with_signatures_that_are_written_out) {
  int matched = 0;
  for (const std::uint64_t seed : simulation::seeds(4000)) {
    RandomType random(seed, {.depth = 3, .entries_max = 60});
    const DescribedType left = random.next();
    // Mostly another description of much the same: repeated, or with something behind it.
    DescribedType right = random.one_in(4) ? random.next() : left;
    if (random.one_in(2)) {
      DescribedType around;
      around.kind = DescribedType::Kind::structure;
      around.blocks = {{0, random.number(1, 3)}, {0, random.number(0, 1)}};
      around.parts = {std::make_shared<const DescribedType>(right),
                      std::make_shared<const DescribedType>(random.next())};
      right = around;
    }
    const std::int64_t left_count = random.number(0, 30);
    const std::int64_t right_count = random.number(0, 30);
    SCOPED_TRACE(simulation::replay_hint(seed) + "\n" + to_string(left) + "\n" + to_string(right));
    const auto sent = written_out(type_map_of(left), left_count);
    const auto received = written_out(type_map_of(right), right_count);
    const auto expected = first_difference(sent, received);
    const Datatype from = datatype_of(left);
    const Datatype to = datatype_of(right);
    const auto found = Signature::first_difference(from.signature().repeated(left_count),
                                                   to.signature().repeated(right_count));
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (found.has_value()) {
      ASSERT_EQ(found->position, *expected);
      ASSERT_EQ(found->left, sent[static_cast<std::size_t>(*expected)]);
    }
    const Signature whole = from.signature().repeated(left_count);
    const Signature other = to.signature().repeated(right_count);
    if (sent.size() <= received.size() && other.ends_scalar_at(whole.bytes())) {
      ASSERT_EQ(whole.digest(whole.bytes()) == other.digest(whole.bytes()), !expected.has_value());
    }
    const bool matches = !expected.has_value() && sent.size() <= received.size();
    ASSERT_EQ(mismatch({from, left_count}, {to, right_count}).empty(), matches);
    matched += matches && !sent.empty() ? 1 : 0;
  }
  if (!simulation::one_seed_only()) {
    EXPECT_GT(matched, 20);
  }
}

}  // namespace heddle::test
