#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/recorded_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "base/error.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulator.hpp"

/// What is learned from runs whose times are known, as they were simulated.
namespace heddle {
namespace {

constexpr std::int64_t tile = 40;
constexpr std::int64_t order = 15 * tile + 12;  // the last tiles are smaller

/// By operations, and a little for each call.
class KnownClock final : public KernelClock {
 public:
  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override {
    return runner == Runner::worker ? 2e-6 + 1e-9 * flops_of(what) : 0;
  }
  [[nodiscard]] std::string source() const override { return "known"; }
};

SimulatedFactorization factorization(std::int64_t n = order) {
  TileLayout layout;
  layout.rows = layout.columns = n;
  layout.tile = tile;
  Distribution distribution;
  distribution.grid_columns = 2;
  return simulated_cholesky(n, layout, distribution, 0, 0);
}

/// Of two nodes with two workers each.
replay::RunTrace run_with(std::vector<double> paces, std::vector<double> first_tasks = {}) {
  KnownClock clock;
  SimulatedProgram program(factorization(), clock, false);
  replay::SimulatedMachine machine;
  machine.nodes = machine.cpu_workers = 2;
  machine.worker_paces = std::move(paces);
  machine.first_tasks = std::move(first_tasks);
  return replay::make_run("simulated", replay::simulate(machine, program, {.traces = true}).traces);
}

/// A product of square tiles.
struct Product {
  explicit Product(std::int64_t size = tile) { operands.assign(3, OperandShape{size, size}); }

  std::vector<OperandShape> operands;
  KernelParameters parameters{kernel::UpdateParameters{0}};
  [[nodiscard]] KernelCase what() const { return {&kernel::gsmm, parameters, operands}; }
};

/// By worker, those of a node one after the other, what its tasks took in all.
std::vector<double> seconds_of_workers(const replay::RunTrace& run) {
  std::vector<std::size_t> number(run.threads.size(), 0);
  std::size_t workers = 0;
  for (std::size_t t = 0; t < run.threads.size(); ++t) {
    if (run.threads[t].role == replay::Role::worker) number[t] = workers++;
  }
  std::vector<double> seconds(workers, 0);
  for (const replay::Task& task : run.tasks) {
    const std::size_t worker = number[static_cast<std::size_t>(task.thread.value())];
    seconds[worker] += static_cast<double>(task.time.ns()) * 1e-9;
  }
  return seconds;
}

}  // namespace

TEST(RecordedTimes, are_those_of_the_run_where_all_workers_are_alike) {
  const replay::RunTrace run = run_with({});
  const RecordedTimes times(run, 0, factorization(), false);
  KnownClock clock;
  const Product product;
  const RecordedTimes::Times* const found = times.find(product.what(), Runner::worker);
  ASSERT_NE(found, nullptr);
  const double expected = clock.seconds(product.what(), Runner::worker);
  EXPECT_NEAR(found->usual, expected, 1e-9);
  EXPECT_NEAR(found->longest(), 3 * expected, 1e-8);
  EXPECT_GT(found->seconds.size(), 100U);
  EXPECT_EQ(times.find(product.what(), Runner::device), nullptr);
  EXPECT_EQ(times.worker_paces().size(), 4U);
  for (const double pace : times.worker_paces()) EXPECT_NEAR(pace, 1, 1e-3);
  for (const double pace : times.node_paces()) EXPECT_NEAR(pace, 1, 1e-3);
  EXPECT_EQ(times.kernels().front(), &kernel::gsmm);
  double shares = 0;
  for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
    shares += times.share_of(*kernel);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
}

TEST(RecordedTimes, a_shape_that_the_run_had_not_has_a_nearest_one) {
  const RecordedTimes times(run_with({}), 0, factorization(), false);
  const Product large(5 * tile);
  EXPECT_EQ(times.find(large.what(), Runner::worker), nullptr);
  const RecordedTimes::Times* const near = times.nearest(large.what(), Runner::worker);
  ASSERT_NE(near, nullptr);
  EXPECT_EQ(near->key, CaseKey::of(Product{}.what()));
  EXPECT_EQ(near, times.main_case(kernel::gsmm, Runner::worker));
  Product small;
  small.operands = {{12, tile}, {12, tile}, {tile, tile}};
  EXPECT_NE(times.nearest(small.what(), Runner::worker), near);
  EXPECT_EQ(times.nearest(large.what(), Runner::device), nullptr);
}

TEST(RecordedTimes, workers_have_their_paces) {
  const std::vector<double> paces{1, 1.4, 0.8, 1};
  const replay::RunTrace run = run_with(paces);
  const RecordedTimes times(run, 0, factorization(), false);
  // Beside each other: what is usual is in between.
  for (std::size_t w = 0; w < paces.size(); ++w) {
    EXPECT_NEAR(times.worker_paces()[w] / times.worker_paces()[0], paces[w], 1e-3 * paces[w]) << w;
  }
  EXPECT_GT(times.node_paces()[0], times.node_paces()[1]);
  // Whichever workers have run them, and some have run more of a kernel than others.
  KnownClock known;
  for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
    const RecordedTimes::Times* const main = times.main_case(*kernel, Runner::worker);
    const double usual = main->usual * times.worker_paces()[0];
    const double expected = known.seconds(main->key.what(), Runner::worker);
    EXPECT_NEAR(usual, expected, 1e-3 * expected) << kernel->name;
  }
}

