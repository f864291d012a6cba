#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/machine/quick_times.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/recorder.hpp"
#include "tests/support/seeds.hpp"
#include "tests/threads/small_works.hpp"
#include "tests/threads/some_placement.hpp"

/// Tasks of devices' places that CPU workers run (000 section 3.6), in whole runs.
namespace heddle {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): works, machines, outcomes

/// Devices of which each fourth to last task stays, whatever it costs.
Machine lending(int devices, unsigned kept, NodeFaults faults = {}) {
  faults.placement = std::make_shared<SomePlacement>(kept);
  return {.devices = devices, .workers = 2, .faults = faults, .placement = "dynamic"};
}

/// Devices run what there is most of alone, as in 000 section 3.2.2.
bool is_update(const Kernel& kernel) {
  return &kernel == &kernel::gsmm || &kernel == &kernel::tsmqr || &kernel == &kernel::ttmqr;
}

std::vector<Work> works() {
  return {
      cholesky_work(250, "tile: 16, strip: 0, hierarchy: off"),
      cholesky_work(250, "tile: 16, strip: 8, small: 4, hierarchy: off"),
      cholesky_work(250, "tile: 16, strip: 0, inner: 6, hierarchy: off", 6),
      qr_work(200, 140, with_tree(qr_layout, QrTree::flat)),
      qr_work(200, 140, with_tree(qr_layout, QrTree::binomial)),
      stream_work(),
  };
}

}  // namespace

/// Emulated devices compute what the host computes.
TEST(Lending, whole_tasks_give_the_same_bits_wherever_they_run) {
  const std::vector<Work> all = works();
  std::vector<Outcome> expected;
  expected.reserve(all.size());
  for (const Work& work : all) expected.push_back(outcome_of(work, {}));
  const std::vector<std::uint64_t> seeds = simulation::seeds(12);
  for (const std::uint64_t seed : seeds) {
    const std::size_t w = seed % all.size();
    const int devices = 1 + static_cast<int>(seed / all.size() % 3);
    Machine machine = lending(devices, static_cast<unsigned>(seed / 2 % 4), faults_of(seed));
    if (seed % 3 == 0) machine.memory = expected[w].least_bytes(devices) * 5 / 4;
    machine.window = seed % 7 == 0 ? 3 : 4096;
    if (seed % 5 < 2) machine.faults.device_runs = is_update;
    const Outcome outcome = outcome_of(all[w], machine);
    ASSERT_TRUE(same_bits(outcome, expected[w])) << all[w].name << ", " << devices << " devices\n"
                                                 << simulation::replay_hint(seed);
    // Without missing kernels the number of lent tasks depends on the load of the cores.
    if (machine.faults.device_runs && all[w].name != stream_work().name) {
      EXPECT_GT(outcome.tasks_lent, 0) << simulation::replay_hint(seed);
    }
  }
}

/// Where a node lends, all that its devices hold has host memory behind it, and the plan counts it.
TEST(Lending, takes_host_memory_for_all_tiles_of_devices_or_says_that_there_is_too_little) {
  const Work work = works().front();
  const Outcome expected = outcome_of(work, {});
  std::uint64_t peak = 0;
  const auto lends = [&](const std::shared_ptr<const PlacementPolicy>& policy,
                         std::optional<std::uint64_t> host_memory) {
    Machine machine{.devices = 2, .workers = 2, .placement = "dynamic"};
    machine.faults.placement = policy;
    machine.faults.host_memory_bytes = host_memory;
    Node node(config_of(machine, work.layout), machine.faults);
    Outcome outcome;
    work.run(node, outcome);
    EXPECT_TRUE(same_bits(outcome, expected));
    peak = NodeInternals(node).engine().store().peak_host_bytes();
    return node.facts().lends_tasks;
  };
  EXPECT_TRUE(lends(std::make_shared<SomePlacement>(0), std::nullopt));
  const std::uint64_t peak_of_lending = peak;
  EXPECT_FALSE(lends(std::make_shared<StaticPlacement>(), std::nullopt));
  const std::uint64_t peak_of_none = peak;
  EXPECT_LT(peak_of_none, peak_of_lending);
  EXPECT_THROW(static_cast<void>(lends(std::make_shared<SomePlacement>(0), peak_of_none)), Error);
}

