#include "node-runtime/collectives/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/schedule/all_gather.hpp"
#include "node-runtime/collectives/schedule/all_to_all.hpp"
#include "node-runtime/collectives/schedule/barrier.hpp"
#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/check.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"
#include "node-runtime/collectives/schedule/reduction_order.hpp"
#include "node-runtime/collectives/schedule/scan.hpp"
#include "node-runtime/collectives/schedule/scatter.hpp"
#include "tests/collectives/schedule/places_bracket.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle::collectives {
namespace {

using Kind = Step::Kind;

Step receive(Rank peer, Spot to, std::vector<std::int32_t> after = {}) {
  return {Kind::receive, 0, peer, {}, to, std::move(after)};
}
Step send(Rank peer, Spot from, std::vector<std::int32_t> after = {}) {
  return {Kind::send, 0, peer, {from}, {}, std::move(after)};
}

/// Rank 0's input in all other outputs.
WantedValue from_root(Rank root) {
  return [root](Rank rank, std::int32_t block, Values& values) -> std::optional<Value> {
    if (rank == root) return std::nullopt;
    return values.input(root, block);
  };
}

/// A chain of three ranks, by way of a slot on the one in the middle.
std::vector<Schedule> three_in_a_chain() {
  const Spot slot = Spot::in_slot(0);
  return {{Rank{0}, 0, {send(Rank{1}, Spot::in_input())}},
          {Rank{1},
           1,
           {receive(Rank{0}, slot),
            send(Rank{2}, slot, {0}),
            {Kind::copy, 0, Rank{-1}, {slot}, Spot::in_output(), {0}}}},
          {Rank{2}, 0, {receive(Rank{1}, Spot::in_output())}}};
}

std::string trouble(const std::vector<Schedule>& schedules, std::int32_t blocks = 1) {
  return check_schedules(schedules, blocks, from_root(Rank{0}));
}

TEST(Cut, has_blocks_one_behind_the_other_in_fragments) {
  const std::array<std::int64_t, 4> counts{10, 0, 3, 4};
  const Cut cut(counts, 4);
  EXPECT_EQ(cut.blocks(), 4);
  EXPECT_EQ(cut.fragments(), 3);
  EXPECT_EQ(cut.block(2).begin, 10);
  EXPECT_EQ(cut.block(2).count(), 3);
  EXPECT_EQ(cut.fragment(0, 2).begin, 8);
  EXPECT_EQ(cut.fragment(0, 2).count(), 2);
  EXPECT_EQ(cut.fragment(1, 0).count(), 0);
  EXPECT_EQ(cut.fragment(2, 0).count(), 3);
  EXPECT_EQ(cut.fragment(3, 0).begin, 13);
  EXPECT_EQ(cut.fragment(3, 1).count(), 0) << "it has no more";
}

TEST(Cut, covers_each_element_once) {
  std::mt19937 random(46);
  for (int k = 0; k < 200; ++k) {
    std::vector<std::int64_t> counts;
    for (std::size_t left = 1 + random() % 5; left > 0; --left) {
      counts.push_back(static_cast<std::int64_t>(random() % 40));
    }
    const Cut cut(counts, 1 + static_cast<std::int64_t>(random() % 12));
    for (std::int32_t b = 0; b < cut.blocks(); ++b) {
      std::int64_t next = cut.block(b).begin;
      for (std::int64_t f = 0; f < cut.fragments(); ++f) {
        const Cut::Range range = cut.fragment(b, f);
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      EXPECT_EQ(next, cut.block(b).end);
    }
  }
}

TEST(Cut, refuses_what_cannot_be_cut) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::array<std::int64_t, 2> negative{1, -1};
  const std::array<std::int64_t, 2> too_many{most, 1};
  const std::array<std::int64_t, 1> all{most};
  EXPECT_THROW(Cut(negative, 1), Error);
  EXPECT_THROW(Cut(too_many, 1), Error);
  EXPECT_THROW(Cut(all, 0), Error);
  const Cut cut(all, most / 2);
  EXPECT_EQ(cut.fragments(), 3);
  EXPECT_EQ(cut.fragment(0, 2).end, most);
  EXPECT_EQ(Cut({}, 1).fragments(), 0);
}

TEST(Schedule, says_what_a_rank_does) {
  EXPECT_EQ(three_in_a_chain()[1].describe(),
            "rank 1, 1 slots\n"
            "  0: receive block 0 from rank 0 to slot 0\n"
            "  1: send block 0 to rank 2 from slot 0, after 0\n"
            "  2: copy block 0 from slot 0 to the output, after 0\n");
}

TEST(CheckSchedules, finds_nothing_where_all_is_right) {
  EXPECT_EQ(trouble(three_in_a_chain()), "");
}

/// Each change is one mistake, and the words of what is found.
TEST(CheckSchedules, finds_what_is_wrong) {
  const auto expect = [](const char* words, const auto& change) {
    std::vector<Schedule> schedules = three_in_a_chain();
    change(schedules);
    const std::string found = trouble(schedules);
    EXPECT_NE(found.find(words), std::string::npos) << words << "\nfound: " << found;
  };
  expect("rank 1, step 1: it reads what no step before it has written",
         [](auto& s) { s[1].steps[1].after.clear(); });
  expect("it comes after step 1", [](auto& s) { s[1].steps[1].after = {1}; });
  expect("slot 1 of 1", [](auto& s) { s[1].steps[0].to = Spot::in_slot(1); });
  expect("it writes what another step has written", [](auto& s) {
    s[1].steps.push_back({Kind::copy, 0, Rank{-1}, {Spot::in_input()}, Spot::in_slot(0), {2}});
  });
  expect("it writes into the input", [](auto& s) { s[2].steps[0].to = Spot::in_input(); });
  expect("its peer is rank 3 of 3", [](auto& s) { s[1].steps[1].peer = Rank{3}; });
  expect("its peer is rank 1 of 3", [](auto& s) { s[1].steps[1].peer = Rank{1}; });
  expect("block 1 of 1", [](auto& s) { s[0].steps[0].block = 1; });
  expect("it reads 2 spots", [](auto& s) { s[0].steps[0].from.push_back(Spot::in_input()); });
  expect("rank 1 receives 1 messages of rank 0, which sends 2",
         [](auto& s) { s[0].steps.push_back(s[0].steps[0]); });
  expect("rank 1 does not send that", [](auto& s) { s[1].steps.erase(s[1].steps.begin() + 1); });
  expect("rank 2: block 0 of the output has nothing", [](auto& s) {
    s[2].slots = 1;
    s[2].steps[0].to = Spot::in_slot(0);
  });
  expect("block 0 of the output has 1 of block 0, wanted is 0 of block 0",
         [](auto& s) { s[1].steps[2].from = {Spot::in_input()}; });
  expect("it is joined to no message", [](auto& s) { s[1].steps[1].is_joined = true; });
  expect("it waits for itself", [](auto& s) {
    // Rank 0 sends what it has of rank 2.
    s[0].slots = 1;
    s[0].steps = {receive(Rank{2}, Spot::in_slot(0)), send(Rank{1}, Spot::in_slot(0), {0})};
    s[2].steps.push_back(send(Rank{0}, Spot::in_output(), {0}));
  });
}

TEST(CheckSchedules, finds_blocks_that_are_mistaken_for_others) {
  std::vector<Schedule> schedules(2);
  schedules[1].rank = Rank{1};
  for (const std::int32_t block : {0, 1}) {
    schedules[0].steps.push_back({Kind::send, block, Rank{1}, {Spot::in_input()}, {}, {}});
    schedules[1].steps.push_back({Kind::receive, 1 - block, Rank{0}, {}, Spot::in_output(), {}});
  }
  EXPECT_NE(trouble(schedules, 2).find("it receives block 1, and rank 0 sends block 0"),
            std::string::npos);
  schedules[1].slots = 1;
  schedules[1].steps = {{Kind::receive, 0, Rank{0}, {}, Spot::in_slot(0), {}},
                        {Kind::receive, 1, Rank{0}, {}, Spot::in_output(), {}},
                        {Kind::copy, 1, Rank{-1}, {Spot::in_slot(0)}, Spot::in_output(), {0}}};
  EXPECT_NE(trouble(schedules, 2).find("it reads a slot that has block 0"), std::string::npos);
}

TEST(CheckSchedules, finds_messages_that_are_not_the_same_on_both_sides_or_wait_for_themselves) {
  // Rank 0 sends its block, and what it gets back of rank 1, which forwards the first.
  std::vector<Schedule> schedules(2);
  schedules[1].rank = Rank{1};
  schedules[0].slots = 1;
  schedules[0].steps = {{Kind::receive, 1, Rank{1}, {}, Spot::in_slot(0), {}},
                        {Kind::send, 0, Rank{1}, {Spot::in_input()}, {}, {}},
                        {Kind::send, 1, Rank{1}, {Spot::in_slot(0)}, {}, {0}}};
  schedules[1].slots = 1;
  schedules[1].steps = {{Kind::receive, 0, Rank{0}, {}, Spot::in_output(), {}},
                        {Kind::receive, 1, Rank{0}, {}, Spot::in_slot(0), {}},
                        {Kind::send, 1, Rank{0}, {Spot::in_input()}, {}, {0}}};
  const auto found = [&] {
    return check_schedules(schedules, 2,
                           [](Rank, std::int32_t, Values&) { return std::optional<Value>(); });
  };
  EXPECT_EQ(found(), "");
  schedules[0].steps[2].is_joined = true;
  EXPECT_NE(found().find("rank 0 sends it in another message"), std::string::npos) << found();
  schedules[1].steps[1].is_joined = true;
  EXPECT_NE(found().find("it waits for itself"), std::string::npos) << found();
  schedules[0].steps[2].after = {0, 1};
  EXPECT_NE(found().find("it comes after a step of its own message"), std::string::npos) << found();
}

TEST(CheckSchedules, tells_brackets_apart) {
  // Rank 0 reduces what it has of rank 1 and its own, in one order and in the other.
  const auto schedules = [](std::vector<Spot> from) {
    return std::vector<Schedule>{
        {Rank{0},
         1,
         {receive(Rank{1}, Spot::in_slot(0)),
          {Kind::reduce, 0, Rank{-1}, std::move(from), Spot::in_output(), {0}}}},
        {Rank{1}, 0, {send(Rank{0}, Spot::in_input())}}};
  };
  const WantedValue sum = [](Rank rank, std::int32_t block,
                             Values& values) -> std::optional<Value> {
    if (rank != Rank{0}) return std::nullopt;
    return values.reduced(values.input(Rank{0}, block), values.input(Rank{1}, block));
  };
  EXPECT_EQ(check_schedules(schedules({Spot::in_input(), Spot::in_slot(0)}), 1, sum), "");
  const std::string found =
      check_schedules(schedules({Spot::in_slot(0), Spot::in_input()}), 1, sum);
  EXPECT_NE(found.find("has (1 0) of block 0, wanted is (0 1) of block 0"), std::string::npos)
      << found;
}

/// Ranks at random places with a root, and a tree for each level.
struct Case {
  std::int32_t size;
  Places places;
  Levels::Sockets sockets;
  Levels levels;
  Rank root;
  LevelTrees trees{};
  std::string name;

