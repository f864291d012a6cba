#include "replay/collectives/virtual_run.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <utility>

#include "node-runtime/collectives/schedule/generator_parts.hpp"
#include "node-runtime/collectives/schedule/make_schedule.hpp"

/// Times of schedules that can be worked out by hand.
namespace heddle::replay {
namespace {

using collectives::CollectiveKind;
using collectives::Held;
using collectives::Levels;
using collectives::Places;
using collectives::Rank;
using collectives::Schedule;
using collectives::ScheduleKey;
using collectives::ScheduleWriter;
using collectives::Spot;
using collectives::Tree;

constexpr double us = 1e-6;
constexpr double exact = 2e-9;  // ends are rounded up to nanoseconds

/// Hosts without GPUs; a byte takes a nanosecond on a card and on a way, a message 2 us.
CollectiveMachine cluster(std::int32_t hosts, std::int32_t ranks) {
  CollectiveMachine machine;
  machine.hosts = hosts;
  machine.ranks = ranks;
  machine.ways.fill({2 * us, 1e9});
  machine.links.card = 1e9;
  return machine;
}

Places places_of(const CollectiveMachine& machine) {
  std::vector<collectives::RankPlace> places;
  for (std::int32_t slot = 0; slot < machine.slots(); ++slot) {
    places.push_back(machine.place(slot));
  }
  return Places(std::move(places));
}

VirtualMessage bytes(std::int64_t count, std::int64_t fragment = 1 << 30,
                     std::int32_t in_flight = 1) {
  return {[count](std::int32_t) { return count; }, 1, fragment, in_flight};
}

double end_of(const CollectiveMachine& machine, const VirtualSchedules& schedules,
              VirtualMessage message) {
  const Places places = places_of(machine);
  VirtualRun run(machine, places, schedules, std::move(message));
  const double seconds = std::ranges::max(run.run());
  EXPECT_TRUE(run.is_valid());
  return seconds;
}

double end_of(const CollectiveMachine& machine, CollectiveKind kind, Tree tree,
              VirtualMessage message) {
  const Places places = places_of(machine);
  const Levels levels(places);
  ScheduleKey key;
  key.kind = kind;
  key.trees.fill(tree);
  const VirtualSchedules schedules(places.size(), [&](Rank rank) {
    return collectives::make_schedule(key, rank, places, levels);
  });
  return end_of(machine, schedules, std::move(message));
}

/// Each rank of the first half sends to one of the second half; `block(rank)` is its block.
VirtualSchedules pairs(std::int32_t ranks) {
  return {ranks, [half = ranks / 2](Rank rank) {
            ScheduleWriter writer(rank);
            const std::int32_t r = rank.value();
            if (r < half) writer.send(Rank{r + half}, r, Held{});
            if (r >= half) writer.receive(Rank{r - half}, r - half, Spot::in_output());
            return writer.take();
          }};
}

}  // namespace

TEST(VirtualRun, one_message_takes_both_cores_latency_and_its_bytes) {
  CollectiveMachine machine = cluster(2, 1);
  machine.message_s = 0.5 * us;
  machine.rendezvous_s = 3 * us;
  machine.eager_bytes = 7999;
  const auto time = [&] {
    return end_of(machine, CollectiveKind::broadcast, Tree::chain, bytes(8000));
  };
  EXPECT_NEAR(time(), (0.5 + 3 + 2 + 8 + 0.5) * us, exact);
  machine.eager_bytes = 8000;
  EXPECT_NEAR(time(), (0.5 + 2 + 8 + 0.5) * us, exact);
  machine.links.card = 0;  // the way limits it
  machine.ways.fill({2 * us, 4e9});
  EXPECT_NEAR(time(), (0.5 + 2 + 2 + 0.5) * us, exact);
}

TEST(VirtualRun, a_chain_forwards_fragments_while_others_come) {
  // Hops of the first fragment, and then one fragment after the other.
  for (const std::int32_t hosts : {2, 3, 8}) {
    for (const std::int64_t fragments : {1, 2, 5, 64}) {
      const double seconds = end_of(cluster(hosts, 1), CollectiveKind::broadcast, Tree::chain,
                                    bytes(fragments * 4000, 4000, 4));
      const auto hops = static_cast<double>(hosts - 1);
      const double expected = hops * 2 * us + (hops + static_cast<double>(fragments) - 1) * 4 * us;
      EXPECT_NEAR(seconds, expected, 1e-12 + exact * hops * static_cast<double>(fragments))
          << hosts << " hosts, " << fragments << " fragments";
    }
  }
}

TEST(VirtualRun, one_fragment_in_flight_waits_for_the_one_before) {
  // Nothing overlaps on a rank: the middle one receives, sends, and only then receives again.
  const double seconds = end_of(cluster(3, 1), CollectiveKind::broadcast, Tree::chain,
                                bytes(std::int64_t{3} * 4000, 4000, 1));
  EXPECT_NEAR(seconds, 3 * 2 * 6 * us, exact * 6);
}

TEST(VirtualRun, messages_of_a_host_share_its_card) {
  const auto sizes = [](std::int64_t first, std::int64_t second) {
    return VirtualMessage{[=](std::int32_t b) { return b == 0 ? first : second; }, 1, 1 << 30, 1};
  };
  EXPECT_NEAR(end_of(cluster(2, 1), pairs(2), bytes(6000)), (2 + 6) * us, exact);
  EXPECT_NEAR(end_of(cluster(2, 2), pairs(4), bytes(6000)), (2 + 12) * us, exact);
  // The shorter one has passed after 12 us, and a third of the other one; the rest has the card.
  EXPECT_NEAR(end_of(cluster(2, 2), pairs(4), sizes(6000, 18000)), (2 + 12 + 12) * us, exact);
}

TEST(VirtualRun, two_messages_to_one_rank_share_the_way_in_only) {
  // Ranks 1 and 2 send to rank 0 and receive nothing.
  const VirtualSchedules schedules(3, [](Rank rank) {
    ScheduleWriter writer(rank);
    if (rank == Rank{0}) {
      writer.receive(Rank{1}, 1, Spot::in_output());
      writer.receive(Rank{2}, 2, Spot::in_output());
    } else {
      writer.send(Rank{0}, rank.value(), Held{});
    }
    return writer.take();
  });
  EXPECT_NEAR(end_of(cluster(3, 1), schedules, bytes(5000)), (2 + 10) * us, exact);
}

TEST(VirtualRun, a_message_that_is_not_eager_waits_for_its_receive) {
  // Rank 1 copies 10 us before it receives.
  const VirtualSchedules schedules(2, [](Rank rank) {
    ScheduleWriter writer(rank);
    if (rank == Rank{0}) {
      writer.send(Rank{1}, 0, Held{});
      return writer.take();
    }
    const Held copied = writer.copy(0, Held{}, Spot::in_output());
    writer.receive(Rank{0}, 0, writer.new_slot());
    Schedule schedule = writer.take();
    schedule.steps.back().after.push_back(copied.step);
    return schedule;
  });
  CollectiveMachine machine = cluster(2, 1);
  machine.step_s = 1 * us;
  EXPECT_NEAR(end_of(machine, schedules, bytes(9000)), (1 + 9 + 2 + 9) * us, exact);
  machine.eager_bytes = 9000;
  EXPECT_NEAR(end_of(machine, schedules, bytes(9000)), (2 + 9) * us, exact);
}

TEST(VirtualRun, reductions_take_the_core_or_the_gpu_one_after_the_other) {
  CollectiveMachine machine = cluster(3, 1);
  machine.reduced_bytes_per_s = 0.5e9;
  machine.step_s = 1 * us;
  // Both come at 2 + 2 * 3 us, on one card; rank 1's and 2's, then the root's own: 7 us each.
  const double seconds = end_of(machine, CollectiveKind::reduce, Tree::flat, bytes(3000));
  EXPECT_NEAR(seconds, (2 + 6 + 7 + 7) * us, exact);
  // The GPU's four ranks: two pairs reduce at once on their cores, and one by one on their GPU.
  CollectiveMachine gpus = cluster(1, 4);
  gpus.reduced_bytes_per_s = 0.5e9;
  const auto reduced = [&] {
    return end_of(gpus, CollectiveKind::reduce, Tree::binomial, bytes(3000));
  };
  EXPECT_NEAR(reduced(), (2 + 3 + 6 + 2 + 3 + 6) * us, exact);
  gpus.gpus = 1;
  EXPECT_NEAR(reduced(), (2 + 3 + 12 + 2 + 3 + 6) * us, exact);
}

TEST(VirtualRun, a_barrier_of_ten_thousand_takes_as_many_rounds_as_their_logarithm) {
  CollectiveMachine machine = cluster(10'000, 1);
  machine.message_s = 0.5 * us;
  VirtualMessage message = bytes(1);
  message.element_bytes = 0;
  const double seconds =
      end_of(machine, CollectiveKind::barrier, Tree::binomial, std::move(message));
  EXPECT_NEAR(seconds, 14 * (0.5 + 2 + 0.5) * us, exact);
}

TEST(VirtualRun, more_than_can_be_run_is_refused_before) {
  const CollectiveMachine machine = cluster(2, 1);
  const Places places = places_of(machine);
  const VirtualSchedules schedules = pairs(2);
  EXPECT_THROW(VirtualRun(machine, places, schedules, bytes(std::int64_t{1} << 40, 8, 1)), Error);
}

}  // namespace heddle::replay
