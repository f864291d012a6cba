#include "node-runtime/collectives/call/exchange_call.hpp"

#include <array>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle::collectives {
namespace {

std::string refusal_of(const ExchangeCall& call, std::int32_t size = 4) {
  try {
    check(call, size);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

RankElements part(std::int32_t peer, double* memory, std::int64_t count,
                  const Datatype& type = Scalar::float64) {
  return {peer, Elements(Incoming{memory, count, type})};
}

ExchangeCall call_with(std::vector<RankElements> outgoing, std::vector<RankElements> incoming) {
  return {std::move(outgoing), std::move(incoming), "auto", "early", "halo"};
}

std::string misfit_of(const ExchangeNotes& notes) {
  try {
    static_cast<void>(match(notes, "exchange 'halo'"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ExchangeCall, that_makes_no_sense_is_refused_with_the_part) {
  std::array<double, 64> x{};
  const auto twice = Datatype::hvector(2, 1, 0, Scalar::float64);
  EXPECT_EQ(refusal_of(call_with({part(4, x.data(), 1)}, {})),
            "exchange 'halo': outgoing part 0 to rank 4; the group has ranks 0 to 3");
  EXPECT_EQ(refusal_of(call_with({}, {part(1, x.data(), 1), part(-1, x.data(), 1)})),
            "exchange 'halo': incoming part 1 from rank -1; the group has ranks 0 to 3");
  EXPECT_EQ(refusal_of(call_with({part(0, x.data(), -1)}, {})),
            "exchange 'halo': outgoing part 0 to rank 0 has -1 elements; a count must not be "
            "negative");
  EXPECT_EQ(refusal_of(call_with({part(0, nullptr, 2)}, {})),
            "exchange 'halo': outgoing part 0 to rank 0 is null, with 2 elements");
  EXPECT_EQ(refusal_of(call_with({part(0, x.data(), std::int64_t{1} << 60U)}, {})),
            fmt::format("exchange 'halo': outgoing part 0 to rank 0: {} elements of 8 bytes each "
                        "are too many",
                        std::int64_t{1} << 60U));
  EXPECT_NE(refusal_of(call_with({}, {part(2, x.data(), 1, twice)}))
                .find("incoming part 0 from rank 2: 1 elements of 16 bytes"),
            std::string::npos);
  // It may be sent, and nothing needs no memory.
  EXPECT_EQ(refusal_of(call_with({part(2, x.data(), 1, twice)}, {part(1, nullptr, 0)})), "");
}

TEST(ExchangeCall, has_no_byte_that_is_received_twice_or_sent_as_well) {
  std::array<double, 64> x{};
  const auto column = Datatype::vector(8, 1, 8, Scalar::float64);
  const auto row = Datatype::contiguous(8, Scalar::float64);
  // Columns interleave, and are apart.
  EXPECT_EQ(refusal_of(call_with({part(0, &x[1], 1, column), part(1, &x[1], 1, column)},
                                 {part(0, &x[0], 1, column), part(1, &x[7], 1, column)})),
            "");
  EXPECT_EQ(refusal_of(call_with({}, {part(0, &x[0], 1, column), part(1, &x[56], 1, row)})),
            "exchange 'halo': incoming part 0 from rank 0 and incoming part 1 from rank 1 overlap; "
            "what a round receives must be memory of its own");
  EXPECT_EQ(refusal_of(call_with({part(3, &x[2], 1, column)}, {part(1, &x[16], 1, row)})),
            "exchange 'halo': outgoing part 0 to rank 3 and incoming part 0 from rank 1 overlap; "
            "what a round receives must be memory of its own");
}

/// Against bytes that are marked one by one.
TEST(ExchangeCall, finds_overlaps_exactly) {
  std::mt19937 random(46);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  int overlapping = 0;
  for (int k = 0; k < 2000; ++k) {
    std::array<double, 64> x{};
    std::array<int, 64> reads{};
    std::array<int, 64> writes{};
    ExchangeCall call;
    for (std::int64_t left = 2 + below(4); left > 0; --left) {
      const std::int64_t count = 1 + below(4);
      const std::int64_t stride = 1 + below(9);
      const std::int64_t first = below(64 - (count - 1) * stride);
      const bool is_incoming = below(2) == 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(first + i * stride);
        ++(is_incoming ? writes : reads).at(at);
      }
      (is_incoming ? call.incoming : call.outgoing)
          .push_back(part(0, &x.at(static_cast<std::size_t>(first)), 1,
                          Datatype::vector(count, 1, stride, Scalar::float64)));
    }
    bool overlaps = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      overlaps = overlaps || writes.at(i) > 1 || (writes.at(i) == 1 && reads.at(i) > 0);
    }
    overlapping += overlaps ? 1 : 0;
    EXPECT_EQ(!refusal_of(call).empty(), overlaps) << "call " << k;
  }
  EXPECT_GT(overlapping, 200);
  EXPECT_LT(overlapping, 1800);
}

TEST(ExchangeCall, has_parts_that_fit_in_their_order) {
  std::array<double, 64> x{};
  const auto pair = Datatype::contiguous(2, Scalar::float64);
  ExchangeNotes notes;
  notes.outgoing = {notes_of({part(1, x.data(), 4), part(0, x.data(), 1), part(1, x.data(), 6)}),
                    {}};
  notes.incoming = {notes_of({part(0, x.data(), 1)}),
                    notes_of({part(0, x.data(), 2, pair), part(0, x.data(), 3, pair)})};
  const auto parts = match(notes, "");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].to, Rank{1});
  EXPECT_EQ(parts[0].bytes, 32);
  EXPECT_EQ(parts[1].to, Rank{0});
  EXPECT_EQ(parts[2].outgoing, 2);
  EXPECT_EQ(parts[2].incoming, 1);
  EXPECT_EQ(parts[2].bytes, 48);
}

TEST(ExchangeCall, has_parts_that_do_not_fit_named_from_both_sides) {
  std::array<double, 64> x{};
  const Datatype::Member members[] = {{0, 1, Scalar::float64}, {8, 1, Scalar::int64}};
  const auto both = [&](RankElements out, RankElements in) {
    return misfit_of({{notes_of({std::move(out)}), {}}, {{}, notes_of({std::move(in)})}});
  };
  EXPECT_EQ(both(part(1, x.data(), 4), part(0, x.data(), 5)),
            "exchange 'halo': outgoing part 0 of rank 0 is 4 elements of float64 for rank 1, whose "
            "incoming part 0 is 5 elements of float64");
  EXPECT_EQ(both(part(1, x.data(), 4, Scalar::float32), part(0, x.data(), 2)),
            "exchange 'halo': outgoing part 0 of rank 0 is 4 elements of float32 for rank 1, whose "
            "incoming part 0 is 2 elements of float64");
  EXPECT_EQ(both(part(1, x.data(), 1, Datatype::structure(members)), part(0, x.data(), 2)),
            "exchange 'halo': outgoing part 0 of rank 0 is 1 elements of 16 bytes for rank 1, "
            "whose incoming part 0 is 2 elements of float64");
  EXPECT_EQ(misfit_of({{notes_of({part(1, x.data(), 1), part(1, x.data(), 1)}), {}},
                       {{}, notes_of({part(0, x.data(), 1)})}}),
            "exchange 'halo': rank 0 has 2 parts for rank 1, which has 1 parts from it");
  EXPECT_EQ(misfit_of({{{}, {}}, {notes_of({part(1, x.data(), 1)}), {}}}),
            "exchange 'halo': rank 1 has 0 parts for rank 0, which has 1 parts from it");
}

}  // namespace heddle::collectives