  /// All ranks' schedules.
  template <class Make>
  [[nodiscard]] std::vector<Schedule> all(const Make& make) const {
    std::vector<Schedule> schedules;
    for (Rank rank{0}; rank < Rank{size}; ++rank) schedules.push_back(make(rank));
    return schedules;
  }
};

/// Calls `check(case)` for 1 to `most` and some other numbers of ranks, for each of them with each
/// tree at all levels, then as often with mixtures.
template <class Check>
void for_cases(std::uint32_t seed, std::int32_t most, std::vector<std::int32_t> others,
               const Check& check) {
  std::mt19937 random(seed);
  for (std::int32_t size = 1; size <= most; ++size) others.push_back(size);
  for (const std::int32_t size : others) {
    for (std::size_t t = 0; t < 2 * std::size(all_trees); ++t) {
      const Places places(random_places(random, size));
      const auto sockets = random() % 2 == 0 ? Levels::Sockets::counted : Levels::Sockets::ignored;
      Case one{size,
               places,
               sockets,
               Levels(places, sockets),
               Rank{static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(size))},
               {},
               {}};
      one.name = std::to_string(size) + " ranks, root " + std::to_string(one.root.value());
      for (Tree& tree : one.trees) {
        tree = all_trees[t < std::size(all_trees) ? t : random() % std::size(all_trees)];
        one.name.append(" ").append(name_of(tree));
      }
      check(one);
    }
  }
}