TEST(Lending, is_worth_it_where_devices_lack_kernels_or_workers_are_worth_a_16th_of_them) {
  // Seconds of any kernel.
  const auto is_worth_it = [](double worker, double device, int workers, bool runs_all = true) {
    EmulatedOptions emulated;
    if (!runs_all) emulated.kernel_is_run = is_update;
    const DeviceSet two = make_devices({DeviceBackend::emulated, 2, emulated, {}});
    const std::array<Device*, 2> devices{two.devices[0].get(), two.devices[1].get()};
    LendingOptions options;
    options.policy = std::make_shared<DynamicPlacement>();
    options.costs.kernel = [=](const KernelCase&, bool on_device) {
      return on_device ? device : worker;
    };
    return is_worth_lending(options, devices, workers);
  };
  EXPECT_TRUE(is_worth_it(10, 1, 2));
  EXPECT_TRUE(is_worth_it(7.9, 1, 1));
  EXPECT_FALSE(is_worth_it(8.1, 1, 1));
  EXPECT_TRUE(is_worth_it(8.1, 1, 2));
  EXPECT_TRUE(is_worth_it(1000, 1, 1, false));
}

/// Costs decide, which are known when the node starts: what kernels pretend to take.
TEST(Lending, a_node_whose_workers_are_worth_nothing_beside_its_device_lends_nothing) {
  for (const double worker_seconds : {1e-3, 1.0}) {
    Machine machine{.devices = 1, .workers = 2, .placement = "dynamic"};
    machine.faults.device_seconds = [](const Kernel&, const KernelArguments&) { return 1e-3; };
    machine.faults.worker_seconds = [=](const Kernel& kernel, const KernelArguments&) {
      return flops_of(kernel, 16, 16) > 0 ? worker_seconds : 0.0;
    };
    Node node(config_of(machine, "tile: 16, strip: 0, hierarchy: off"), machine.faults);
    EXPECT_TRUE(node.facts().moves_tasks);
    EXPECT_EQ(node.facts().lends_tasks, worker_seconds < 0.1);
    Matrix<double> a = node.matrix<double>(64, 64, Storage::lower);
    a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 4.0 : 0.0; });
    expect_done(node.submit(cholesky(a)));
    if (!node.facts().lends_tasks) {
      EXPECT_EQ(NodeInternals(node).engine().tasks_lent(), 0);
    }
  }
}

TEST(Lending, divided_tasks_give_the_factor) {
  const std::vector<double> whole = outcome_of(cholesky_work(250, "tile: 32"), {}).elements;
  const Work work = cholesky_work(250, "tile: 32, strip: 0, hierarchy: on, small: 9");
  for (int run = 0; run < 4; ++run) {
    Machine machine = lending(1 + run % 2, 1);
    const bool lacks_kernels = run >= 2;
    if (lacks_kernels) machine.faults.device_runs = is_update;
    const Outcome outcome = outcome_of(work, machine);
    if (lacks_kernels) {
      EXPECT_GT(outcome.tasks_lent, 0);
    }
    ASSERT_EQ(outcome.elements.size(), whole.size());
    double largest = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      largest = std::max(largest, std::abs(outcome.elements[i] - whole[i]));
    }
    EXPECT_LT(largest, 1e-11);
  }
}

TEST(Lending, static_placement_lends_nothing) {
  const Outcome outcome = outcome_of(works().front(), {.devices = 2});
  EXPECT_EQ(outcome.tasks_lent, 0);
  NodeFaults faults;
  faults.device_runs = is_update;
  const Outcome staged = outcome_of(works().front(), {.devices = 2, .faults = faults});
  EXPECT_EQ(staged.tasks_lent, 0);
  EXPECT_TRUE(same_bits(staged, outcome));
}

