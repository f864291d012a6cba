#include <chrono>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/recorder.hpp"
#include "tests/support/seeds.hpp"
#include "tests/threads/small_works.hpp"

/// Runs whose tiles do not fit into the devices' memory give the bits of those that fit, down to
/// the least memory that the plan accepts.
namespace heddle {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): works, machines, outcomes

/// In core and out of core, on 1 to 3 devices, as without devices.
void expect_same_bits_out_of_core(const Work& work) {
  SCOPED_TRACE(work.name);
  const Outcome without = outcome_of(work, {});
  for (const std::uint64_t seed : simulation::seeds(6)) {
    const int devices = 1 + static_cast<int>(seed % 3);
    if (seed <= 3) {
      const Outcome in_core = outcome_of(work, {.devices = devices});
      EXPECT_TRUE(same_bits(in_core, without)) << devices << " devices in core";
      EXPECT_EQ(in_core.evictions, 0U);
    }
    const std::uint64_t least = without.least_bytes(devices);
    const std::uint64_t memory = least + least * ((seed - 1) / 3) / 2;
    SCOPED_TRACE(fmt::format("{} devices of {} bytes", devices, memory));
    const Outcome out_of_core =
        outcome_of(work, {.devices = devices, .memory = memory, .workers = 1});
    EXPECT_TRUE(same_bits(out_of_core, without));
    EXPECT_TRUE(memory > least || out_of_core.evictions > 0);
    EXPECT_LE(out_of_core.peak_device_bytes, memory * static_cast<std::uint64_t>(devices));
  }
}

/// Bytes of the copies that a node of one device has recorded, by reason.
std::map<trace::CopyReason, std::uint64_t> traced_copies(Node& node) {
  std::map<trace::CopyReason, std::uint64_t> bytes;
  for (const trace::ThreadRecords& thread :
       trace::collect(NodeInternals(node).recorder(), {}).threads) {
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::copy) continue;
      const auto copy = record.as<trace::CopyRecord>();
      bytes[copy.reason] += copy.bytes;
      if (copy.reason == trace::CopyReason::access) continue;
      const bool is_fetch = copy.reason == trace::CopyReason::fetch;
      EXPECT_EQ(copy.from, is_fetch ? host_place : PlaceId{1});
      EXPECT_EQ(copy.to, is_fetch ? PlaceId{1} : host_place);
      EXPECT_GE(copy.tile.matrix, 0);
      EXPECT_GE(copy.tile.index, 0);
      EXPECT_LE(copy.posted_ns, copy.start_ns);
      EXPECT_LE(copy.start_ns, copy.end_ns);
    }
  }
  return bytes;
}

}  // namespace

TEST(OutOfCore, cholesky_has_the_same_bits_as_in_core) {
  expect_same_bits_out_of_core(cholesky_work(317, "tile: 16, strip: 0"));
  expect_same_bits_out_of_core(cholesky_work(317, "tile: 16, strip: 8, small: 4"));
}

TEST(OutOfCore, cholesky_with_inverse_blocks_has_the_same_bits_as_in_core) {
  expect_same_bits_out_of_core(cholesky_work(250, "tile: 16, strip: 0, inner: 6", 6));
  expect_same_bits_out_of_core(cholesky_work(317, "tile: 16, strip: 8, small: 8, inner: 5", 5));
}

TEST(OutOfCore, qr_has_the_same_bits_as_in_core) {
  for (const QrTree tree : {QrTree::flat, QrTree::binomial}) {
    expect_same_bits_out_of_core(qr_work(250, 150, with_tree(qr_layout, tree)));
    expect_same_bits_out_of_core(
        qr_work(220, 150, with_tree({.tile = 20, .virtual_tiles = 1, .inner = 20}, tree)));
  }
}

TEST(OutOfCore, streams_of_users_and_kernels_that_devices_lack_give_the_same_bits_as_in_core) {
  expect_same_bits_out_of_core(stream_work());
}