TEST(Broadcast, brings_the_roots_input_to_all_whatever_trees_and_places) {
  for_cases(46, 33, {64, 100, 257, 512}, [](const Case& one) {
    const auto all =
        one.all([&](Rank rank) { return make_broadcast(rank, one.root, one.levels, one.trees); });
    const std::int32_t blocks = broadcast_blocks(one.trees);
    ASSERT_EQ(check_schedules(all, blocks, from_root(one.root)), "") << one.name;
    std::size_t receives = 0;
    for (const Schedule& schedule : all) {
      EXPECT_EQ(schedule.slots, 0);
      for (const Step& step : schedule.steps) receives += step.kind == Kind::receive ? 1 : 0;
    }
    EXPECT_EQ(receives, static_cast<std::size_t>(blocks * (one.size - 1))) << "none comes twice";
  });
}

TEST(ScatterAndGather, bring_each_ranks_block_to_or_from_the_root) {
  for_cases(49, 33, {64, 100}, [](const Case& one) {
    const auto scatter =
        one.all([&](Rank rank) { return make_scatter(rank, one.root, one.levels, one.trees); });
    const auto gather =
        one.all([&](Rank rank) { return make_gather(rank, one.root, one.levels, one.trees); });
    for (std::size_t r = 0; r < scatter.size(); ++r) {
      EXPECT_LT(scatter[r].slots, one.size);
      EXPECT_EQ(scatter[r].slots, scatter[r].rank == one.root ? 0 : gather[r].slots);
    }
    const WantedValue own = [&](Rank rank, std::int32_t block,
                                Values& values) -> std::optional<Value> {
      if (block != rank.value()) return std::nullopt;
      return values.input(one.root, block);
    };
    const WantedValue of_all = [&](Rank rank, std::int32_t block,
                                   Values& values) -> std::optional<Value> {
      if (rank != one.root) return std::nullopt;
      return values.input(Rank{block}, block);
    };
    ASSERT_EQ(check_schedules(scatter, one.size, own), "") << one.name;
    ASSERT_EQ(check_schedules(gather, one.size, of_all), "") << one.name;
  });
}

