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
#include "node-runtime/trace/node_trace.hpp"
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
  std::int64_t lent = 0;
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
    lent += outcome.tasks_lent;
  }
  // Mostly thousands; of a single run on busy cores perhaps none. Some tasks visit other devices,
  // too, and at times none does, since these have alike amounts of work.
  if (seeds.size() > 6) {
    EXPECT_GT(lent, 0);
  }
}

/// Tiles that the host can use take its memory: all at the beginning where it will probably use
/// some, or else those of pools that it uses.
TEST(Lending, a_host_with_little_memory_is_lent_what_it_has_room_for_with_the_same_bits) {
  const Work work = works().front();
  const Outcome expected = outcome_of(work, {});
  std::uint64_t peak = 0;
  const auto run = [&](const std::shared_ptr<const PlacementPolicy>& policy,
                       std::optional<std::uint64_t> host_memory, Outcome& outcome) {
    Machine machine{.devices = 2, .workers = 2, .placement = "dynamic"};
    machine.faults.placement = policy;
    machine.faults.host_memory_bytes = host_memory;
    Node node(config_of(machine, work.layout), machine.faults);
    work.run(node, outcome);
    outcome.tasks_lent = node.engine().tasks_lent();
    peak = node.engine().store().peak_host_bytes();
    return node.facts().backs_tiles;
  };
  Outcome likely;
  EXPECT_TRUE(run(std::make_shared<SomePlacement>(0), std::nullopt, likely));
  const std::uint64_t peak_of_all = peak;
  Outcome on_demand;
  EXPECT_FALSE(run(std::make_shared<SomePlacement>(0, 1), std::nullopt, on_demand));
  Outcome none;
  EXPECT_FALSE(run(std::make_shared<StaticPlacement>(), std::nullopt, none));
  const std::uint64_t peak_of_none = peak;
  EXPECT_LT(peak_of_none, peak_of_all);
  Outcome little;
  EXPECT_FALSE(run(std::make_shared<SomePlacement>(0, 1), peak_of_none, little));
  EXPECT_LE(peak, peak_of_none);
  for (const Outcome* outcome : {&likely, &on_demand, &none, &little}) {
    EXPECT_TRUE(same_bits(*outcome, expected));
  }
  Outcome nothing;
  EXPECT_THROW(static_cast<void>(run(std::make_shared<SomePlacement>(0), peak_of_none, nothing)),
               Error);
}

TEST(Lending, is_likely_where_devices_lack_kernels_or_would_be_helped_with_products) {
  // Seconds of any kernel.
  const auto is_likely = [](double worker, double device, int workers, bool runs_all = true) {
    EmulatedOptions emulated;
    if (!runs_all) emulated.kernel_is_run = is_update;
    const DeviceSet two = make_devices({DeviceBackend::emulated, 2, emulated, {}});
    const std::array<Device*, 2> devices{two.devices[0].get(), two.devices[1].get()};
    LendingOptions options;
    options.policy = std::make_shared<DynamicPlacement>();
    options.costs.kernel = [=](const KernelCase&, bool on_device) {
      return on_device ? device : worker;
    };
    return is_likely_to_lend(options, devices, workers);
  };
  EXPECT_TRUE(is_likely(10, 1, 2));
  // Two devices, each twice as slow as is known, are one as it is known, and a 16th is worth it.
  EXPECT_TRUE(is_likely(15.9, 1, 1));
  EXPECT_FALSE(is_likely(16.1, 1, 1));
  EXPECT_TRUE(is_likely(16.1, 1, 2));
  EXPECT_TRUE(is_likely(1000, 1, 1, false));
}

/// Takes a device a while, and a worker cannot run it.
std::int64_t slowly(const KernelArguments& arguments) {
  std::this_thread::sleep_for(std::chrono::microseconds(500));
  return twice_plus_input(arguments);
}
constexpr Kernel slow_accumulate{.name = "slow accumulate", .emulated = slowly};

