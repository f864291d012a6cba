#include "node-runtime/collectives/schedule/host_cache.hpp"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/collectives/schedule/check.hpp"
#include "node-runtime/collectives/schedule/make_schedule.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle::collectives {
namespace {

using Kind = Step::Kind;

/// Ranks at random places, and an operation with random trees.
struct CacheCase {
  Places places;
  Levels levels;
  ScheduleKey key;
  std::vector<bool> is_on_device{};

  [[nodiscard]] Schedule plain(Rank rank) const { return make_schedule(key, rank, places, levels); }
  /// As each rank takes it by itself: the others have none.
  [[nodiscard]] std::vector<Schedule> with(HostCache cache) const {
    std::vector<Schedule> all;
    for (Rank rank{0}; rank < Rank{places.size()}; ++rank) {
      ScheduleKey own = key;
      if (is_on_device[static_cast<std::size_t>(rank.value())]) own.host_cache = cache;
      all.push_back(make_schedule(own, rank, places, levels));
    }
    return all;
  }
  [[nodiscard]] bool is_other_host(Rank a, Rank b) const {
    return places[a].host != places[b].host;
  }
};

void for_cache_cases(std::uint32_t seed, CollectiveKind kind,
                     const std::function<void(const CacheCase&)>& check) {
  std::mt19937 random(seed);
  for (std::int32_t size = 1; size <= 40; ++size) {
    for (std::size_t k = 0; k < 8; ++k) {
      const Places places(random_places(random, size));
      CacheCase one{places, Levels(places), {kind}};
      if (kind == CollectiveKind::broadcast) {
        one.key.root = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(size));
      }
      for (Tree& tree : one.key.trees) tree = all_trees[random() % std::size(all_trees)];
      if (random() % 2 == 0) one.key.all_reduce = AllReduce::scatter_gather;
      for (std::int32_t r = 0; r < size; ++r) one.is_on_device.push_back(random() % 4 != 0);
      check(one);
    }
  }
}

/// Copies that a schedule makes of a block from the device into host memory: steps, and messages to
/// other hosts that leave from the device.
std::int32_t copies_down(const CacheCase& of, const Schedule& schedule, std::int32_t block) {
  std::int32_t copies = 0;
  for (const Step& step : schedule.steps) {
    if (step.block != block || step.kind == Kind::receive || step.kind == Kind::reduce) continue;
    const bool is_from_device = step.from.front().memory != Spot::Memory::host_cache;
    const bool leaves = step.kind == Kind::send ? of.is_other_host(schedule.rank, step.peer)
                                                : step.to.memory == Spot::Memory::host_cache;
    if (is_from_device && leaves) ++copies;
  }
  return copies;
}

std::vector<std::string> messages_of(const Schedule& schedule) {
  std::vector<std::string> all;
  for (const Step& step : schedule.steps) {
    if (step.kind != Kind::send && step.kind != Kind::receive) continue;
    all.push_back((step.kind == Kind::send ? "to " : "from ") + std::to_string(step.peer.value()) +
                  ": " + std::to_string(step.block) + (step.is_joined ? " joined" : ""));
  }
  return all;
}

}  // namespace

