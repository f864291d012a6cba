#include "apps/simulation/rehearsal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/simulation/rehearsal_plan.hpp"
#include "apps/simulation/rehearsed_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulator.hpp"

namespace heddle {
namespace {

constexpr std::int64_t unlimited = std::int64_t{1} << 40;

Distribution grid(std::int32_t rows, std::int32_t columns) {
  Distribution distribution;
  distribution.grid_rows = rows;
  distribution.grid_columns = columns;
  return distribution;
}

SimulatedFactorization some_cholesky(std::int64_t n, std::int64_t tile_size,
                                     const Distribution& grid) {
  TileLayout layout;
  layout.rows = layout.columns = n;
  layout.tile = tile_size;
  return simulated_cholesky(n, layout, grid, 0, 0);
}

SimulatedFactorization some_qr(std::int64_t n, std::int64_t tile_size, const Distribution& grid) {
  QrLayout layout;
  layout.tile = tile_size;
  layout.virtual_tiles = 2;
  layout.inner = 8;
  return simulated_qr(n, n, layout, grid);
}

/// Elements [from, to).
using Range = std::pair<std::int64_t, std::int64_t>;

/// Where a task's operands are.
std::vector<Range> operands_of(const RehearsalPlan& plan, const RehearsalPlan::Task& task) {
  const CaseKey& kind = plan.kinds[static_cast<std::size_t>(task.kind)];
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < kind.operand_count; ++i) {
    const OperandShape& shape = kind.operands.at(i);
    ranges.emplace_back(task.at.at(i), task.at.at(i) + shape.rows * shape.columns);
  }
  return ranges;
}

bool overlap(const Range& one, const Range& other) {
  return one.first < other.second && other.first < one.second;
}

RehearsalCast cast_of(const SimulatedFactorization& what, int processes, int workers) {
  RehearsalCast cast;
  for (int p = 0; p < processes; ++p) {
    cast.plans.push_back(plan_rehearsal(what, NodeId{p}, {}, unlimited));
    cast.processes.push_back({workers, {}});
  }
  return cast;
}

/// Programs with tasks that other nodes' tiles feed.
struct Example {
  SimulatedFactorization what;
  int nodes;
};

std::vector<Example> examples() {
  std::vector<Example> all;
  all.push_back({some_cholesky(640, 40, grid(2, 2)), 4});
  all.push_back({some_cholesky(650, 40, grid(1, 2)), 2});
  all.push_back({some_qr(640, 40, grid(4, 1)), 4});
  all.push_back({some_qr(650, 40, grid(1, 2)), 2});
  return all;
}

/// How many tasks of each kernel a plan has.
std::map<std::string_view, std::int64_t> counts_of(const RehearsalPlan& plan) {
  std::map<std::string_view, std::int64_t> counts;
  for (const RehearsalPlan::Task& task : plan.tasks) {
    ++counts[plan.kinds[static_cast<std::size_t>(task.kind)].kernel->name];
  }
  return counts;
}

/// Tasks that counted.
std::int64_t count_of(const RehearsedTurn& turn) {
  std::int64_t count = 0;
  for (const std::vector<RehearsedTime>& worker : turn) {
    for (const RehearsedTime& one : worker) count += one.count;
  }
  return count;
}

class Guessed final : public KernelClock {
 public:
  explicit Guessed(double seconds) : seconds_(seconds) {}
  [[nodiscard]] double seconds(const KernelCase& /*what*/, Runner /*runner*/) override {
    return seconds_;
  }
  [[nodiscard]] std::string source() const override { return "guessed"; }

 private:
  double seconds_;
};

}  // namespace

TEST(RehearsalPlan, has_all_tasks_on_all_nodes) {
  const std::int64_t tiles = 16;
  std::map<std::string_view, std::int64_t> counts;
  for (int p = 0; p < 4; ++p) {
    const RehearsalPlan plan =
        plan_rehearsal(some_cholesky(640, 40, grid(2, 2)), NodeId{p}, {}, unlimited);
    for (const auto& [kernel, count] : counts_of(plan)) counts[kernel] += count;
  }
  const std::map<std::string_view, std::int64_t> all{
      {"potrf", tiles},
      {"trsm", tiles * (tiles - 1) / 2},
      {"syrk", tiles * (tiles - 1) / 2},
      {"gsmm", tiles * (tiles - 1) * (tiles - 2) / 6}};
  EXPECT_EQ(counts, all);
}

