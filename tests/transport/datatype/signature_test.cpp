#include "node-runtime/transport/datatype/signature.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

Datatype pair_of(Scalar first, Scalar second) {
  const std::array<Datatype::Member, 2> members{{{0, 1, first}, {16, 1, second}}};
  return Datatype::structure(members);
}

std::vector<Scalar> written_out(const TypeMap& map, std::int64_t count) {
  std::vector<Scalar> scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const auto& entry : map.entries) scalars.push_back(entry.scalar);
  }
  return scalars;
}

}  // namespace

TEST(Signature, is_the_same_for_other_shapes_of_the_same_scalars) {
  const Datatype columns = Datatype::vector(300, 200, 250, Scalar::float64);
  const Datatype row = Datatype::vector(200, 1, 300, Scalar::float64);
  constexpr std::int64_t bytes = 60'000 * 8;
  EXPECT_EQ(columns.signature().digest(bytes), row.signature().repeated(300).digest(bytes));
  EXPECT_NE(Datatype(Scalar::complex_float64).signature().digest(16),
            Datatype(Scalar::float64).signature().repeated(2).digest(16));
}

TEST(Signature, knows_where_scalars_end) {
  const Signature two = pair_of(Scalar::int32, Scalar::float64).signature().repeated(2);
  for (const std::int64_t good : {0, 4, 12, 16, 24}) EXPECT_TRUE(two.ends_scalar_at(good)) << good;
  for (const std::int64_t bad : {-1, 1, 8, 13, 23, 25}) {
    EXPECT_FALSE(two.ends_scalar_at(bad)) << bad;
  }
}

TEST(Signature, sums_up_sequences_of_any_length_in_a_number) {
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

TEST(Signature, agrees_with_signatures_that_are_written_out) {
  int alike = 0;
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
    const Signature whole = datatype_of(left).signature().repeated(left_count);
    const Signature other = datatype_of(right).signature().repeated(right_count);
    if (sent.size() > received.size() || !other.ends_scalar_at(whole.bytes())) continue;
    const bool is_prefix = std::equal(sent.begin(), sent.end(), received.begin());
    ASSERT_EQ(whole.digest(whole.bytes()) == other.digest(whole.bytes()), is_prefix);
    alike += is_prefix && !sent.empty() ? 1 : 0;
  }
  if (!simulation::one_seed_only()) {
    EXPECT_GT(alike, 20);
  }
}

}  // namespace heddle::test
