#include "node-runtime/collectives/schedule/device_ways.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "node-runtime/collectives/schedule/levels.hpp"

namespace heddle::collectives {
namespace {

constexpr double kilobyte = 1 << 10;
constexpr double megabyte = 1 << 20;

/// As measured on one machine (H200, CUDA 13.0, driver 580): copies to the host 55.4 GB/s, between
/// GPUs 396, within one 1980; a launch 3.2 us, one with its end 8.4 us; a change of process 140 us.
DeviceRates h200(bool has_mps) {
  return {.note_s = 1e-6,
          .work_s = 8.4e-6,
          .launch_s = 3.2e-6,
          .peer_s = 0,
          .peer_bytes_per_s = 396e9,
          .switch_bytes_per_s = 0,
          .within_bytes_per_s = 1980e9,
          .to_host_bytes_per_s = 55.4e9,
          .to_device_bytes_per_s = 55.6e9,
          .host_bytes_per_s = 10e9,
          .turn_s = has_mps ? 0 : 140e-6};
}

/// Emulated devices with lanes of 1 GB/s and 20 us, and as much between two switches.
DeviceRates paced() {
  return {.note_s = 1e-6,
          .work_s = 40e-6,
          .launch_s = 10e-6,
          .peer_s = 20e-6,
          .peer_bytes_per_s = 1e9,
          .switch_bytes_per_s = 1e9,
          .within_bytes_per_s = 6e9,
          .to_host_bytes_per_s = 1e9,
          .to_device_bytes_per_s = 1e9,
          .host_bytes_per_s = 8e9};
}

/// `ranks` dealt out to GPUs, `sharers` to each, two GPUs on a switch.
Places on_gpus(std::int32_t ranks, std::int32_t sharers) {
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < ranks; ++r) {
    const std::int32_t gpu = r / sharers;
    places.push_back({.host = 0, .socket = 0, .pci_switch = gpu / 2, .gpu = gpu, .card = 0});
  }
  return Places(std::move(places));
}

/// Rates of host memory on two cores, by which steps are chosen.
CollectiveRates hosts() {
  CollectiveRates made;
  made.levels.fill({1e-6, 8e9, 8192, 4e-6, 10e9});
  made.reduced_bytes_per_s = 8e9;
  return made;
}

DeviceWayChoice choose(CollectiveKind kind, double bytes, const Places& places,
                       const DeviceRates& rates, std::string_view no_direct = {}) {
  CollectiveQuery query{.kind = kind, .bytes = bytes};
  query.ranks = places.size();
  query.sizes = Levels(places).largest();
  const CollectiveRates device = rates_of_device_memory(rates);
  const CollectiveChoice chosen = steps_for_both(query, choose_collective(query, hosts()),
                                                 choose_collective(query, device), hosts(), device);
  DeviceWayQuery asked;
  asked.kind = kind;
  asked.bytes = bytes;
  asked.steps = &query;
  asked.chosen = &chosen;
  asked.no_direct = no_direct;
  return choose_device_way(asked, places, rates);
}

/// The ways that can be taken, the fastest first.
std::string order(const DeviceWayChoice& choice) {
  std::string text;
  for (const auto& one : choice.considered) {
    if (one.lacks.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(one.way));
  }
  return text;
}

struct Row {
  CollectiveKind kind;
  double bytes;
  std::string_view order;
};

void expect(const std::vector<Row>& golden, const Places& places, const DeviceRates& rates) {
  for (const Row& row : golden) {
    const DeviceWayChoice choice = choose(row.kind, row.bytes, places, rates);
    std::string times;
    for (const auto& one : choice.considered) {
      times += fmt::format(" {} {:.1f} us", name_of(one.way), 1e6 * one.seconds);
    }
    EXPECT_EQ(order(choice), row.order) << name_of(row.kind) << " of " << row.bytes << ":" << times;
  }
}

using enum CollectiveKind;

}  // namespace

TEST(DeviceWays, of_ranks_that_share_a_gpu_without_mps_leave_it_to_one_process) {
  expect({{all_reduce, 8, "direct steps gsb staged"},
          {all_reduce, 64 * kilobyte, "direct steps gsb staged"},
          {all_reduce, 16 * megabyte, "direct steps gsb staged"},
          {broadcast, 64 * kilobyte, "direct steps gsb staged"},
          {reduce, 16 * megabyte, "direct steps gsb staged"},
          {all_gather, megabyte, "direct steps"}},
         on_gpus(4, 4), h200(false));
}

TEST(DeviceWays, of_ranks_that_share_a_gpu_with_mps) {
  expect({{all_reduce, 8, "direct gsb steps staged"},
          {all_reduce, 64 * kilobyte, "direct gsb steps staged"},
          {all_reduce, 16 * megabyte, "direct steps gsb staged"},
          {broadcast, 64 * kilobyte, "direct steps gsb staged"},
          {all_gather, megabyte, "direct steps"}},
         on_gpus(4, 4), h200(true));
}

TEST(DeviceWays, of_gpus_of_a_host) {
  expect({{all_reduce, 8, "direct gsb steps staged"},
          {all_reduce, 32 * megabyte, "direct steps gsb staged"},
          {broadcast, 32 * megabyte, "direct steps gsb staged"},
          {all_gather, 32 * megabyte, "steps direct"}},
         on_gpus(4, 1), h200(false));
}