/// All tiles are the first device's.
Work one_sided_work() {
  return {"tiles of one device", "tile: 16, strip: 0", [](Node& node, Outcome& outcome) {
            constexpr int tiles = 60;
            Matrix<double> m = node.matrix<double>(std::int64_t{16} * tiles, 16);
            m.fill(element);
            UserStream stream = node.stream("one-sided", {m});
            for (int round = 0; round < 4; ++round) {
              for (int i = 0; i < tiles; i += 2) {
                stream->insert(slow_accumulate, read_write(m(TileRow{i}, TileColumn{0})),
                               read(m(TileRow{(i + 1 + 2 * round) % tiles}, TileColumn{0})));
              }
            }
            expect_done(stream.end());
            outcome.add(m);
          }};
}

TEST(Lending, an_idle_device_runs_tasks_of_a_busy_one_with_the_same_bits) {
  const Outcome alone = outcome_of(one_sided_work(), {.devices = 1, .workers = 1});
  for (const int devices : {2, 3}) {
    const Machine machine{.devices = devices, .workers = 1, .placement = "dynamic"};
    // On busy cores a single run may come to none.
    std::int64_t visiting = 0;
    for (int run = 0; run < 10 && visiting == 0; ++run) {
      const Outcome together = outcome_of(one_sided_work(), machine);
      visiting += together.tasks_visiting;
      EXPECT_EQ(together.tasks_lent, 0);
      ASSERT_TRUE(same_bits(together, alone)) << devices << " devices";
    }
    EXPECT_GT(visiting, 0) << devices << " devices";
  }
  const Outcome fixed = outcome_of(one_sided_work(), {.devices = 2, .workers = 1});
  EXPECT_EQ(fixed.tasks_visiting, 0);
  EXPECT_TRUE(same_bits(fixed, alone));
}

/// Workers might be given single tasks of a kind, but not all of a work; devices as ever.
class OfSingleTasks final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "single tasks"; }
  [[nodiscard]] bool moves_tasks() const override { return true; }
  [[nodiscard]] std::size_t choose(std::span<const PlaceOffer> offers) const override {
    if (offers.back().place != host_place) return dynamic_.choose(offers);
    // Of a ready task: none is lent.
    if (!std::isinf(offers.front().load_seconds)) return 0;
    // Relaxed: whoever runs the node has seen it be made.
    if (!is_asked_of_kinds.load(std::memory_order_relaxed)) return 0;
    const double seconds = offers.front().kernel_seconds;
    double none = 0;
    // Relaxed: it is one number. What is asked about first is a kind.
    single_.compare_exchange_strong(none, seconds, std::memory_order_relaxed);
    return seconds < 10 * single_.load(std::memory_order_relaxed) ? 1 : 0;
  }
  std::atomic<bool> is_asked_of_kinds{false};  ///< before, it is asked whether the node may lend
  [[nodiscard]] double single() const { return single_.load(std::memory_order_relaxed); }

 private:
  DynamicPlacement dynamic_;
  mutable std::atomic<double> single_{0};
};

TEST(Lending, keeps_no_loads_where_workers_could_hardly_help_and_visits_all_the_same) {
  const Work work = one_sided_work();
  const Outcome alone = outcome_of(work, {.devices = 1, .workers = 1});
  Machine machine{.devices = 2, .workers = 1, .placement = "dynamic"};
  const auto policy = std::make_shared<OfSingleTasks>();
  machine.faults.placement = policy;
  Node node(config_of(machine, work.layout), machine.faults);
  policy->is_asked_of_kinds = true;
  EXPECT_TRUE(node.engine().keeps_loads()) << "nobody has shown anything";
  int kept = 0;
  std::int64_t visiting = 0;
  // Of 32 works one is measured again; a matrix is filled in one of its own.
  for (int run = 0; run < 20; ++run) {
    const std::int64_t before = node.engine().tasks_visiting();
    Outcome outcome;
    work.run(node, outcome);
    ASSERT_TRUE(same_bits(outcome, alone)) << run;
    EXPECT_GT(policy->single(), 0) << "of no kind was asked whether it may come";
    const bool keeps = node.engine().keeps_loads();
    kept += keeps ? 1 : 0;
    if (!keeps) visiting += node.engine().tasks_visiting() - before;
  }
  EXPECT_LE(kept, 2);
  EXPECT_GT(visiting, 0);
  EXPECT_EQ(node.engine().tasks_lent(), 0);
}