/// What a device cannot run is not staged, where tasks move: workers have all of it, and divide it.
TEST(Lending, workers_divide_what_a_device_cannot_run) {
  constexpr std::int64_t tiles = 8;
  Machine machine{.devices = 1, .workers = 2, .placement = "dynamic"};
  machine.faults.device_runs = is_update;
  Config config = config_of(machine, "tile: 32, strip: 0, hierarchy: on, small: 8");
  config.trace.file = "kept in memory";
  Node node(config, machine.faults);
  Matrix<double> a = node.matrix<double>(tiles * 32, tiles * 32, Storage::lower);
  a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
  expect_done(node.submit(cholesky(a)));
  std::int64_t fine = 0;
  for (const trace::ThreadRecords& thread :
       trace::collect(NodeInternals(node).recorder(), {}).threads) {
    if (!thread.name.starts_with("worker")) continue;
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::task) continue;
      if (record.as<trace::TaskRecord>().fine > 0) ++fine;
    }
  }
  EXPECT_GE(NodeInternals(node).engine().tasks_lent(), tiles + tiles * (tiles - 1))
      << "potrf; trsm and syrk";
  EXPECT_GT(fine, 0);
}

TEST(Lending, of_a_node_without_devices_nothing_is_lent) {
  const Work work = works().front();
  const Outcome outcome = outcome_of(work, {.placement = "dynamic"});
  EXPECT_EQ(outcome.tasks_lent, 0);
  EXPECT_TRUE(same_bits(outcome, outcome_of(work, {})));
}

TEST(Lending, workers_that_pretend_take_their_time_and_compute_nothing) {
  NodeFaults faults;
  faults.worker_seconds = [](const Kernel& kernel, const KernelArguments&) {
    return flops_of(kernel, 16, 16) > 0 ? 2e-3 : 0.0;
  };
  Node node(config_of({.workers = 2}, "tile: 16, strip: 0, hierarchy: off"), faults);
  Matrix<double> a = node.matrix<double>(64, 64, Storage::lower);
  a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 4.0 : 0.0; });
  const auto begin = std::chrono::steady_clock::now();
  expect_done(node.submit(cholesky(a)));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // 20 tasks; ten of them wait for each other.
  EXPECT_GE(took.count(), 0.95 * 10 * 2e-3);
  Outcome outcome;
  outcome.add(a);
  EXPECT_EQ(std::accumulate(outcome.elements.begin(), outcome.elements.end(), 0.0), 64 * 4.0);
}

TEST(Lending, reports_the_first_pivot_that_is_not_positive) {
  for (const std::int64_t pivot : {1, 17, 100, 118, 249}) {
    SCOPED_TRACE(pivot);
    for (const char* layout :
         {"tile: 16, strip: 0, hierarchy: off", "tile: 32, strip: 0, hierarchy: on, small: 7"}) {
      Machine machine = lending(2, 1);
      if (pivot % 2 == 0) machine.faults.device_runs = is_update;
      Node node(config_of(machine, layout), machine.faults);
      Matrix<double> a = node.matrix<double>(250, 250, Storage::lower);
      a.fill([&](std::int64_t i, std::int64_t j) {
        if (i == j) return i + 1 >= pivot ? -1.0 : 250.0;
        return 1.0 / static_cast<double>(1 + i - j);
      });
      const JobResult result = node.submit(cholesky(a)).wait();
      EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
      EXPECT_EQ(result.info, pivot);
      EXPECT_LT(result.pivot, 0);
    }
  }
}