TEST(RehearsalPlan, of_one_node_copies_nothing) {
  const RehearsalPlan plan =
      plan_rehearsal(some_cholesky(640, 40, grid(1, 1)), NodeId{0}, {}, unlimited);
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.elements, 16 * 17 / 2 * 40 * 40) << "all tiles of the lower triangle";
}

TEST(RehearsalPlan, tasks_are_in_the_order_that_is_given) {
  const SimulatedFactorization what = some_cholesky(640, 40, grid(1, 1));
  const RehearsalPlan plan = plan_rehearsal(what, NodeId{0}, {}, unlimited);
  // Items of one node's walk are its tasks, from 1 on: backwards, with more than there are.
  BeginOrder backwards;
  for (std::int64_t item = 5000; item > 0; --item) {
    backwards.push_back({item, static_cast<float>(item)});
  }
  const RehearsalPlan turned = plan_rehearsal(what, NodeId{0}, backwards, unlimited);
  ASSERT_EQ(turned.tasks.size(), plan.tasks.size());
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
    EXPECT_EQ(plan.tasks[t].idle_s, 0);
    EXPECT_EQ(turned.tasks[plan.tasks.size() - 1 - t].idle_s, static_cast<float>(t + 1));
    EXPECT_EQ(operands_of(turned, turned.tasks[plan.tasks.size() - 1 - t]),
              operands_of(plan, plan.tasks[t]))
        << t;
  }
}

/// A copy's block is written when no task before needs its former content, by whoever waits for
/// tasks that need no later copies. No task's operands lie upon each other.
TEST(RehearsalPlan, copies_wait_for_nobody_who_waits_for_them) {
  for (const Example& example : examples()) {
    for (int p = 0; p < example.nodes; ++p) {
      const RehearsalPlan plan = plan_rehearsal(example.what, NodeId{p}, {}, unlimited);
      ASSERT_FALSE(plan.tasks.empty()) << p;
      std::int32_t there = 0;
      std::map<std::int64_t, std::int32_t> last_use;  // by where a copy is
      for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
        const RehearsalPlan::Task& task = plan.tasks[t];
        EXPECT_GE(task.copies, there) << "they come in order";
        for (; there < task.copies; ++there) {
          const RehearsalPlan::Copy& copy = plan.copies[static_cast<std::size_t>(there)];
          EXPECT_LT(copy.behind, static_cast<std::int32_t>(t)) << "that task needs this copy";
          const auto used = last_use.find(copy.at);
          EXPECT_EQ(copy.behind, used == last_use.end() ? -1 : used->second);
          last_use[copy.at] = copy.behind;
        }
        const std::vector<Range> operands = operands_of(plan, task);
        for (std::size_t i = 0; i < operands.size(); ++i) {
          EXPECT_LE(operands[i].second, plan.elements);
          for (std::size_t j = 0; j < i; ++j) {
            EXPECT_TRUE(operands[i] == operands[j] || !overlap(operands[i], operands[j]));
          }
          const auto copied = last_use.find(operands[i].first);
          if (copied != last_use.end()) copied->second = static_cast<std::int32_t>(t);
        }
      }
      EXPECT_EQ(there, std::ssize(plan.copies));
      EXPECT_GT(there, 0) << "tasks of several nodes read others' tiles";
    }
  }
}