TEST(OutOfCore, bits_do_not_depend_on_delays_peers_workers_or_streams) {
  const std::vector<Work> works{
      cholesky_work(250, "tile: 16, strip: 8, small: 4"),
      cholesky_work(250, "tile: 16, strip: 0, inner: 6", 6),
      qr_work(200, 140, with_tree(qr_layout, QrTree::flat)),
      qr_work(200, 140, with_tree(qr_layout, QrTree::binomial)),
      stream_work(),
  };
  std::vector<Outcome> expected;
  expected.reserve(works.size());
  for (const Work& work : works) expected.push_back(outcome_of(work, {}));
  for (const std::uint64_t seed : simulation::seeds(20)) {
    const std::size_t w = seed % works.size();
    const int devices = 1 + static_cast<int>(seed / works.size() % 3);
    const std::uint64_t least = expected[w].least_bytes(devices);
    const Machine machine{.devices = devices,
                          .memory = least + least * (seed % 4) / 5,
                          .workers = 1 + static_cast<int>(seed % 2),
                          .faults = faults_of(seed),
                          .streams = 1 + static_cast<int>(seed % 4),
                          .window = seed % 7 == 0 ? 3 : 4096};
    ASSERT_TRUE(same_bits(outcome_of(works[w], machine), expected[w]))
        << works[w].name << ", " << devices << " devices\n"
        << simulation::replay_hint(seed);
  }
}

TEST(OutOfCore, the_trace_says_which_tiles_left_a_device_and_came_back) {
  const Work work = cholesky_work(250, "tile: 16, strip: 0");
  const std::uint64_t memory = outcome_of(work, {}).least_bytes(1);
  Node node(Config::from_text(fmt::format("layout: {{{}}}\ntrace: {{file: recorded}}\n"
                                          "runtime: {{cpu_workers: 1, devices: {{backend: "
                                          "emulated, per_node: 1, memory: {}}}}}\n",
                                          work.layout, memory),
                              "traced"),
            NodeFaults{});
  Outcome outcome;
  work.run(node, outcome);
  // A write-back may still be under way, and is in the trace before it is counted.
  std::map<trace::CopyReason, std::uint64_t> bytes;
  Residency::Statistics counted;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  do {
    bytes = traced_copies(node);
    counted = NodeInternals(node).store().cache(PlaceId{1}).statistics();
  } while (bytes[trace::CopyReason::write_back] != counted.written_bytes &&
           std::chrono::steady_clock::now() < limit);
  EXPECT_GT(counted.fetched_bytes, 0U);
  EXPECT_EQ(bytes[trace::CopyReason::fetch], counted.fetched_bytes);
  EXPECT_EQ(bytes[trace::CopyReason::write_back], counted.written_bytes);
}

TEST(OutOfCore, jobs_in_flight_together_give_what_they_give_alone) {
  constexpr int count = 4;
  const auto work = [](bool together) {
    return Work{"several jobs", "tile: 16, strip: 0", [together](Node& node, Outcome& outcome) {
                  std::vector<Matrix<double>> matrices;
                  std::vector<Job> jobs;
                  matrices.reserve(count);
                  jobs.reserve(count);
                  for (int k = 0; k < count; ++k) matrices.push_back(dominant(node, 150 + 13 * k));
                  for (const auto& a : matrices) {
                    outcome.measure(node, {a});
                    jobs.push_back(node.submit(cholesky(a)));
                    if (!together) expect_done(jobs.back());
                  }
                  for (Job& job : jobs) {
                    if (together) expect_done(job);
                  }
                  for (const auto& a : matrices) outcome.add(a);
                }};
  };
  const Outcome alone = outcome_of(work(false), {});
  for (const int devices : {1, 2, 3}) {
    const Outcome together =
        outcome_of(work(true), {.devices = devices, .memory = alone.least_bytes(devices)});
    EXPECT_TRUE(same_bits(together, alone)) << devices << " devices";
    EXPECT_GT(together.evictions, 0U);
  }
}