TEST(Lending, a_cancelled_job_leaves_a_node_that_gives_the_same_bits) {
  const Work good = works().front();
  const Outcome expected = outcome_of(good, {});
  for (const std::uint64_t seed : simulation::seeds(6)) {
    const Work work{"after a cancelled job", good.layout, [&](Node& node, Outcome& outcome) {
                      Matrix<double> a = dominant(node, 250);
                      Job job = node.submit(cholesky(a));
                      const double until = static_cast<double>(seed % 8) / 10;
                      while (job.progress() < until) std::this_thread::yield();
                      job.cancel();
                      static_cast<void>(job.wait());
                      // What it left is undefined, but may be read.
                      expect_done(node.submit(subtract_product(dominant(node, 250), a)));
                      good.run(node, outcome);
                    }};
    Machine machine = lending(1 + static_cast<int>(seed % 3), 0);
    if (seed % 4 == 0) machine.faults.device_runs = is_update;
    const Outcome outcome = outcome_of(work, machine);
    ASSERT_TRUE(same_bits(outcome, expected)) << simulation::replay_hint(seed);
  }
}

TEST(Lending, the_trace_says_that_lent_tasks_ran_on_the_host) {
  Machine machine = lending(1, 0);
  machine.faults.device_runs = is_update;
  Config config = config_of(machine, "tile: 16, strip: 0, hierarchy: off");
  config.trace.file = "kept in memory";
  Node node(config, machine.faults);
  Matrix<double> a = dominant(node, 200);
  expect_done(node.submit(cholesky(a)));
  std::int64_t on_host = 0;
  for (const trace::ThreadRecords& thread :
       trace::collect(NodeInternals(node).recorder(), {}).threads) {
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::task) continue;
      const auto task = record.as<trace::TaskRecord>();
      const bool is_workers = thread.name.starts_with("worker");
      EXPECT_TRUE(is_workers || task.place == PlaceId{1});
      EXPECT_EQ(task.stream == 0, is_workers);
      if (is_workers && task.place == host_place) ++on_host;
    }
  }
  EXPECT_GT(NodeInternals(node).engine().tasks_lent(), 0);
  EXPECT_EQ(on_host, NodeInternals(node).engine().tasks_lent());
}

TEST(Lending, the_trace_tells_which_of_a_device_s_streams_ran_a_task_and_how_many_were_ready) {
  Config config = config_of({.devices = 1, .streams = 2}, "tile: 16, strip: 0");
  config.trace.file = "kept in memory";
  Node node(config);
  Matrix<double> a = dominant(node, 200);
  expect_done(node.submit(cholesky(a)));
  std::map<int, std::int64_t> end_ns;  // of each stream's task before
  std::int64_t tasks = 0;
  std::int64_t counts = 0;
  std::int64_t most_ready = 0;
  for (const trace::ThreadRecords& thread :
       trace::collect(NodeInternals(node).recorder(), {}).threads) {
    if (!thread.name.starts_with("device")) continue;
    for (const trace::Record& record : thread.records) {
      if (record.kind() == trace::RecordKind::counter) {
        const auto counter = record.as<trace::CounterRecord>();
        EXPECT_EQ(counter.place, PlaceId{1});
        ++counts;
        most_ready = std::max(most_ready, counter.value);
      }
      if (record.kind() != trace::RecordKind::task) continue;
      const auto task = record.as<trace::TaskRecord>();
      EXPECT_GE(task.stream, 1);
      EXPECT_LE(task.stream, 3) << "two and the one for urgent kernels";
      EXPECT_GE(task.start_ns, end_ns[task.stream]) << "one after the other";
      end_ns[task.stream] = task.end_ns;
      ++tasks;
    }
  }
  EXPECT_EQ(counts, tasks) << "with each task";
  EXPECT_GT(end_ns.size(), 1U);
  EXPECT_GT(most_ready, 3) << "of a step's updates";
}

TEST(Lending, begins_with_times_that_are_of_a_product_and_about_what_a_core_can_do) {
  const Node node(config_of({}, "tile: 16"));  // has chosen kernels
  const KernelTimes times = quick_worker_times();
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].kernel, &kernel::gsmm);
  const double gflops =
      flops_of(kernel::gsmm, times[0].rows, times[0].columns) * 1e-3 / times[0].microseconds;
  EXPECT_GT(gflops, 0.05);
  EXPECT_LT(gflops, 1000);
}

}  // namespace heddle
