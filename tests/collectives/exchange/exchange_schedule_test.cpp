#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/schedule/all_to_all.hpp"
#include "node-runtime/collectives/schedule/check.hpp"
#include "node-runtime/collectives/schedule/exchange.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle::collectives {
namespace {

constexpr ExchangeWay all_ways[] = {ExchangeWay::neighbours, ExchangeWay::aggregated,
                                    ExchangeWay::alltoallv, ExchangeWay::alltoall};

/// Each block's own rank has it in the end.
WantedValue each_block_of(const std::vector<ExchangeBlock>& blocks) {
  return [&blocks](Rank rank, std::int32_t number, Values& values) -> std::optional<Value> {
    const auto found = std::ranges::find(blocks, number, &ExchangeBlock::number);
    if (found == blocks.end() || found->to != rank) return std::nullopt;
    return values.input(found->from, number);
  };
}

std::int32_t numbers_of(const std::vector<ExchangeBlock>& blocks) {
  return blocks.empty() ? 1 : blocks.back().number + 1;
}

/// All ranks' schedules, each made of the blocks that are its business, with sides drawn at random.
std::vector<Schedule> schedules_of(const std::vector<ExchangeBlock>& blocks, const Places& places,
                                   ExchangeWay way, Receives receives, std::uint32_t seed) {
  std::vector<Schedule> made;
  for (Rank rank{0}; rank < Rank{places.size()}; ++rank) {
    const auto is_own = [&](const ExchangeBlock& b) {
      if (way != ExchangeWay::aggregated) return b.from == rank || b.to == rank;
      const std::int32_t host = places[rank].host;
      return places[b.from].host == host || places[b.to].host == host;
    };
    std::vector<ExchangeBlock> own;
    std::ranges::copy_if(blocks, std::back_inserter(own), is_own);
    const auto drawn = [=](std::int32_t number, std::uint32_t side) {
      return std::minstd_rand(seed + 31 * static_cast<std::uint32_t>(number) + 7 * side +
                              1009 * static_cast<std::uint32_t>(rank.value()))() %
                 2 ==
             0;
    };
    const ExchangeSides sides{[=](std::int32_t n) { return drawn(n, 0); },
                              [=](std::int32_t n) { return drawn(n, 1); }};
    made.push_back(make_exchange(rank, own, places, way, receives, sides));
  }
  return made;
}

/// Blocks of a random graph, several for some pairs, and of ranks for themselves.
std::vector<ExchangeBlock> random_blocks(std::mt19937& random, std::int32_t ranks,
                                         ExchangeWay way) {
  std::vector<ExchangeBlock> blocks;
  const bool has_all = way == ExchangeWay::alltoallv || way == ExchangeWay::alltoall;
  if (has_all) {
    for (Rank from{0}; from < Rank{ranks}; ++from) {
      for (Rank to{0}; to < Rank{ranks}; ++to) {
        blocks.push_back({all_to_all_block(from, to, ranks), from, to});
      }
    }
    return blocks;
  }
  const auto any = [&] {
    return Rank{static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(ranks))};
  };
  std::int32_t number = 0;
  for (std::size_t left = random() % static_cast<std::uint32_t>(6 * ranks + 1); left > 0; --left) {
    number += 1 + static_cast<std::int32_t>(random() % 2);
    blocks.push_back({number, any(), any()});
  }
  return blocks;
}

std::int64_t messages_of(const std::vector<Schedule>& schedules, const Places& places,
                         bool between_hosts) {
  std::int64_t messages = 0;
  for (const Schedule& one : schedules) {
    for (const Step& step : one.steps) {
      if (step.kind != Step::Kind::send || step.is_joined) continue;
      messages += (places[one.rank].host != places[step.peer].host) == between_hosts ? 1 : 0;
    }
  }
  return messages;
}

Places on_hosts(std::int32_t hosts, std::int32_t ranks_each) {
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < hosts * ranks_each; ++r) places.push_back({.host = r / ranks_each});
  return Places(std::move(places));
}

CollectiveRates rates() {
  CollectiveRates made;
  made.levels.fill({1e-6, 5e9, 8192, 4e-6, 8e9});
  made.levels[static_cast<std::size_t>(Level::network)] = {20e-6, 1e9, 8192, 60e-6, 1e9};
  return made;
}

}  // namespace