/// A third device has nothing of its own.
TEST(Lending, a_factorization_of_few_tile_columns_visits_with_the_same_bits) {
  const Work work = qr_work(3200, 32, with_tree(qr_layout, QrTree::binomial));
  const Outcome alone = outcome_of(work, {});
  std::int64_t visiting = 0;
  // Mostly hundreds in a run.
  for (int run = 0; run < 10 && (run < 3 || visiting == 0); ++run) {
    const Outcome together = outcome_of(work, {.devices = 3, .workers = 1, .placement = "dynamic"});
    visiting += together.tasks_visiting;
    ASSERT_TRUE(same_bits(together, alone)) << run;
  }
  EXPECT_GT(visiting, 0);
}

TEST(Lending, devices_that_do_not_reach_each_other_keep_their_tasks) {
  Machine machine = lending(2, 0);
  machine.faults.devices.refuse_peers = true;
  const Outcome apart = outcome_of(one_sided_work(), machine);
  EXPECT_EQ(apart.tasks_visiting, 0);
}

/// One that has no room left for the tiles of others is left alone, and the run goes on.
TEST(Lending, a_device_without_room_receives_no_visits) {
  Machine machine{.devices = 2, .workers = 1, .placement = "dynamic"};
  machine.memory = TileStore::least_device_bytes(std::size_t{16} * 16 * sizeof(double), 2);
  const Outcome full = outcome_of(one_sided_work(), machine);
  EXPECT_EQ(full.tasks_visiting, 0);
  EXPECT_TRUE(same_bits(full, outcome_of(one_sided_work(), {.devices = 1, .workers = 1})));
}

TEST(Lending, divided_tasks_give_the_factor) {
  const std::vector<double> whole = outcome_of(cholesky_work(250, "tile: 32"), {}).elements;
  const Work work = cholesky_work(250, "tile: 32, strip: 0, hierarchy: on, small: 9");
  std::int64_t lent = 0;
  // On busy cores a single run may lend none.
  for (int run = 0; run < 4 || (run < 20 && lent == 0); ++run) {
    Machine machine = lending(1 + run % 2, 1);
    if (run % 4 >= 2) machine.faults.device_runs = is_update;
    const Outcome outcome = outcome_of(work, machine);
    lent += outcome.tasks_lent;
    ASSERT_EQ(outcome.elements.size(), whole.size());
    double largest = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      largest = std::max(largest, std::abs(outcome.elements[i] - whole[i]));
    }
    EXPECT_LT(largest, 1e-11);
  }
  EXPECT_GT(lent, 0);
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
  // No time at all, so that nothing else is lent.
  machine.faults.device_seconds = [](const Kernel&, const KernelArguments&) { return 0.0; };
  Config config = config_of(machine, "tile: 32, strip: 0, hierarchy: on, small: 8");
  config.trace.file = "kept in memory";
  Node node(config, machine.faults);
  Matrix<double> a =
      node.matrix<double>({.rows = tiles * 32, .columns = tiles * 32, .storage = Storage::lower});
  a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
  expect_done(node.submit(cholesky(a)));
  std::int64_t fine = 0;
  for (const trace::ThreadRecords& thread : trace::collect(node.recorder(), {}).threads) {
    if (!thread.name.starts_with("worker")) continue;
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::task) continue;
      if (record.as<trace::TaskRecord>().fine > 0) ++fine;
    }
  }
  EXPECT_GE(node.engine().tasks_lent(), tiles + tiles * (tiles - 1)) << "potrf; trsm and syrk";
  EXPECT_GT(fine, 0);
}

TEST(Lending, of_a_node_without_devices_nothing_is_lent) {
  const Work work = works().front();
  const Outcome outcome = outcome_of(work, {.placement = "dynamic"});
  EXPECT_EQ(outcome.tasks_lent, 0);
  EXPECT_TRUE(same_bits(outcome, outcome_of(work, {})));
}