TEST(DeviceWays, of_paced_links_between_two_switches) {
  expect({{broadcast, 64 * megabyte, "steps direct staged gsb"},
          {reduce, 64 * megabyte, "direct steps gsb staged"},
          {all_reduce, 64 * megabyte, "steps direct gsb staged"},
          {all_gather, 64 * megabyte, "steps direct"}},
         on_gpus(4, 1), paced());
}

TEST(DeviceWays, of_one_process_at_a_time_take_no_turns) {
  const Places places = on_gpus(4, 4);
  const DeviceWayChoice alone = choose(all_reduce, megabyte, places, h200(true));
  const DeviceWayChoice turns = choose(all_reduce, megabyte, places, h200(false));
  EXPECT_EQ(alone.seconds_of(PredictedWay::direct), turns.seconds_of(PredictedWay::direct));
  // In and out two fragments, by three ranks and the leader.
  EXPECT_NEAR(turns.seconds_of(PredictedWay::gsb) - alone.seconds_of(PredictedWay::gsb),
              2 * 7 * 140e-6, 1e-9);
  EXPECT_GT(turns.seconds_of(PredictedWay::steps), alone.seconds_of(PredictedWay::steps));
  // GPUs of their own: nobody turns.
  EXPECT_EQ(choose(all_reduce, megabyte, on_gpus(4, 1), h200(true)).seconds_of(PredictedWay::gsb),
            choose(all_reduce, megabyte, on_gpus(4, 1), h200(false)).seconds_of(PredictedWay::gsb));
}

TEST(DeviceWays, follow_the_loads_of_links) {
  const double bytes = 64 * megabyte;
  const double whole = bytes / 1e9;
  const auto direct = [&](CollectiveKind kind, double switch_rate) {
    DeviceRates rates = paced();
    rates.switch_bytes_per_s = switch_rate;
    return choose(kind, bytes, on_gpus(4, 1), rates).seconds_of(PredictedWay::direct);
  };
  // Quarters of three inputs come, and three of the result.
  EXPECT_NEAR(direct(all_reduce, 0), 6 * whole / 4, 1e-3 * whole);
  // Quarters of two inputs come to each device of a switch from the other one, and two results.
  EXPECT_NEAR(direct(all_reduce, 1e9), 8 * whole / 4, 1e-3 * whole);
  // Three read a quarter at the root, which gives its own quarter to three.
  EXPECT_NEAR(direct(broadcast, 0), 6 * whole / 4, 1e-3 * whole);
  // A ring passes each link once, whatever the switches share.
  const double steps =
      choose(all_gather, bytes, on_gpus(4, 1), paced()).seconds_of(PredictedWay::steps);
  EXPECT_GE(steps, 3 * whole);
}

TEST(DeviceWays, that_cannot_be_taken_say_why_and_come_last) {
  const DeviceWayChoice choice =
      choose(all_reduce, megabyte, on_gpus(4, 4), h200(true), "the group has more than 16 ranks");
  EXPECT_EQ(choice.way(), PredictedWay::steps);
  EXPECT_EQ(order(choice), "steps");
  EXPECT_EQ(choice.considered.back().lacks, "the group has more than 16 ranks");
  const DeviceWayChoice gather = choose(all_gather, megabyte, on_gpus(4, 4), h200(true));
  const auto gsb =
      std::ranges::find(gather.considered, PredictedWay::gsb, &DeviceWayChoice::Candidate::way);
  EXPECT_EQ(gsb->lacks, "the operation has none");
}

TEST(DeviceWays, take_steps_that_lose_little_wherever_elements_are) {
  const Places places = on_gpus(4, 1);
  CollectiveQuery query{.kind = all_reduce, .bytes = 4 * megabyte};
  query.ranks = places.size();
  query.sizes = Levels(places).largest();
  const CollectiveRates device = rates_of_device_memory(paced());
  const CollectiveChoice for_hosts = choose_collective(query, hosts());
  const CollectiveChoice for_devices = choose_collective(query, device);
  const CollectiveChoice both = steps_for_both(query, for_hosts, for_devices, hosts(), device);
  const double on_hosts = seconds_of_steps(query, both, hosts()) / for_hosts.seconds;
  const double on_devices = seconds_of_steps(query, both, device) / for_devices.seconds;
  const double other_on_devices = seconds_of_steps(query, for_hosts, device) / for_devices.seconds;
  const double other_on_hosts = seconds_of_steps(query, for_devices, hosts()) / for_hosts.seconds;
  EXPECT_LE(std::max(on_hosts, on_devices), std::max(other_on_devices, other_on_hosts));
  EXPECT_NEAR(both.seconds, seconds_of_steps(query, both, hosts()), 1e-9);
  EXPECT_EQ(both.considered.front().text, both.text());
  // The same rates: nothing to lose.
  const CollectiveChoice same = steps_for_both(query, for_hosts, for_hosts, hosts(), hosts());
  EXPECT_EQ(same.text(), for_hosts.text());
}

TEST(DeviceWays, treat_ranks_without_a_known_gpu_as_ranks_with_one_each) {
  std::vector<RankPlace> unknown(3);
  const Places places{std::move(unknown)};
  EXPECT_EQ(choose(all_reduce, megabyte, places, paced()).seconds_of(PredictedWay::direct),
            choose(
                all_reduce, megabyte,
                [] {
                  std::vector<RankPlace> known(3);
                  for (std::int32_t r = 0; r < 3; ++r) known[static_cast<std::size_t>(r)].gpu = r;
                  return Places(std::move(known));
                }(),
                paced())
                .seconds_of(PredictedWay::direct));
}

}  // namespace heddle::collectives
