#include "node-runtime/collectives/schedule/choice.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace heddle::collectives {
namespace {

/// A message takes 1 us and 1 ns for each byte at one level; short ones half of both.
CollectiveRates rates() {
  CollectiveRates made;
  made.levels.fill({.short_s = 0.5e-6,
                    .short_bytes_per_s = 2e9,
                    .short_bytes = 8192,
                    .long_s = 1e-6,
                    .long_bytes_per_s = 1e9});
  made.reduced_bytes_per_s = 1e10;
  return made;
}

CollectiveQuery on_hosts(CollectiveKind kind, std::int32_t ranks, double bytes) {
  return {
      .kind = kind, .bytes = bytes, .is_known = true, .sizes = {1, 1, 1, ranks}, .ranks = ranks};
}

constexpr std::size_t at_network = 3;
constexpr std::size_t at_host = 2;

}  // namespace

TEST(CollectiveChoice, short_broadcasts_go_by_binomial_trees_and_long_ones_by_pipelined_chains) {
  const auto small = choose_collective(on_hosts(CollectiveKind::broadcast, 16, 8), rates());
  EXPECT_EQ(small.trees.at(at_network), Tree::binomial);
  EXPECT_EQ(small.in_flight, 1);
  // Four rounds of a short message.
  EXPECT_NEAR(small.seconds, 4 * (0.5e-6 + 8 / 2e9), 1e-12);
  const double bytes = 64 << 20;
  const auto large = choose_collective(on_hosts(CollectiveKind::broadcast, 16, bytes), rates());
  EXPECT_EQ(large.trees.at(at_network), Tree::chain);
  EXPECT_GT(large.in_flight, 1);
  EXPECT_LT(large.fragment_bytes, bytes / 16);
  // All but the filling of the chain is one link's time.
  EXPECT_LT(large.seconds, 1.1 * bytes / 1e9);
}

TEST(CollectiveChoice, levels_are_chosen_for_one_by_one_and_add_up) {
  CollectiveQuery query = on_hosts(CollectiveKind::broadcast, 4, 8);
  query.sizes.at(at_host) = 8;
  query.ranks = 32;
  const auto chosen = choose_collective(query, rates());
  EXPECT_NEAR(chosen.seconds, (2 + 3) * (0.5e-6 + 8 / 2e9), 1e-12);
  EXPECT_NE(chosen.text().find("host binomial, network binomial"), std::string::npos)
      << chosen.text();
}

TEST(CollectiveChoice, long_reductions_for_all_are_scattered_and_gathered) {
  using enum AllReduce;
  const auto kind = CollectiveKind::all_reduce;
  EXPECT_EQ(choose_collective(on_hosts(kind, 8, 8), rates()).all_reduce, reduce_broadcast);
  const auto large = choose_collective(on_hosts(kind, 8, 1 << 24), rates());
  EXPECT_EQ(large.all_reduce, scatter_gather);
  // What was not chosen takes longer, and is told.
  ASSERT_GT(large.considered.size(), 1U);
  EXPECT_TRUE(std::ranges::is_sorted(large.considered, {}, &CollectiveChoice::Candidate::seconds));
  EXPECT_EQ(large.considered.front().seconds, large.seconds);
  EXPECT_NE(large.considered[0].text, large.considered[1].text);
}

TEST(CollectiveChoice, small_blocks_for_all_go_by_few_rounds_and_large_ones_in_pairs) {
  using enum AllToAll;
  const auto kind = CollectiveKind::all_to_all;
  EXPECT_EQ(choose_collective(on_hosts(kind, 64, 8), rates()).all_to_all, bruck);
  EXPECT_EQ(choose_collective(on_hosts(kind, 64, 1 << 20), rates()).all_to_all, pairwise);
}

TEST(CollectiveChoice, blocks_that_only_their_ends_know_go_directly) {
  CollectiveQuery query = on_hosts(CollectiveKind::gather, 8, 0);
  query.is_known = false;
  const auto gather = choose_collective(query, rates());
  EXPECT_TRUE(std::ranges::all_of(gather.trees, [](Tree t) { return t == Tree::flat; }));
  query.kind = CollectiveKind::all_to_all;
  EXPECT_EQ(choose_collective(query, rates()).all_to_all, AllToAll::pairwise);
  EXPECT_THROW(static_cast<void>(choose_collective(query, rates(), overrides_of("bruck"))), Error);
}