TEST(ExchangeSchedule, brings_each_block_where_it_belongs_in_any_way_and_order_of_steps) {
  std::mt19937 random(12);
  for (const std::int32_t ranks : {1, 2, 3, 4, 5, 6, 8, 13, 16, 33, 64}) {
    for (const ExchangeWay way : all_ways) {
      for (int repeat = 0; repeat < (ranks < 20 ? 12 : 1); ++repeat) {
        const Places places(random_places(random, ranks));
        const std::vector<ExchangeBlock> blocks = random_blocks(random, ranks, way);
        for (const Receives receives : {Receives::early, Receives::late}) {
          const auto schedules =
              schedules_of(blocks, places, way, receives, static_cast<std::uint32_t>(random()));
          EXPECT_EQ(check_schedules(schedules, numbers_of(blocks), each_block_of(blocks)), "")
              << name_of(way) << " on " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(ExchangeSchedule, has_one_message_from_host_to_host_where_it_is_aggregated) {
  const Places places = on_hosts(3, 4);
  std::vector<ExchangeBlock> blocks;
  for (Rank from{0}; from < Rank{12}; ++from) {
    for (Rank to{0}; to < Rank{12}; ++to) {
      // Host 2 has nothing for host 0.
      if (from >= Rank{8} && to < Rank{4}) continue;
      blocks.push_back({static_cast<std::int32_t>(blocks.size()), from, to});
    }
  }
  const auto aggregated = schedules_of(blocks, places, ExchangeWay::aggregated, Receives::early, 1);
  EXPECT_EQ(messages_of(aggregated, places, true), 3 * 2 - 1);
  // Directly within hosts, to leaders from three others of each host, and back from them.
  EXPECT_EQ(messages_of(aggregated, places, false), 3 * 4 * 3 + 3 * 3 + 3 * 3);
  const auto direct = schedules_of(blocks, places, ExchangeWay::neighbours, Receives::early, 1);
  EXPECT_EQ(messages_of(direct, places, true), 16 * (3 * 2 - 1));
}

TEST(ExchangeSchedule, posts_its_receives_before_it_packs_or_afterwards) {
  const Places places = on_hosts(1, 2);
  const std::vector<ExchangeBlock> blocks{{0, Rank{0}, Rank{1}}, {1, Rank{1}, Rank{0}}};
  const ExchangeSides sides{[](std::int32_t) { return true; }, [](std::int32_t) { return true; }};
  const auto made = [&](Receives receives) {
    return make_exchange(Rank{0}, blocks, places, ExchangeWay::neighbours, receives, sides)
        .describe();
  };
  EXPECT_EQ(made(Receives::early),
            "rank 0, 2 slots\n"
            "  0: receive block 1 from rank 1 to slot 0\n"
            "  1: copy block 0 from the input to slot 1\n"
            "  2: send block 0 to rank 1 from slot 1, after 1\n"
            "  3: copy block 1 from slot 0 to the output, after 0\n");
  EXPECT_EQ(made(Receives::late),
            "rank 0, 2 slots\n"
            "  0: copy block 0 from the input to slot 1\n"
            "  1: send block 0 to rank 1 from slot 1, after 0\n"
            "  2: receive block 1 from rank 1 to slot 0, after 0\n"
            "  3: copy block 1 from slot 0 to the output, after 2\n");
}

TEST(ExchangeSchedule, of_blocks_that_stay_copies_them_only) {
  const Places places = on_hosts(1, 1);
  const std::vector<ExchangeBlock> blocks{{0, Rank{0}, Rank{0}}, {1, Rank{0}, Rank{0}}};
  const ExchangeSides sides{[](std::int32_t n) { return n == 1; },
                            [](std::int32_t n) { return n == 1; }};
  EXPECT_EQ(make_exchange(Rank{0}, blocks, places, ExchangeWay::aggregated, Receives::late, sides)
                .describe(),
            "rank 0, 1 slots\n"
            "  0: copy block 0 from the input to the output\n"
            "  1: copy block 1 from the input to slot 0\n"
            "  2: copy block 1 from slot 0 to the output, after 1\n");
}

TEST(ExchangeChoice, aggregates_many_small_messages_between_hosts_and_nothing_else) {
  const auto all_pairs = [](std::int32_t ranks, double bytes) {
    std::vector<ExchangeLoad> loads;
    for (Rank from{0}; from < Rank{ranks}; ++from) {
      for (Rank to{0}; to < Rank{ranks}; ++to) loads.push_back({from, to, bytes});
    }
    return loads;
  };
  const auto chosen = [](const std::vector<ExchangeLoad>& loads, const Places& places) {
    return choose_exchange(loads, places, rates(), std::nullopt).way;
  };
  EXPECT_EQ(chosen(all_pairs(32, 8), on_hosts(2, 16)), ExchangeWay::aggregated);
  EXPECT_EQ(chosen(all_pairs(32, 1e6), on_hosts(2, 16)), ExchangeWay::neighbours);
  EXPECT_EQ(chosen(all_pairs(32, 8), on_hosts(1, 32)), ExchangeWay::neighbours);
  EXPECT_EQ(chosen(all_pairs(8, 8), on_hosts(8, 1)), ExchangeWay::neighbours);
  EXPECT_EQ(chosen({}, on_hosts(2, 2)), ExchangeWay::neighbours);
}

TEST(ExchangeChoice, takes_what_is_wanted_and_tells_the_times_of_all) {
  const std::vector<ExchangeLoad> loads{{Rank{0}, Rank{1}, 1000}, {Rank{1}, Rank{2}, 10}};
  const Places places = on_hosts(3, 1);
  const ExchangeChoice padded = choose_exchange(loads, places, rates(), ExchangeWay::alltoall);
  EXPECT_EQ(padded.way, ExchangeWay::alltoall);
  ASSERT_EQ(padded.considered.size(), 3U);
  EXPECT_EQ(padded.considered.back().text, "alltoall");
  // Each rank sends two messages of 1000 bytes.
  EXPECT_DOUBLE_EQ(padded.seconds, 2 * (20e-6 + 1000 / 1e9));
  const ExchangeChoice direct = choose_exchange(loads, places, rates(), ExchangeWay::neighbours);
  EXPECT_DOUBLE_EQ(direct.seconds, 20e-6 + 1000 / 1e9);
}

TEST(ExchangeChoice, knows_its_names) {
  for (const ExchangeWay way : all_ways) EXPECT_EQ(exchange_way_of(name_of(way)), way);
  EXPECT_EQ(exchange_way_of("auto"), std::nullopt);
  EXPECT_THROW(static_cast<void>(exchange_way_of("best")), Error);
  EXPECT_EQ(receives_of("late"), Receives::late);
  EXPECT_THROW(static_cast<void>(receives_of("never")), Error);
}

}  // namespace heddle::collectives