/// Two tasks that use the same memory, and one of them changes it, run one after the other: the
/// later one waits for the earlier one, or for one that does.
TEST(RehearsalPlan, tasks_wait_for_those_before_that_change_what_they_use) {
  const std::vector<SimulatedFactorization> programs{some_cholesky(400, 40, grid(1, 1)),
                                                     some_qr(400, 40, grid(1, 1))};
  for (const SimulatedFactorization& what : programs) {
    for (const std::int64_t at_most : {unlimited, std::int64_t{5 * 40 * 40}}) {
      const RehearsalPlan plan = plan_rehearsal(what, NodeId{0}, {}, at_most);
      std::vector<std::set<std::int32_t>> ends_before(plan.tasks.size());
      for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
        const RehearsalPlan::Task& task = plan.tasks[t];
        for (std::int32_t i = task.before_first; i < task.before_last; ++i) {
          const std::int32_t before = plan.before[static_cast<std::size_t>(i)];
          ASSERT_LT(before, static_cast<std::int32_t>(t));
          ends_before[t].insert(before);
          const auto& further = ends_before[static_cast<std::size_t>(before)];
          ends_before[t].insert(further.begin(), further.end());
        }
        const std::vector<Range> operands = operands_of(plan, task);
        for (std::size_t before = 0; before < t; ++before) {
          const std::vector<Range> others = operands_of(plan, plan.tasks[before]);
          // The first operand is always changed.
          const auto is_changed = [&](const Range& one) { return overlap(one, others[0]); };
          const auto changes = [&](const Range& one) { return overlap(one, operands[0]); };
          if (std::ranges::any_of(operands, is_changed) || std::ranges::any_of(others, changes)) {
            EXPECT_TRUE(ends_before[t].contains(static_cast<std::int32_t>(before)))
                << t << " does not wait for " << before << " of " << what.flops;
          }
        }
      }
    }
  }
}

TEST(RehearsalPlan, of_a_large_matrix_has_updates_whose_tiles_lie_upon_each_other) {
  const std::int64_t at_most = 5 * 40 * 40;
  const RehearsalPlan plan =
      plan_rehearsal(some_cholesky(640, 40, grid(1, 1)), NodeId{0}, {}, at_most);
  EXPECT_LE(plan.elements, at_most);
  for (const RehearsalPlan::Task& task : plan.tasks) {
    for (const Range& operand : operands_of(plan, task)) EXPECT_LE(operand.second, plan.elements);
  }
  const auto counts = counts_of(plan);
  EXPECT_EQ(counts.size(), 2) << "of others the numbers count";
  EXPECT_TRUE(counts.contains("gsmm") && counts.contains("syrk"));
}

TEST(RehearsalPlan, has_no_task_that_workers_divide) {
  SimulatedFactorization what = some_cholesky(640, 80, grid(1, 1));
  what.spec.fine = 40;
  EXPECT_TRUE(plan_rehearsal(what, NodeId{0}, {}, unlimited).tasks.empty());
}

TEST(RehearsalPlan, tasks_divide_by_diagonals_of_ones) {
  const SimulatedFactorization what = some_cholesky(640, 40, grid(2, 2));
  for (const int p : {1, 2}) {  // which have no diagonal tiles of their own
    const RehearsalPlan plan = plan_rehearsal(what, NodeId{p}, {}, unlimited);
    std::map<std::int64_t, const RehearsalPlan::Copy*> copies;  // by where they are
    std::int32_t there = 0;
    int divided = 0;
    for (const RehearsalPlan::Task& task : plan.tasks) {
      for (; there < task.copies; ++there) {
        const RehearsalPlan::Copy& copy = plan.copies[static_cast<std::size_t>(there)];
        copies[copy.at] = &copy;
      }
      const CaseKey& kind = plan.kinds[static_cast<std::size_t>(task.kind)];
      if (kind.kernel != &kernel::trsm) continue;
      ASSERT_TRUE(copies.contains(task.at[1]));
      ++divided;
      const RehearsalPlan::Ones& ones = copies.at(task.at[1])->ones;
      EXPECT_EQ(ones.first, 0);
      EXPECT_EQ(ones.step, 41);
      EXPECT_EQ(ones.count, 40);
    }
    EXPECT_GT(divided, 0) << p;
  }
}

TEST(RehearsalPlan, a_piece_has_its_ones_where_it_begins_in_its_tile) {
  CaseKey kind;
  kind.kernel = &kernel::potrf;
  kind.operands[0] = {100, 20};
  kind.operand_count = 1;
  const KernelParameters parameters{kernel::PieceParameters{40}};
  kind = CaseKey::of({kind.kernel, parameters, std::span(kind.operands).first(1)});
  const RehearsalPlan::Ones ones = ones_of(kind, 0);
  EXPECT_EQ(ones.first, 40);
  EXPECT_EQ(ones.step, 101);
  EXPECT_EQ(ones.count, 20);
  kind.kernel = &kernel::gsmm;
  EXPECT_EQ(ones_of(kind, 0).count, 0);
}