TEST(CollectiveChoice, callers_may_choose) {
  const auto query = on_hosts(CollectiveKind::broadcast, 16, 1 << 20);
  CollectiveOverrides wanted = overrides_of("binary");
  wanted.fragment_bytes = 1000;
  const auto chosen = choose_collective(query, rates(), wanted);
  EXPECT_TRUE(std::ranges::all_of(chosen.trees,
                                  [](Tree t) { return t == Tree::binary || t == Tree::binomial; }));
  EXPECT_EQ(chosen.trees.at(at_network), Tree::binary);
  EXPECT_LE(chosen.fragment_bytes, 1000);
  EXPECT_FALSE(overrides_of("auto").tree.has_value());
  EXPECT_EQ(overrides_of("scatter_gather").all_reduce, AllReduce::scatter_gather);
  try {
    static_cast<void>(overrides_of("best"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("there are auto, flat, chain"), std::string::npos);
  }
}

TEST(CollectiveChoice, alone_takes_no_time) {
  for (int k = 0; k <= static_cast<int>(CollectiveKind::exclusive_scan); ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    const auto chosen = choose_collective(on_hosts(kind, 1, 1000), rates());
    EXPECT_EQ(chosen.seconds, 0) << name_of(kind);
    EXPECT_FALSE(chosen.text().empty());
  }
}

/// In the order of ranks eight values leave each host, in that of places one.
std::array<ValuesSent, 2> values_of_dealt_ranks() {
  std::array<ValuesSent, 2> values{CollectiveQuery::one_value(), CollectiveQuery::one_value()};
  values.front().at(at_network).fill(8);
  return values;
}

TEST(CollectiveChoice, tells_what_each_order_of_a_reduction_takes) {
  const std::array<ValuesSent, 2> values = values_of_dealt_ranks();
  const CollectiveQuery query = on_hosts(CollectiveKind::reduce, 2, 1 << 20);
  CollectiveOverrides flat;
  flat.tree = Tree::flat;
  flat.fragment_bytes = 1 << 20;
  const auto seconds = [](double sent) { return 1e-6 + sent * (1 << 20) / 1e9; };
  const double reduced = (1 << 20) / 1e10;
  for (const Order order : {Order::ranks, Order::places}) {
    const auto chosen = choose_in_order(query, rates(), flat, {.wanted = order, .values = &values});
    EXPECT_EQ(chosen.order, order);
    EXPECT_NEAR(chosen.seconds_in_order.front(), seconds(8) + reduced, 1e-12);
    EXPECT_NEAR(chosen.seconds_in_order.back(), seconds(1) + reduced, 1e-12);
    EXPECT_EQ(chosen.seconds, chosen.seconds_in_order.at(static_cast<std::size_t>(order)));
  }
}

TEST(CollectiveChoice, takes_the_faster_order_where_each_gives_the_same_bits) {
  std::array<ValuesSent, 2> values = values_of_dealt_ranks();
  for (const auto kind :
       {CollectiveKind::reduce, CollectiveKind::all_reduce, CollectiveKind::reduce_scatter}) {
    const CollectiveQuery query = on_hosts(kind, 2, 1 << 20);
    for (const Order wanted : {Order::ranks, Order::places}) {
      const OrderQuery exact{.wanted = wanted, .is_exact = true, .values = &values};
      EXPECT_EQ(choose_in_order(query, rates(), {}, exact).order, Order::places);
    }
  }
  std::swap(values.front(), values.back());
  const CollectiveQuery query = on_hosts(CollectiveKind::reduce, 2, 1 << 20);
  const OrderQuery exact{.wanted = Order::places, .is_exact = true, .values = &values};
  EXPECT_EQ(choose_in_order(query, rates(), {}, exact).order, Order::ranks);
}

TEST(CollectiveChoice, has_no_order_where_nothing_is_reduced) {
  const auto chosen = choose_in_order(on_hosts(CollectiveKind::broadcast, 4, 8), rates(), {}, {});
  EXPECT_EQ(chosen.order, Order::ranks);
  EXPECT_EQ(chosen.seconds_in_order, (std::array<double, 2>{0, 0}));
}

}  // namespace heddle::collectives