/// The bracket by its definition, not by another schedule's.
Value bracket_value(Values& values, std::int32_t begin, std::int32_t end, std::int32_t block) {
  if (end - begin == 1) return values.input(Rank{begin}, block);
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return values.reduced(bracket_value(values, begin, begin + left, block),
                        bracket_value(values, begin + left, end, block));
}

TEST(Reduce, has_the_bracket_of_the_ranks_whatever_trees_and_places) {
  for_cases(48, 33, {64, 100, 257}, [](const Case& one) {
    const auto all =
        one.all([&](Rank rank) { return make_reduce(rank, one.root, one.levels, one.trees); });
    std::size_t reductions = 0;
    for (const Schedule& schedule : all) {
      for (const Step& step : schedule.steps) reductions += step.kind == Kind::reduce ? 1 : 0;
    }
    const WantedValue wanted = [&](Rank rank, std::int32_t block,
                                   Values& values) -> std::optional<Value> {
      if (rank != one.root) return std::nullopt;
      return bracket_value(values, 0, one.size, block);
    };
    ASSERT_EQ(check_schedules(all, 1, wanted), "") << one.name;
    EXPECT_EQ(reductions, static_cast<std::size_t>(one.size - 1)) << "none is done twice";
  });
}

/// The same in the order of places.
Value places_value(const Case& one, std::int32_t block, Values& values) {
  return places_bracket(
      one.places, one.sockets, [&](std::int32_t r) { return values.input(Rank{r}, block); },
      [&](Value a, Value b) { return values.reduced(a, b); });
}

std::size_t sends_of(const Schedule& schedule) {
  return static_cast<std::size_t>(std::ranges::count(schedule.steps, Kind::send, &Step::kind));
}