TEST(HostCache, brings_the_same_values_to_all_whoever_has_one) {
  for (const HostCache cache : {HostCache::hosts, HostCache::all}) {
    for_cache_cases(46, CollectiveKind::broadcast, [&](const CacheCase& one) {
      const Rank root{one.key.root};
      const WantedValue wanted = [&](Rank rank, std::int32_t block,
                                     Values& values) -> std::optional<Value> {
        if (rank == root) return std::nullopt;
        return values.input(root, block);
      };
      const auto all = one.with(cache);
      ASSERT_EQ(check_schedules(all, broadcast_blocks(one.key.trees), wanted), "");
    });
    for_cache_cases(47, CollectiveKind::all_gather, [&](const CacheCase& one) {
      const WantedValue wanted = [](Rank, std::int32_t block, Values& values) {
        return std::optional(values.input(Rank{block}, block));
      };
      ASSERT_EQ(check_schedules(one.with(cache), one.places.size(), wanted), "");
    });
    for_cache_cases(48, CollectiveKind::all_reduce, [&](const CacheCase& one) {
      std::map<std::int32_t, Value> results;
      const WantedValue alike = [&](Rank, std::int32_t block, Values& values) {
        const std::function<Value(std::int32_t, std::int32_t)> bracket = [&](std::int32_t begin,
                                                                             std::int32_t end) {
          if (end - begin == 1) return values.input(Rank{begin}, block);
          std::int32_t left = 1;
          while (2 * left < end - begin) left *= 2;
          const Value first = bracket(begin, begin + left);
          return values.reduced(first, bracket(begin + left, end));
        };
        if (!results.contains(block)) results.emplace(block, bracket(0, one.places.size()));
        return std::optional(results.at(block));
      };
      const std::int32_t blocks = message_parts(one.key, one.places.size());
      ASSERT_EQ(check_schedules(one.with(cache), blocks, alike), "");
    });
  }
}

TEST(HostCache, copies_each_fragment_from_the_device_once) {
  std::int32_t roots_that_cache = 0;
  std::int32_t leaders_that_cache = 0;
  for_cache_cases(49, CollectiveKind::broadcast, [&](const CacheCase& one) {
    for (const Schedule& schedule : one.with(HostCache::hosts)) {
      if (!one.is_on_device[static_cast<std::size_t>(schedule.rank.value())]) continue;
      const bool is_root = schedule.rank.value() == one.key.root;
      for (std::int32_t b = 0; b < broadcast_blocks(one.key.trees); ++b) {
        std::int32_t sends = 0;
        bool comes_from_host = false;
        for (const Step& step : one.plain(schedule.rank).steps) {
          if (step.block != b || !one.is_other_host(schedule.rank, step.peer)) continue;
          sends += step.kind == Kind::send ? 1 : 0;
          comes_from_host = comes_from_host || step.kind == Kind::receive;
        }
        const std::int32_t wanted = sends > 0 && !comes_from_host ? 1 : 0;
        ASSERT_EQ(copies_down(one, schedule, b), wanted) << schedule.describe();
        roots_that_cache += is_root && sends > 1 ? 1 : 0;
        leaders_that_cache += comes_from_host && sends > 0 ? 1 : 0;
      }
    }
  });
  EXPECT_GT(roots_that_cache, 50);
  EXPECT_GT(leaders_that_cache, 50);
}

TEST(HostCache, leaves_the_messages_as_they_are) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::all_reduce,
                                    CollectiveKind::all_gather, CollectiveKind::scatter}) {
    for_cache_cases(50, kind, [&](const CacheCase& one) {
      for (const Schedule& schedule : one.with(HostCache::all)) {
        ASSERT_EQ(messages_of(schedule), messages_of(one.plain(schedule.rank)));
      }
    });
  }
}