TEST(Rehearsal, of_several_processes_ends) {
  load_blas({});
  for (const bool have_cores : {false, true}) {
    for (const auto& [what, nodes] : examples()) {
      RehearsalCast cast = cast_of(what, nodes, 3);
      cast.copies_have_cores = have_cores;
      Rehearsal rehearsal(std::move(cast));
      for (int turn = 0; turn < 20; ++turn) {
        const RehearsedTurn taken = rehearsal.turn(0.002);
        EXPECT_GT(count_of(taken), 0) << nodes << turn;
        EXPECT_EQ(std::ssize(taken), 3 * nodes) << "workers";
      }
    }
  }
}

TEST(Rehearsal, workers_are_idle_as_the_plan_says) {
  load_blas({});
  for (const float idle_s : {0.0F, 0.01F}) {
    RehearsalCast cast = cast_of(some_cholesky(640, 40, grid(1, 1)), 1, 2);
    for (RehearsalPlan::Task& task : cast.plans.front().tasks) task.idle_s = idle_s;
    Rehearsal rehearsal(std::move(cast));
    EXPECT_NEAR(rehearsal.pass().idle_s, rehearsal.pass().tasks * idle_s, 1e-5);
    const std::int64_t count = count_of(rehearsal.turn(0.1));
    EXPECT_GT(count, 0);
    // Of two workers, each for 0.06 s. How many there are without idleness is the machine's affair.
    if (idle_s > 0) {
      EXPECT_LE(count, 14);
    }
  }
}

TEST(BeginOrders, tell_for_how_long_workers_have_been_idle) {
  replay::SimulatedMachine machine;
  machine.nodes = 2;
  machine.cpu_workers = 3;
  const SimulatedFactorization what = some_cholesky(640, 40, grid(2, 1));
  const auto run_of = [&](double seconds) {
    Guessed clock(seconds);
    SimulatedProgram program(what, clock, false);
    return replay::make_run("simulated",
                            replay::simulate(machine, program, {.traces = true}).traces);
  };
  const replay::RunTrace run = run_of(7e-6);
  const std::vector<BeginOrder> orders = begin_orders(run, 0);
  ASSERT_EQ(orders.size(), 2U);
  const std::int64_t begin_ns = std::ranges::min(run.tasks, {}, [](const replay::Task& task) {
                                  return task.time.start_ns;
                                }).time.start_ns;
  std::vector<std::int64_t> ends(run.threads.size(), begin_ns);
  double expected = 0;  // until each worker's last task, less what its tasks took
  for (const replay::Task& task : run.tasks) {
    std::int64_t& end = ends[static_cast<std::size_t>(task.thread.value())];
    expected -= static_cast<double>(task.time.ns()) * 1e-9;
    end = std::max(end, task.time.end_ns);
  }
  for (const std::int64_t end : ends) expected += static_cast<double>(end - begin_ns) * 1e-9;
  double idle = 0;
  for (const BeginOrder& order : orders) {
    for (const Beginning& task : order) idle += task.idle_s;
  }
  EXPECT_GT(idle, 0);
  EXPECT_NEAR(idle, expected, 1e-4 * expected);
  float most = 0;
  for (const BeginOrder& order : begin_orders(run_of(7), 0)) {
    for (const Beginning& task : order) most = std::max(most, task.idle_s);
  }
  EXPECT_EQ(most, static_cast<float>(rehearsed_idle_max_s));
}

TEST(RehearsalPlan, of_tasks_in_parts_has_those_that_are_whole_in_their_order) {
  // Parts of the same task begin one after the other.
  const SimulatedFactorization what = some_cholesky(640, 40, grid(1, 1));
  const RehearsalPlan plan = plan_rehearsal(what, NodeId{0}, {}, unlimited);
  BeginOrder twice;
  for (std::int64_t item = 1; item <= std::ssize(plan.tasks); ++item) {
    for (int part = 0; part < 2; ++part) twice.push_back({item, static_cast<float>(item)});
  }
  const RehearsalPlan planned = plan_rehearsal(what, NodeId{0}, twice, unlimited);
  ASSERT_EQ(planned.tasks.size(), plan.tasks.size());
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
    EXPECT_EQ(planned.tasks[t].idle_s, static_cast<float>(t + 1));
  }
}