TEST(Reduce, has_the_bracket_of_the_places_whatever_trees_and_root) {
  for_cases(53, 33, {64, 100, 257}, [](const Case& one) {
    const auto all = one.all([&](Rank rank) {
      return make_reduce(rank, one.root, one.levels, one.trees, Order::places);
    });
    const WantedValue wanted = [&](Rank rank, std::int32_t block,
                                   Values& values) -> std::optional<Value> {
      if (rank != one.root) return std::nullopt;
      return places_value(one, block, values);
    };
    ASSERT_EQ(check_schedules(all, 1, wanted), "") << one.name;
    const bool sends_one = std::ranges::all_of(
        one.trees, [](Tree tree) { return tree == Tree::flat || tree == Tree::binomial; });
    for (const Schedule& schedule : all) {
      if (!sends_one) break;
      ASSERT_EQ(sends_of(schedule), schedule.rank == one.root ? 0U : 1U) << one.name;
    }
  });
}

TEST(AllReduce, in_the_order_of_places_has_their_bracket_in_all_ways) {
  for_cases(54, 24, {}, [](const Case& one) {
    const WantedValue reduced = [&](Rank, std::int32_t block, Values& values) {
      return std::optional(places_value(one, block, values));
    };
    const auto scatter = one.all(
        [&](Rank rank) { return make_reduce_scatter(rank, one.levels, one.trees, Order::places); });
    const WantedValue own = [&](Rank rank, std::int32_t block, Values& values) {
      return block == rank.value() ? reduced(rank, block, values) : std::nullopt;
    };
    ASSERT_EQ(check_schedules(scatter, one.size, own), "") << one.name;
    for (const AllReduce way : {AllReduce::reduce_broadcast, AllReduce::scatter_gather}) {
      const auto all = one.all([&](Rank rank) {
        return make_all_reduce(rank, one.levels, one.trees, way, Order::places);
      });
      const std::int32_t blocks = all_reduce_blocks(way, one.size, one.trees);
      ASSERT_EQ(check_schedules(all, blocks, reduced), "") << one.name;
    }
  });
}

/// Ranks dealt out among hosts: what the order of places is for.
TEST(ReductionOrder, counts_the_values_that_members_send) {
  std::vector<RankPlace> dealt;
  std::vector<RankPlace> by_host;
  for (std::int32_t r = 0; r < 24; ++r) {
    dealt.push_back({.host = r % 3});
    by_host.push_back({.host = r / 8});
  }
  const auto at = [](const ValuesSent& values, Level level, Tree tree) {
    return values.at(static_cast<std::size_t>(level)).at(static_cast<std::size_t>(tree));
  };
  const Levels scattered{Places(dealt)};
  const ValuesSent in_ranks = values_sent(scattered, Order::ranks);
  const ValuesSent in_places = values_sent(scattered, Order::places);
  // No two ranks of a host are neighbours in number.
  EXPECT_EQ(at(in_ranks, Level::network, Tree::flat), 8);
  EXPECT_EQ(at(in_ranks, Level::host, Tree::flat), 1);
  EXPECT_EQ(at(in_ranks, Level::host, Tree::binomial), 4);
  EXPECT_EQ(at(in_places, Level::network, Tree::flat), 1);
  EXPECT_EQ(at(in_places, Level::network, Tree::binomial), 1);
  EXPECT_EQ(at(in_places, Level::host, Tree::binomial), 1);
  EXPECT_EQ(at(in_places, Level::host, Tree::chain), 3) << "ranks 1, 2 and 3, 4 to 7";
  const Levels together{Places(by_host)};
  EXPECT_EQ(at(values_sent(together, Order::ranks), Level::network, Tree::flat), 1);
  EXPECT_EQ(at(values_sent(together, Order::ranks), Level::gpu, Tree::flat), 1) << "there is none";
  EXPECT_EQ(values_sent(together, Order::ranks), values_sent(together, Order::places));
}

TEST(ReductionOrder, knows_where_its_bracket_is_that_of_as_many_ranks) {
  const auto is_balanced = [](std::vector<std::int32_t> hosts) {
    std::vector<RankPlace> places;
    for (const std::int32_t host : hosts) places.push_back({.host = host});
    const Levels levels{Places(places)};
    EXPECT_TRUE(levels.is_valid());
    EXPECT_TRUE(ReductionOrder(levels, Order::ranks).is_balanced());
    return ReductionOrder(levels, Order::places).is_balanced();
  };
  EXPECT_TRUE(is_balanced({0}));
  EXPECT_TRUE(is_balanced({0, 0, 0, 0, 0}));
  EXPECT_TRUE(is_balanced({0, 1, 0, 1, 2}));
  EXPECT_FALSE(is_balanced({0, 0, 0, 1})) << "((0 1) 2) is a host's value";
  EXPECT_FALSE(is_balanced({0, 1, 1}));
}

