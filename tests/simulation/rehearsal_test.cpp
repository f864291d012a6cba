#include "apps/simulation/rehearsal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "apps/simulation/rehearsal_plan.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "kernels/cholesky.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/qr.hpp"

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

RehearsalCast cast_of(const SimulatedFactorization& what, const Kernel& kernel, int processes,
                      int workers) {
  RehearsalCast cast;
  for (int p = 0; p < processes; ++p) {
    cast.plans.push_back(plan_rehearsal(what, kernel, NodeId{p}, {}, unlimited));
    cast.processes.push_back({workers, {}});
  }
  return cast;
}

/// Programs with tasks of a kernel that other nodes' tiles feed.
struct Example {
  SimulatedFactorization what;
  const Kernel* kernel;
  int nodes;
};

std::vector<Example> examples() {
  std::vector<Example> all;
  all.push_back({some_cholesky(640, 40, grid(2, 2)), &kernel::gsmm, 4});
  all.push_back({some_cholesky(650, 40, grid(1, 2)), &kernel::gsmm, 2});
  all.push_back({some_qr(640, 40, grid(4, 1)), &kernel::tsmqr, 4});
  all.push_back({some_qr(650, 40, grid(1, 2)), &kernel::unmqr, 2});
  return all;
}

}  // namespace

TEST(RehearsalPlan, has_all_tasks_of_the_kernel_on_all_nodes) {
  const std::int64_t tiles = 16;
  std::size_t count = 0;
  for (int p = 0; p < 4; ++p) {
    count +=
        plan_rehearsal(some_cholesky(640, 40, grid(2, 2)), kernel::gsmm, NodeId{p}, {}, unlimited)
            .tasks.size();
  }
  EXPECT_EQ(count, tiles * (tiles - 1) * (tiles - 2) / 6);
}

TEST(RehearsalPlan, of_one_node_copies_nothing) {
  const RehearsalPlan plan =
      plan_rehearsal(some_cholesky(640, 40, grid(1, 1)), kernel::gsmm, NodeId{0}, {}, unlimited);
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.elements, 16 * 15 / 2 * 40 * 40) << "all tiles below the diagonal";
}

TEST(RehearsalPlan, tasks_are_in_the_order_that_is_given) {
  const SimulatedFactorization what = some_cholesky(640, 40, grid(1, 1));
  const RehearsalPlan plan = plan_rehearsal(what, kernel::gsmm, NodeId{0}, {}, unlimited);
  // Items of one node's walk are its tasks, from 1 on: backwards, with more than there are.
  BeginOrder backwards;
  for (std::int64_t item = 5000; item > 0; --item) backwards.push_back(item);
  const RehearsalPlan turned = plan_rehearsal(what, kernel::gsmm, NodeId{0}, backwards, unlimited);
  ASSERT_EQ(turned.tasks.size(), plan.tasks.size());
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
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
      const RehearsalPlan plan =
          plan_rehearsal(example.what, *example.kernel, NodeId{p}, {}, unlimited);
      ASSERT_FALSE(plan.tasks.empty()) << example.kernel->name << p;
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
      EXPECT_GT(there, 0) << example.kernel->name << " of several nodes reads others' tiles";
    }
  }
}

TEST(RehearsalPlan, tasks_wait_for_those_before_that_update_what_they_use) {
  for (const std::int64_t at_most : {unlimited, std::int64_t{5 * 40 * 40}}) {
    const RehearsalPlan plan =
        plan_rehearsal(some_cholesky(640, 40, grid(1, 1)), kernel::gsmm, NodeId{0}, {}, at_most);
    for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
      const std::vector<Range> operands = operands_of(plan, plan.tasks[t]);
      for (std::size_t before = 0; before < t; ++before) {
        const std::vector<Range> others = operands_of(plan, plan.tasks[before]);
        const auto is_updated = [&](const Range& one) { return overlap(one, others[0]); };
        const auto updates = [&](const Range& one) { return overlap(one, operands[0]); };
        if (std::ranges::any_of(operands, is_updated) || std::ranges::any_of(others, updates)) {
          EXPECT_GE(plan.tasks[t].behind, static_cast<std::int32_t>(before)) << t;
        }
      }
      EXPECT_LT(plan.tasks[t].behind, static_cast<std::int32_t>(t));
    }
  }
}

TEST(RehearsalPlan, tiles_of_a_large_matrix_lie_upon_each_other) {
  const std::int64_t at_most = 5 * 40 * 40;
  const RehearsalPlan plan =
      plan_rehearsal(some_cholesky(640, 40, grid(1, 1)), kernel::gsmm, NodeId{0}, {}, at_most);
  EXPECT_LE(plan.elements, at_most);
  for (const RehearsalPlan::Task& task : plan.tasks) {
    for (const Range& operand : operands_of(plan, task)) EXPECT_LE(operand.second, plan.elements);
  }
}

TEST(Rehearsal, of_several_processes_ends) {
  load_blas({});
  for (const bool have_cores : {false, true}) {
    for (const auto& [what, kernel, nodes] : examples()) {
      RehearsalCast cast = cast_of(what, *kernel, nodes, 3);
      cast.copies_have_cores = have_cores;
      Rehearsal rehearsal(std::move(cast));
      for (int turn = 0; turn < 20; ++turn) {
        std::int64_t count = 0;
        for (const RehearsedTime& one : rehearsal.turn(0.002)) count += one.count;
        EXPECT_GT(count, 0) << kernel->name << turn;
      }
    }
  }
}

TEST(Rehearsal, may_have_a_process_without_tasks) {
  load_blas({});
  RehearsalCast cast = cast_of(some_qr(160, 40, grid(4, 1)), kernel::unmqr, 4, 1);
  ASSERT_TRUE(cast.plans.back().tasks.empty());
  Rehearsal rehearsal(std::move(cast));
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_FALSE(rehearsal.turn(0.001).empty());
    EXPECT_GT(rehearsal.turn(0.001).front().count, 0);
  }
}

/// Wide limits: a host may lose its cores for longer than a turn.
TEST(RehearsedRatios, tell_kinds_apart_and_what_is_not_there) {
  load_blas({});
  const SimulatedFactorization what = some_cholesky(640, 80, grid(1, 1));
  const auto cast = [&] { return cast_of(what, kernel::gsmm, 1, 1); };
  const RehearsedRatios same(cast(), cast());
  const CaseKey kind = cast().plans.front().kinds.front();
  EXPECT_GT(same.ratio(kind.as_case(), kind.as_case()), 0.1);
  EXPECT_LT(same.ratio(kind.as_case(), kind.as_case()), 10);
  const SimulatedFactorization smaller = some_cholesky(640, 40, grid(1, 1));
  RehearsalCast of_smaller = cast_of(smaller, kernel::gsmm, 1, 1);
  const CaseKey small_kind = of_smaller.plans.front().kinds.front();
  const RehearsedRatios ratios(std::move(of_smaller), cast());
  const double ratio = ratios.ratio(small_kind.as_case(), kind.as_case());
  EXPECT_LT(ratio, 1) << "an eighth of the operations";
  EXPECT_GT(ratio, 0);
  EXPECT_EQ(ratios.ratio(kind.as_case(), kind.as_case()), 0) << "there is no such task now";
}

}  // namespace heddle