/// What others have had of a worker's core is its pace, and no kernel's time; the sum stays.
TEST(RecordedTimes, a_worker_s_first_tasks_are_told_apart) {
  const std::vector<double> first{1.8, 1.3, 1.2, 1.1};
  const RecordedTimes times(run_with({}, first), 0, factorization(), false);
  ASSERT_EQ(times.first_tasks().size(), first.size());
  for (std::size_t before = 0; before < first.size(); ++before) {
    EXPECT_NEAR(times.first_tasks()[before], first[before], 0.01 * first[before]) << before;
  }
  for (const double pace : times.worker_paces()) EXPECT_NEAR(pace, 1, 2e-3);
  KnownClock known;
  const Product product;
  const double expected = known.seconds(product.what(), Runner::worker);
  EXPECT_NEAR(times.find(product.what(), Runner::worker)->usual, expected, 2e-3 * expected);
  // As if no task had been a first one.
  const RecordedTimes::Rates rates = times.rates(
      &kernel::potrf, [&](const KernelCase& what) { return known.seconds(what, Runner::worker); });
  EXPECT_NEAR(rates.as_they_were / rates.otherwise, 1, 0.01);
}

TEST(RecordedTimes, of_few_tasks_nobody_knows_which_are_the_first) {
  KnownClock clock;
  TileLayout layout;
  layout.rows = layout.columns = 2 * tile;
  layout.tile = tile;
  const SimulatedFactorization small = simulated_cholesky(2 * tile, layout, {}, 0, 0);
  SimulatedProgram program(small, clock, false);
  replay::SimulatedMachine machine;
  machine.first_tasks = {2, 2, 2, 2};
  const replay::RunTrace run =
      replay::make_run("simulated", replay::simulate(machine, program, {.traces = true}).traces);
  ASSERT_EQ(run.tasks.size(), 4U);
  const RecordedTimes times(run, 0, small, false);
  EXPECT_TRUE(times.first_tasks().empty());
  const RecordedTimes::Times* const potrf = times.main_case(kernel::potrf, Runner::worker);
  ASSERT_NE(potrf, nullptr);
  EXPECT_NEAR(potrf->usual * times.worker_paces()[0],
              2 * clock.seconds(potrf->key.what(), Runner::worker), 1e-8);
}

TEST(RecordedTimes, a_disturbed_task_is_its_workers_pace) {
  replay::RunTrace run = run_with({});
  const Product product;
  const double usual = KnownClock().seconds(product.what(), Runner::worker);
  const auto disturbed = std::ranges::find_if(
      run.tasks, [&](const replay::Task& task) { return run.kernel_of(task) == "gsmm"; });
  ASSERT_NE(disturbed, run.tasks.end());
  disturbed->time.end_ns += std::llround(1000 * usual * 1e9);
  const RecordedTimes times(run, 0, factorization(), false);
  EXPECT_NEAR(times.find(product.what(), Runner::worker)->usual, usual, 0.02 * usual);
  const auto slowest = std::ranges::max_element(times.worker_paces());
  EXPECT_GT(*slowest, 1.5);
  const std::vector<double> took = seconds_of_workers(run);
  const std::vector<double> undisturbed = seconds_of_workers(run_with({}));
  for (std::size_t w = 0; w < took.size(); ++w) {
    EXPECT_NEAR(took[w] / times.worker_paces()[w], undisturbed[w], 0.02 * undisturbed[w]) << w;
  }
}

TEST(RecordedTimes, of_another_factorization_are_refused) {
  const replay::RunTrace run = run_with({});
  try {
    const RecordedTimes times(run, 0, factorization(order - 3 * tile), false);
    FAIL() << "another program was taken for the run's";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("it cannot be replayed"), std::string::npos)
        << error.what();
  }
}

TEST(RecordedTimes, tell_what_workers_reached_and_would_have) {
  const RecordedTimes times(run_with({}), 0, factorization(), false);
  // Products of 40 x 40: 128 us for the operations, and 2; the last tiles' are smaller.
  const auto twice = [](const KernelCase& what) { return 2 * (2e-6 + 1e-9 * flops_of(what)); };
  const RecordedTimes::Rates products = times.rates(&kernel::gsmm, twice);
  EXPECT_NEAR(products.as_they_were, 1e9 * 128 / 130, 0.01e9);
  EXPECT_NEAR(products.otherwise, products.as_they_were / 2, 1e-3 * products.as_they_were);
  const RecordedTimes::Rates all = times.rates(nullptr, twice);
  EXPECT_NEAR(all.otherwise, all.as_they_were / 2, 1e-3 * all.as_they_were);
  EXPECT_LT(all.as_they_were, products.as_they_were) << "the others are smaller";
  // What is not known does not count, on either side.
  const auto of_products = [&](const KernelCase& what) {
    return what.kernel == &kernel::gsmm ? twice(what) : 0;
  };
  EXPECT_EQ(times.rates(nullptr, of_products).as_they_were, products.as_they_were);
  EXPECT_EQ(times.rates(&kernel::unmqr, twice).as_they_were, 0);
}