TEST(AllGather, and_all_reductions_give_all_ranks_the_same_whatever_trees_and_places) {
  for_cases(50, 24, {}, [](const Case& one) {
    const auto check = [&](const char* what, std::int32_t blocks, const auto& make,
                           const WantedValue& wanted) {
      EXPECT_EQ(check_schedules(one.all(make), blocks, wanted), "") << what << " of " << one.name;
    };
    const WantedValue reduced = [&](Rank, std::int32_t block, Values& values) {
      return std::optional(bracket_value(values, 0, one.size, block));
    };
    check(
        "all_gather", one.size,
        [&](Rank rank) { return make_all_gather(rank, one.levels, one.trees); },
        [](Rank, std::int32_t block, Values& values) {
          return std::optional(values.input(Rank{block}, block));
        });
    check(
        "reduce_scatter", one.size,
        [&](Rank rank) { return make_reduce_scatter(rank, one.levels, one.trees); },
        [&](Rank rank, std::int32_t block, Values& values) {
          return block == rank.value() ? reduced(rank, block, values) : std::nullopt;
        });
    for (const AllReduce way : {AllReduce::reduce_broadcast, AllReduce::scatter_gather}) {
      check(
          "all_reduce", all_reduce_blocks(way, one.size, one.trees),
          [&](Rank rank) { return make_all_reduce(rank, one.levels, one.trees, way); }, reduced);
    }
  });
}

TEST(AllToAll, brings_each_block_to_its_rank_in_all_ways) {
  for_cases(51, 20, {}, [](const Case& one) {
    for (const AllToAll way : {AllToAll::pairwise, AllToAll::leaders, AllToAll::bruck}) {
      const auto all =
          one.all([&](Rank rank) { return make_all_to_all(rank, one.places, one.levels, way); });
      const WantedValue wanted = [&](Rank rank, std::int32_t block,
                                     Values& values) -> std::optional<Value> {
        if (block % one.size != rank.value()) return std::nullopt;
        return values.input(Rank{block / one.size}, block);
      };
      ASSERT_EQ(check_schedules(all, one.size * one.size, wanted), "")
          << static_cast<int>(way) << " of " << one.name;
    }
  });
}

TEST(AllToAll, by_bruck_has_as_many_messages_as_the_logarithm_of_the_hosts) {
  std::vector<RankPlace> hosts;
  for (std::int32_t r = 0; r < 64; ++r) hosts.push_back({.host = r});
  const Places places(hosts);
  const Levels levels(places);
  int messages = 0;
  for (const Step& step : make_all_to_all(Rank{17}, places, levels, AllToAll::bruck).steps) {
    messages += step.kind == Kind::send && !step.is_joined ? 1 : 0;
  }
  EXPECT_EQ(messages, 6);
  EXPECT_THROW(static_cast<void>(all_to_all_block(Rank{1}, Rank{2}, 46341)), Error);
}

TEST(Scan, has_the_bracket_of_the_ranks_up_to_each) {
  for (std::int32_t size = 1; size <= 130; ++size) {
    for (const Scan kind : {Scan::inclusive, Scan::exclusive}) {
      std::vector<Schedule> all;
      for (Rank rank{0}; rank < Rank{size}; ++rank) all.push_back(make_scan(rank, size, kind));
      const WantedValue wanted = [&](Rank rank, std::int32_t block,
                                     Values& values) -> std::optional<Value> {
        const std::int32_t end = rank.value() + (kind == Scan::inclusive ? 1 : 0);
        if (end == 0) return std::nullopt;
        return bracket_value(values, 0, end, block);
      };
      ASSERT_EQ(check_schedules(all, 1, wanted), "") << size << " ranks";
      for (const Step& step : all[0].steps) {
        EXPECT_TRUE(kind == Scan::inclusive || step.to != Spot::in_output());
      }
    }
  }
}