TEST(Rehearsal, computes_with_numbers_that_stay_small) {
  load_blas({});
  for (const auto& [what, nodes] : examples()) {
    Rehearsal rehearsal(cast_of(what, nodes, 1));
    for (int turn = 0; turn < 5; ++turn) static_cast<void>(rehearsal.turn(0.05));
    EXPECT_GE(rehearsal.largest_number(), 0.9) << "diagonals are ones, and reflectors have some";
    EXPECT_LT(rehearsal.largest_number(), 100) << nodes;
  }
}

TEST(Rehearsal, may_have_a_process_without_tasks) {
  load_blas({});
  RehearsalCast cast = cast_of(some_qr(80, 40, grid(4, 1)), 4, 1);
  ASSERT_TRUE(cast.plans.back().tasks.empty());
  Rehearsal rehearsal(std::move(cast));
  for (int turn = 0; turn < 3; ++turn) {
    const RehearsedTurn taken = rehearsal.turn(0.001);
    ASSERT_EQ(taken.size(), 4U);
    EXPECT_GT(count_of({taken.front()}), 0);
    EXPECT_EQ(count_of({taken.back()}), 0);
  }
}

/// Wide limits: a host may lose its cores for longer than a turn.
TEST(RehearsedRatios, tell_kinds_apart_and_what_is_not_there) {
  load_blas({});
  const SimulatedFactorization what = some_cholesky(640, 80, grid(1, 1));
  const auto cast = [&] { return cast_of(what, 1, 1); };
  const std::vector<OperandShape> tiles(3, OperandShape{80, 80});
  const KernelCase product{&kernel::gsmm, KernelParameters(kernel::UpdateParameters{}), tiles};
  const RehearsedRatios same(cast(), cast());
  EXPECT_GT(same.ratio(product, product), 0.1);
  EXPECT_LT(same.ratio(product, product), 10);
  EXPECT_GT(same.then().seconds(product), 80.0 * 80 * 80 * 2 / 1e12) << "no core is as fast";
  const RehearsedRatios ratios(cast_of(some_cholesky(640, 40, grid(1, 1)), 1, 1), cast());
  const std::vector<OperandShape> small_tiles(3, OperandShape{40, 40});
  const KernelCase small{&kernel::gsmm, product.parameters, small_tiles};
  EXPECT_LT(ratios.ratio(small, product), 1) << "an eighth of the operations";
  EXPECT_GT(ratios.ratio(small, product), 0);
  EXPECT_EQ(ratios.now().seconds(product), 0) << "none is like it";
  // By its operations, as one that is.
  const std::vector<OperandShape> lower_tiles{{30, 40}, {30, 40}, {40, 40}};
  const KernelCase lower{&kernel::gsmm, product.parameters, lower_tiles};
  EXPECT_NEAR(ratios.now().seconds(lower), 0.75 * ratios.now().seconds(small),
              0.01 * ratios.now().seconds(small));
  const KernelCase reflected{&kernel::geqrt, product.parameters, tiles};
  EXPECT_EQ(same.ratio(reflected, reflected), 0) << "of no such kernel";
}

TEST(RehearsedClock, asks_another_one_for_what_was_not_rehearsed) {
  load_blas({});
  const auto times =
      std::make_shared<const RehearsedTimes>(cast_of(some_cholesky(320, 40, grid(1, 1)), 1, 1));
  const std::vector<OperandShape> tiles(3, OperandShape{40, 40});
  const KernelCase product{&kernel::gsmm, KernelParameters(kernel::UpdateParameters{}), tiles};
  const KernelCase reflected{&kernel::geqrt, product.parameters, tiles};
  RehearsedClock clock(times, std::make_shared<Guessed>(7));
  EXPECT_EQ(clock.seconds(product, Runner::worker), times->seconds(product));
  EXPECT_GT(times->seconds(product), 0);
  EXPECT_EQ(clock.source(), "as rehearsed on this machine, all workers at work");
  EXPECT_EQ(clock.seconds(reflected, Runner::worker), 7);
  EXPECT_EQ(clock.seconds(product, Runner::device), 7) << "workers rehearse";
  EXPECT_EQ(clock.source(), "as rehearsed on this machine, all workers at work; others guessed");
  RehearsedClock ignorant(std::make_shared<const RehearsedTimes>(), std::make_shared<Guessed>(7));
  EXPECT_EQ(ignorant.seconds(product, Runner::worker), 7);
  EXPECT_EQ(ignorant.source(), "guessed");
}

}  // namespace heddle