TEST(RecordedTimes, tell_kernels_by_their_shares) {
  const RecordedTimes times(run_with({}), 0, factorization(), false);
  const std::vector<const Kernel*> kernels = times.kernels();
  ASSERT_EQ(kernels.size(), 4);
  EXPECT_EQ(kernels.front(), &kernel::gsmm);
  EXPECT_EQ(kernels.back(), &kernel::potrf);
}

TEST(RecordedTimes, and_a_rehearsal_of_them_differ_by_chance_as_far_as_workers_do) {
  // In units of the logarithm of 1.1: a variance of 2 / 3, of a mean of three 2 / 9, of two 4 / 9.
  const std::vector<double> paces{1.1, 1, 1 / 1.1};
  // The rehearsal ran a tenth faster than the run: a ratio of it is too large by a part of that.
  EXPECT_NEAR(chance_in_ratio(1.1, 1, paces), std::pow(1.1, -4.0 / 13), 1e-9);
  EXPECT_NEAR(chance_in_ratio(1, 1.1, paces), std::pow(1.1, 4.0 / 13), 1e-9);
  // By a hundredth: all of it is.
  EXPECT_NEAR(chance_in_ratio(1.01, 1, paces), 1 / 1.01, 0.001);
  // Twice as fast: that is no chance.
  EXPECT_NEAR(chance_in_ratio(2, 1, paces), 1, 0.01);
  // Workers that are alike show none.
  EXPECT_NEAR(chance_in_ratio(1.1, 1, std::vector<double>{1, 1, 1, 1}), 1, 1e-9);
  // Nobody knows.
  EXPECT_EQ(chance_in_ratio(1.1, 1, std::vector<double>{1.2, 0.9}), 1);
  EXPECT_EQ(chance_in_ratio(0, 1, paces), 1);
}

TEST(RecordedClock, tells_the_runs_times_and_scales_those_of_other_shapes_and_crowds) {
  const auto recorded =
      std::make_shared<const RecordedTimes>(run_with({}), 0, factorization(), false);
  const auto now = std::make_shared<KnownClock>();
  const Product product;
  const double usual = now->seconds(product.what(), Runner::worker);
  int asked = 0;
  const RecordedClock::Ratio thrice = [&](const KernelCase&, const KernelCase&, Runner) {
    ++asked;
    return RecordedClock::KnownRatio{3.0, false};
  };
  RecordedClock same(recorded, now, thrice, false);
  EXPECT_NEAR(same.seconds(product.what(), Runner::worker), usual, 1e-9);
  EXPECT_EQ(asked, 0);
  const Product large(5 * tile);
  EXPECT_NEAR(same.seconds(large.what(), Runner::worker), 3 * usual, 3e-9);
  EXPECT_NE(same.source().find("1 shapes that it had not are scaled"), std::string::npos)
      << same.source();

  RecordedClock crowded(recorded, now, thrice, true);
  EXPECT_NEAR(crowded.seconds(product.what(), Runner::worker), 3 * usual, 3e-9);
  EXPECT_NE(crowded.source().find("times 3.00 to 3.00 for more or fewer beside"), std::string::npos)
      << crowded.source();

  // What was not rehearsed is slowed as what computes most, if that was.
  const RecordedClock::Ratio rehearsed = [](const KernelCase& what, const KernelCase&, Runner) {
    const bool is_product = what.kernel == &kernel::gsmm;
    return RecordedClock::KnownRatio{is_product ? 1.2 : 0.9, is_product};
  };
  RecordedClock partly(recorded, now, rehearsed, true);
  const KernelCase factor = recorded->main_case(kernel::potrf, Runner::worker)->key.what();
  const double alone = now->seconds(factor, Runner::worker);
  EXPECT_NEAR(partly.seconds(factor, Runner::worker), 1.2 * alone, 1e-3 * alone);
  EXPECT_NEAR(partly.seconds(product.what(), Runner::worker), 1.2 * usual, 1e-3 * usual);

  // Nobody knows: by operations.
  const RecordedClock::Ratio unknown = [](const KernelCase&, const KernelCase&, Runner) {
    return RecordedClock::KnownRatio{};
  };
  RecordedClock guess(recorded, now, unknown, false);
  EXPECT_NEAR(guess.seconds(large.what(), Runner::worker),
              usual * flops_of(large.what()) / flops_of(product.what()), 1e-9);
}

}  // namespace heddle