/// The dynamic policy itself: it has no measurements here, and finds out.
TEST(Lending, a_slow_device_gets_less_than_half_of_the_work) {
  const auto tasks_lent = [](double seconds) {
    NodeFaults faults;
    faults.device_seconds = [seconds](const Kernel&, const KernelArguments&) { return seconds; };
    Node node(config_of({.devices = 1, .workers = 2, .placement = "dynamic"},
                        "tile: 64, strip: 0, hierarchy: off"),
              faults);
    MatrixSpec spec;
    spec.rows = spec.columns = std::int64_t{64} * 12;
    spec.storage = Storage::lower;
    Matrix<double> a = node.matrix<double>(spec);
    a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
    expect_done(node.submit(cholesky(a)));
    return node.engine().tasks_lent();
  };
  const std::int64_t all = 12 * 13 * 14 / 6;
  const std::int64_t of_slow = tasks_lent(20e-3);
  // A sanitizer slows the workers, and the threads that choose, but not the pretended device.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_GT(of_slow, 0);
#else
  EXPECT_GT(of_slow, all / 2);
#endif
  EXPECT_LT(of_slow, all);
}

/// All of them pretend: how many workers there are is no matter of cores.
TEST(Lending, many_workers_do_their_share_beside_a_device_three_times_as_fast) {
  constexpr int workers = 8;
  constexpr double worker_rate = 0.5e9;
  // None of what fills a matrix.
  const auto flops = [](const Kernel& kernel, const KernelArguments& arguments) {
    return flops_of(kernel, arguments.tiles[0].rows, arguments.tiles[0].columns);
  };
  NodeFaults faults;
  faults.worker_seconds = [=](const Kernel& kernel, const KernelArguments& arguments) {
    return flops(kernel, arguments) / worker_rate;
  };
  faults.device_seconds = [=](const Kernel& kernel, const KernelArguments& arguments) {
    return flops(kernel, arguments) / (3 * workers * worker_rate);
  };
  Node node(config_of({.devices = 1, .workers = workers, .placement = "dynamic"},
                      "tile: 192, strip: 0, hierarchy: off"),
            faults);
  Matrix<double> a = dominant(node, std::int64_t{12} * 192);
  expect_done(node.submit(cholesky(a)));
  // A quarter is theirs; whole tasks that they end with are late.
  constexpr std::int64_t all = 12 * 13 * 14 / 6;
  const std::int64_t lent = node.engine().tasks_lent();
  // A sanitizer slows tiles on their way, but not who pretends.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_GT(lent, 0);
#else
  EXPECT_GT(lent, all / 10);
#endif
  EXPECT_LT(lent, all * 2 / 5);
}

TEST(Lending, workers_that_pretend_take_their_time_and_compute_nothing) {
  NodeFaults faults;
  faults.worker_seconds = [](const Kernel& kernel, const KernelArguments&) {
    return flops_of(kernel, 16, 16) > 0 ? 2e-3 : 0.0;
  };
  Node node(config_of({.workers = 2}, "tile: 16, strip: 0, hierarchy: off"), faults);
  Matrix<double> a = node.matrix<double>({.rows = 64, .columns = 64, .storage = Storage::lower});
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
      Matrix<double> a =
          node.matrix<double>({.rows = 250, .columns = 250, .storage = Storage::lower});
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
  const Machine machine = lending(1, 0);
  Config config = config_of(machine, "tile: 16, strip: 0, hierarchy: off");
  config.trace.file = "kept in memory";
  Node node(config, machine.faults);
  Matrix<double> a = dominant(node, 200);
  expect_done(node.submit(cholesky(a)));
  std::int64_t on_host = 0;
  for (const trace::ThreadRecords& thread : trace::collect(node.recorder(), {}).threads) {
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::task) continue;
      const auto task = record.as<trace::TaskRecord>();
      const bool is_workers = thread.name.starts_with("worker");
      EXPECT_TRUE(is_workers || task.place == PlaceId{1});
      EXPECT_EQ(task.stream == 0, is_workers);
      if (is_workers && task.place == host_place) ++on_host;
    }
  }
  EXPECT_GT(node.engine().tasks_lent(), 0);
  EXPECT_EQ(on_host, node.engine().tasks_lent());
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
  for (const trace::ThreadRecords& thread : trace::collect(node.recorder(), {}).threads) {
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