/// Hosts of two GPUs in a chain: the leader in the middle.
TEST(HostCache, is_told_by_the_schedule) {
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < 6; ++r) places.push_back({.host = r / 2, .gpu = r % 2});
  ScheduleKey key{CollectiveKind::broadcast};
  key.trees.fill(Tree::chain);
  const Places all(places);
  const auto told = [&](std::int32_t rank, HostCache cache) {
    key.host_cache = cache;
    return make_schedule(key, Rank{rank}, all, Levels(all)).describe();
  };
  EXPECT_EQ(told(2, HostCache::hosts),
            "rank 2, 0 slots, 1 on the host\n"
            "  0: receive block 0 from rank 0 to host slot 0\n"
            "  1: copy block 0 from host slot 0 to the output, after 0\n"
            "  2: send block 0 to rank 4 from host slot 0, after 0\n"
            "  3: send block 0 to rank 3 from the output, after 1\n");
  EXPECT_EQ(told(2, HostCache::all),
            "rank 2, 0 slots, 1 on the host\n"
            "  0: receive block 0 from rank 0 to host slot 0\n"
            "  1: copy block 0 from host slot 0 to the output, after 0\n"
            "  2: send block 0 to rank 4 from host slot 0, after 0\n"
            "  3: send block 0 to rank 3 from host slot 0, after 0\n");
  EXPECT_EQ(told(0, HostCache::all),
            "rank 0, 0 slots, 1 on the host\n"
            "  0: copy block 0 from the input to host slot 0\n"
            "  1: send block 0 to rank 2 from host slot 0, after 0\n"
            "  2: send block 0 to rank 1 from host slot 0, after 0\n");
  EXPECT_EQ(told(0, HostCache::hosts), told(0, HostCache::none)) << "one reader";
  EXPECT_EQ(told(1, HostCache::all), told(1, HostCache::none));
}

TEST(HostCache, slots_are_checked) {
  const Spot slot = Spot::in_host_cache(0);
  std::vector<Schedule> schedules{
      {Rank{0}, 0, {{Kind::send, 0, Rank{1}, {Spot::in_input()}, {}, {}}}},
      {Rank{1},
       0,
       {{Kind::receive, 0, Rank{0}, {}, slot, {}},
        {Kind::copy, 0, Rank{-1}, {slot}, Spot::in_output(), {0}}},
       1}};
  const WantedValue wanted = [](Rank rank, std::int32_t block,
                                Values& values) -> std::optional<Value> {
    if (rank == Rank{0}) return std::nullopt;
    return values.input(Rank{0}, block);
  };
  const auto expect = [&](const char* words, const auto& change) {
    std::vector<Schedule> changed = schedules;
    change(changed[1]);
    const std::string found = check_schedules(changed, 1, wanted);
    EXPECT_NE(found.find(words), std::string::npos) << words << "\nfound: " << found;
  };
  EXPECT_EQ(check_schedules(schedules, 1, wanted), "");
  expect("host slot 0 of 0", [](Schedule& s) { s.host_slots = 0; });
  expect("it reads what no step before it has written", [](Schedule& s) { s.steps[1].after = {}; });
  expect("it writes what another step has written", [&](Schedule& s) {
    s.steps.push_back({Kind::copy, 0, Rank{-1}, {Spot::in_input()}, slot, {1}});
  });
  expect("it reduces in the host cache", [&](Schedule& s) {
    s.steps[1] = {Kind::reduce, 0, Rank{-1}, {slot, Spot::in_input()}, Spot::in_output(), {0}};
  });
}

TEST(HostCache, is_chosen_by_predicted_times) {
  CollectiveQuery query{CollectiveKind::broadcast, 64 << 20};
  query.ranks = 32;
  query.sizes = {1, 1, 4, 8};
  CollectiveRates rates;
  rates.levels.fill({2e-6, 10e9, 4096, 5e-6, 10e9});
  rates.reduced_bytes_per_s = 1e10;
  CollectiveOverrides binomial;
  binomial.tree = Tree::binomial;
  binomial.fragment_bytes = 512 << 10;
  const auto best = [&] {
    return host_caches(query, choose_collective(query, rates, binomial), rates).front().cache;
  };
  EXPECT_EQ(best(), HostCache::hosts) << "GPUs of a host copy faster than messages";
  rates.devices.peer_bytes_per_s = 2e9;
  EXPECT_EQ(best(), HostCache::all) << "the link between the GPUs is the slowest";
  query.bytes = 64;
  binomial.fragment_bytes.reset();
  query.sizes = {1, 1, 1, 2};
  EXPECT_EQ(best(), HostCache::none) << "nothing overlaps, and no copy is saved";
}

}  // namespace heddle::collectives
