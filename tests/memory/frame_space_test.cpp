#include "node-runtime/residency/frame_space.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

constexpr std::uint64_t unit = 16;
using Cost = FrameSpace::Cost;
using Extent = FrameSpace::Extent;

ResidentBlock block(std::int32_t number) {
  return ResidentBlock{number};
}

/// Frames of the given units, one after the other from address 0.
std::vector<Extent> filled(FrameSpace& space, const std::vector<std::uint64_t>& units) {
  std::vector<Extent> frames;
  frames.reserve(units.size());
  for (const std::uint64_t u : units) {
    frames.push_back(space.allocate(u * unit, block(static_cast<std::int32_t>(frames.size()))));
  }
  return frames;
}

/// Costs by block; a block that is not listed must stay.
auto costs(std::map<std::int32_t, Cost> by_block) {
  return [by_block = std::move(by_block)](ResidentBlock b) -> std::optional<Cost> {
    const auto found = by_block.find(b.value());
    if (found == by_block.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace

TEST(FrameSpace, gives_the_lowest_gap_that_suffices_and_joins_what_is_released) {
  FrameSpace space(10 * unit + 3, unit);
  EXPECT_EQ(space.bytes(), 10 * unit);
  const auto frames = filled(space, {1, 2, 1, 3, 1});
  EXPECT_EQ(space.free_bytes(), 2 * unit);
  space.release(frames[0]);
  space.release(frames[3]);
  EXPECT_EQ(space.begin(space.allocate(2 * unit, block(9))), 4 * unit);
  EXPECT_EQ(space.allocate(3 * unit, block(9)), FrameSpace::none);
  space.release(frames[1]);
  EXPECT_EQ(space.begin(space.allocate(3 * unit, block(8))), 0U);
  EXPECT_TRUE(space.is_valid());
}

TEST(FrameSpace, rounds_up_and_gives_empty_blocks_a_place) {
  const FrameSpace space(0, unit);
  EXPECT_EQ(space.rounded(0), unit);
  EXPECT_EQ(space.rounded(unit), unit);
  EXPECT_EQ(space.rounded(unit + 1), 2 * unit);
}

TEST(FrameSpace, grows_at_its_end_and_joins_what_was_free_there) {
  FrameSpace space(0, unit);
  space.grow(2 * unit + 5);
  EXPECT_EQ(space.bytes(), 2 * unit);
  const auto frames = filled(space, {1});
  space.grow(3 * unit);
  EXPECT_EQ(space.bytes(), 5 * unit);
  EXPECT_EQ(space.begin(space.allocate(4 * unit, block(7))), unit) << "over the former end";
  EXPECT_EQ(space.free_bytes(), 0U);
  space.grow(unit);
  EXPECT_EQ(space.begin(space.allocate(unit, block(8))), 5 * unit) << "behind a frame";
  EXPECT_TRUE(space.is_valid());
}

TEST(FrameSpace, chooses_the_window_with_the_fewest_bytes_to_write_then_the_oldest) {
  FrameSpace space(6 * unit, unit);
  const auto frames = filled(space, {1, 1, 1, 1, 1, 1});
  const auto all = costs({{0, {1, 1}}, {1, {0, 9}}, {2, {0, 8}}, {4, {0, 3}}, {5, {1, 2}}});
  EXPECT_EQ(space.cheapest_window(unit, all).first, frames[4]);
  const auto two = space.cheapest_window(2 * unit, all);
  EXPECT_EQ(two.first, frames[1]);  // written bytes weigh more than recency
  EXPECT_EQ(two.last, frames[2]);
  EXPECT_EQ(two.cost, (Cost{0, 9}));
  EXPECT_EQ(space.cheapest_window(3 * unit, all).first, frames[0]);
  EXPECT_FALSE(space.cheapest_window(4 * unit, all).valid());  // block 3 must stay
}

TEST(FrameSpace, keeps_a_claim_for_its_claimant_until_it_is_taken) {
  FrameSpace space(5 * unit, unit);
  const auto frames = filled(space, {1, 1, 1});
  const auto window = space.cheapest_window(3 * unit, costs({{1, {1, 1}}, {2, {1, 1}}}));
  ASSERT_EQ(window.first, frames[2]);  // with the gap behind it
  std::vector<ResidentBlock> owners;
  space.claim(window, block(7), owners);
  EXPECT_EQ(owners, std::vector{block(2)});
  EXPECT_EQ(space.free_bytes(), 0U);
  EXPECT_EQ(space.allocate(unit, block(8)), FrameSpace::none);
  EXPECT_FALSE(space.is_complete(window.first));
  space.release(frames[1]);  // a neighbour, not claimed
  space.release(frames[2]);
  EXPECT_TRUE(space.is_complete(window.first));
  EXPECT_EQ(space.free_bytes(), unit);
  EXPECT_TRUE(space.is_valid());
  space.take(window.first, 2 * unit);
  EXPECT_EQ(space.owner(window.first), block(7));
  EXPECT_EQ(space.begin(window.first), 2 * unit);
  EXPECT_EQ(space.free_bytes(), 2 * unit);
  EXPECT_TRUE(space.is_valid());
}

TEST(FrameSpace, returns_the_gaps_of_a_claim_that_is_dropped) {
  FrameSpace space(6 * unit, unit);
  const auto frames = filled(space, {1, 1, 1, 1});
  space.release(frames[1]);
  const auto window = space.cheapest_window(5 * unit, costs({{2, {1, 1}}, {3, {1, 1}}}));
  std::vector<ResidentBlock> owners;
  space.claim(window, block(7), owners);
  space.release(frames[3]);
  space.drop(window.first);
  EXPECT_EQ(space.free_bytes(), 4 * unit);
  EXPECT_EQ(space.claimant(frames[2]), no_block);
  EXPECT_TRUE(space.is_valid());
}

/// The window that an inspection of all windows finds.
FrameSpace::Window by_inspection(const std::vector<std::pair<Extent, std::optional<Cost>>>& extents,
                                 const FrameSpace& space, std::uint64_t bytes) {
  FrameSpace::Window best;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::uint64_t size = 0;
    Cost cost;
    for (std::size_t j = i; j < extents.size() && extents[j].second.has_value(); ++j) {
      size += space.bytes(extents[j].first);
      cost.write_back_bytes += extents[j].second->write_back_bytes;
      cost.last_use = std::max(cost.last_use, extents[j].second->last_use);
      if (size < bytes) continue;
      if (!best.valid() || cost < best.cost) best = {extents[i].first, extents[j].first, cost};
      break;
    }
  }
  return best;
}

TEST(FrameSpace, finds_the_window_that_an_inspection_of_all_finds) {
  for (const std::uint64_t seed : seeds(2000)) {
    std::mt19937_64 random(seed);
    FrameSpace space(40 * unit, unit);
    std::vector<std::pair<Extent, std::optional<Cost>>> extents;
    std::map<std::int32_t, Cost> cost_of;
    for (std::int32_t number = 0; space.free_bytes() > 0; ++number) {
      const std::uint64_t bytes = std::min((1 + random() % 5) * unit, space.free_bytes());
      const Extent e = space.allocate(bytes, block(number));
      std::optional<Cost> cost;
      if (random() % 4 != 0) cost = Cost{random() % 3 * unit, random() % 6};
      if (cost.has_value()) cost_of.emplace(number, *cost);
      extents.emplace_back(e, cost);
    }
    for (std::uint64_t u = 1; u < 14; ++u) {
      const auto found = space.cheapest_window(u * unit, costs(cost_of));
      const auto expected = by_inspection(extents, space, u * unit);
      ASSERT_EQ(found.valid(), expected.valid()) << replay_hint(seed);
      if (!found.valid()) continue;
      ASSERT_EQ(found.cost, expected.cost) << replay_hint(seed);
      ASSERT_TRUE(space.begin(found.first) <= space.begin(found.last)) << replay_hint(seed);
    }
  }
}

}  // namespace heddle::simulation