TEST(OutOfCore, a_cancelled_job_leaves_a_node_that_gives_the_same_bits) {
  const Work good = cholesky_work(250, "tile: 16, strip: 8, small: 4");
  const Outcome expected = outcome_of(good, {});
  for (const std::uint64_t seed : simulation::seeds(6)) {
    const int devices = 1 + static_cast<int>(seed % 3);
    const Work work{
        "after a cancelled job", good.layout, [&](Node& node, Outcome& outcome) {
          Matrix<double> a = dominant(node, 250);
          Job job = node.submit(cholesky(a));
          const double until = static_cast<double>(seed % 8) / 10;
          while (job.progress() < until) std::this_thread::yield();
          job.cancel();
          const JobResult::Status status = job.wait().status;
          EXPECT_TRUE(status == JobResult::Status::cancelled || status == JobResult::Status::done);
          // What it left is undefined, but may be read.
          expect_done(node.submit(subtract_product(dominant(node, 250), a)));
          good.run(node, outcome);
        }};
    const Machine machine{
        .devices = devices, .memory = expected.least_bytes(devices), .faults = faults_of(seed)};
    ASSERT_TRUE(same_bits(outcome_of(work, machine), expected)) << simulation::replay_hint(seed);
  }
}

TEST(OutOfCore, a_matrix_that_is_not_positive_definite_gives_lapacks_info_and_the_node_goes_on) {
  const Work good = cholesky_work(250, "tile: 16, strip: 0");
  const Outcome expected = outcome_of(good, {});
  for (const std::int64_t pivot : {1, 17, 100, 249}) {
    for (const int devices : {1, 3}) {
      const Work work{"after a failure", good.layout, [&](Node& node, Outcome& outcome) {
                        Matrix<double> a = node.matrix<double>(250, 250, Storage::lower);
                        a.fill([&](std::int64_t i, std::int64_t j) {
                          if (i == j) return i + 1 >= pivot ? -1.0 : 250.0;
                          return 1.0 / static_cast<double>(1 + i - j);
                        });
                        const JobResult result = node.submit(cholesky(a)).wait();
                        EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
                        EXPECT_EQ(result.info, pivot);
                        EXPECT_LT(result.pivot, 0);
                        good.run(node, outcome);
                      }};
      const Machine machine{.devices = devices, .memory = expected.least_bytes(devices)};
      EXPECT_TRUE(same_bits(outcome_of(work, machine), expected)) << "pivot " << pivot;
    }
  }
}

TEST(OutOfCore, any_memory_is_refused_before_the_run_or_suffices) {
  for (const Work& work :
       {cholesky_work(45, "tile: 15, strip: 0"), cholesky_work(75, "tile: 15, strip: 0"),
        cholesky_work(90, "tile: 17, strip: 5, small: 5"),
        qr_work(100, 60, {.tile = 15, .virtual_tiles = 2, .inner = 4})}) {
    const Outcome expected = outcome_of(work, {});
    int refusals = 0;
    const std::uint64_t most = 2 * expected.least_bytes(1);
    for (const std::uint64_t seed : simulation::seeds(30)) {
      const std::uint64_t memory = most * (1 + seed * 17 % 30) / 30;  // small and large by turns
      SCOPED_TRACE(fmt::format("{}, {} bytes", work.name, memory));
      try {
        EXPECT_TRUE(same_bits(outcome_of(work, {.devices = 1, .memory = memory}), expected));
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("out of core it needs"), std::string::npos) << text;
        EXPECT_LT(memory, expected.least_bytes(1) * 11 / 10);
        ++refusals;
      }
    }
    EXPECT_TRUE(refusals > 0 || simulation::one_seed_only());
  }
}

TEST(OutOfCore, tiles_that_do_not_come_are_noticed_by_the_watchdog_and_end_the_node) {
  const Work work = cholesky_work(317, "tile: 16, strip: 0");
  const std::size_t largest = outcome_of(work, {}).largest_tile;
  // Copies when the factorization is on its way: tasks and other copies wait behind some of them.
  const auto late_copy = [](int devices) { return devices == 1 ? 2000U : 900U; };
  for (const int devices : {1, 2}) {
    const auto count = static_cast<std::size_t>(devices);
    Machine machine{.devices = devices,
                    .memory = TileStore::least_device_bytes(largest, count),
                    .watchdog_seconds = 0.5};
    machine.faults.devices.slow_copy = late_copy(devices);
    machine.faults.devices.slow_copy_us = 2'000'000;
    try {
      static_cast<void>(outcome_of(work, machine));
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nothing has advanced for 0.5 s"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace heddle