/// Runs the messages of all ranks, and collects whose arrival each rank has heard of in the end.
std::vector<std::set<std::int32_t>> heard(const std::vector<Schedule>& schedules) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::set<std::int32_t>>> sent;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> taken;
  std::vector<std::set<std::int32_t>> known(schedules.size());
  std::vector<std::size_t> next(schedules.size(), 0);
  for (std::size_t r = 0; r < schedules.size(); ++r) known[r].insert(static_cast<std::int32_t>(r));
  // In the order of the list: a send comes after all that is listed before it and has come.
  for (bool advances = true; advances;) {
    advances = false;
    for (std::size_t r = 0; r < schedules.size(); ++r) {
      const auto own = static_cast<std::int32_t>(r);
      while (next[r] < schedules[r].steps.size()) {
        const Step& step = schedules[r].steps[next[r]];
        if (step.kind == Kind::send) {
          sent[{own, step.peer.value()}].push_back(known[r]);
        } else {
          const auto& from = sent[{step.peer.value(), own}];
          std::size_t& used = taken[{step.peer.value(), own}];
          if (used == from.size()) break;
          known[r].insert(from[used].begin(), from[used].end());
          ++used;
        }
        ++next[r];
        advances = true;
      }
    }
  }
  return known;
}

TEST(Barrier, ends_nowhere_before_all_have_come) {
  for_cases(52, 33, {64, 100}, [](const Case& one) {
    const auto all = one.all([&](Rank rank) { return make_barrier(rank, one.levels, one.trees); });
    const WantedValue anything = [](Rank, std::int32_t, Values&) { return std::optional<Value>(); };
    ASSERT_EQ(check_schedules(all, 1, anything), "") << one.name;
    for (const auto& ranks : heard(all)) {
      ASSERT_EQ(ranks.size(), static_cast<std::size_t>(one.size)) << one.name;
    }
  });
}

/// Where neighbours in number are neighbours in place, each rank sends one value.
TEST(Reduce, sends_one_value_of_each_host_where_ranks_are_numbered_by_hosts) {
  const std::int32_t size = 64;
  std::vector<RankPlace> hosts;
  for (std::int32_t r = 0; r < size; ++r) hosts.push_back({.host = r / 8});
  const Places places(hosts);
  const Levels levels(places);
  LevelTrees trees{};
  trees.fill(Tree::binomial);
  for (Rank rank{1}; rank < Rank{size}; ++rank) {
    int sends = 0;
    for (const Step& step : make_reduce(rank, Rank{0}, levels, trees).steps) {
      sends += step.kind == Kind::send ? 1 : 0;
    }
    EXPECT_EQ(sends, 1) << rank.value();
  }
}

/// Between hosts a message travels once for each host, whatever the ranks are numbered like (000
/// section 5.2.5).
TEST(Broadcast, enters_each_host_once) {
  std::mt19937 random(47);
  for (int k = 0; k < 100; ++k) {
    const std::int32_t size = 2 + static_cast<std::int32_t>(random() % 60);
    const Places places(random_places(random, size));
    const Levels levels(places);
    const Rank root{static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(size))};
    LevelTrees trees{};
    trees.fill(all_trees[random() % 4]);  // those that do not split it
    std::vector<int> entries(static_cast<std::size_t>(size), 0);
    for (Rank rank{0}; rank < Rank{size}; ++rank) {
      for (const Step& step : make_broadcast(rank, root, levels, trees).steps) {
        if (step.kind != Kind::send) continue;
        const std::int32_t to = places[step.peer].host;
        if (to != places[rank].host) ++entries[static_cast<std::size_t>(to)];
      }
    }
    for (Rank rank{0}; rank < Rank{size}; ++rank) {
      const std::int32_t host = places[rank].host;
      EXPECT_EQ(entries[static_cast<std::size_t>(host)], host == places[root].host ? 0 : 1);
    }
  }
}

TEST(Broadcast, has_steps_of_its_own_neighbours_only) {
  const std::int32_t size = 10000;
  std::vector<RankPlace> hosts;
  for (std::int32_t r = 0; r < size; ++r) hosts.push_back({.host = r / 8});
  const Places places(hosts);
  const Levels levels(places);
  const LevelTrees trees{Tree::flat, Tree::flat, Tree::binomial, Tree::binomial};
  for (Rank rank{0}; rank < Rank{size}; ++rank) {
    EXPECT_LE(make_broadcast(rank, Rank{0}, levels, trees).steps.size(), 1U + 3 + 11);
  }
}

}  // namespace
}  // namespace heddle::collectives
