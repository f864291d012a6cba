#include "node-runtime/fine/fine_graph.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/fine/cases.hpp"

namespace heddle::test {
namespace {

std::int64_t nothing(const KernelArguments& /*arguments*/) {
  return 0;
}
constexpr Kernel step{.name = "step", .host = nothing};

TileArea rows(std::int64_t from, std::int64_t to) {
  return {0, from, 0, to - from, 4};
}

/// The numbers of the sequence's tasks in the graph, which are told apart by their info_base.
std::vector<std::int32_t> numbers_of(const FineGraph& graph) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(graph.size()));
  for (std::int32_t n = 0; n < graph.size(); ++n) {
    numbers[static_cast<std::size_t>(graph.task(n).info_base)] = n;
  }
  return numbers;
}

bool waits_directly(const FineGraph& graph, std::int32_t first, std::int32_t second) {
  return std::ranges::count(graph.successors(first), second) > 0;
}

TEST(FineGraph, TasksWaitForThoseThatWriteWhatTheyTouchAndForReadersOfWhatTheyWrite) {
  FineTasks tasks;
  tasks.add(step, {}, {writes(rows(0, 4))}, 0);
  tasks.add(step, {}, {writes(rows(4, 8))}, 1);
  tasks.add(step, {}, {writes(rows(8, 9)), reads(rows(2, 6))}, 2);   // of both
  tasks.add(step, {}, {writes(rows(9, 10)), reads(rows(0, 4))}, 3);  // beside 2
  tasks.add(step, {}, {writes(rows(3, 5))}, 4);                      // after its readers
  const FineGraph graph(tasks);
  const auto n = numbers_of(graph);
  EXPECT_TRUE(waits_directly(graph, n[0], n[2]));
  EXPECT_TRUE(waits_directly(graph, n[1], n[2]));
  EXPECT_TRUE(waits_directly(graph, n[0], n[3]));
  EXPECT_FALSE(waits_directly(graph, n[1], n[3]));
  EXPECT_FALSE(waits_directly(graph, n[2], n[3]));
  EXPECT_TRUE(waits_directly(graph, n[2], n[4]));
  EXPECT_TRUE(waits_directly(graph, n[3], n[4]));
  EXPECT_EQ(graph.missing()[static_cast<std::size_t>(n[0])], 0);
  EXPECT_EQ(graph.missing()[static_cast<std::size_t>(n[2])], 2);
}

TEST(FineGraph, AWriterOfAllStandsForThoseBeforeIt) {
  FineTasks tasks;
  for (int i = 0; i < 10; ++i) tasks.add(step, {}, {writes(rows(i, i + 1))}, i);
  tasks.add(step, {}, {writes(rows(0, 10))}, 10);
  tasks.add(step, {}, {writes(rows(12, 13)), reads(rows(0, 10))}, 11);
  const FineGraph graph(tasks);
  const auto n = numbers_of(graph);
  EXPECT_EQ(graph.missing()[static_cast<std::size_t>(n[10])], 10);
  EXPECT_EQ(graph.missing()[static_cast<std::size_t>(n[11])], 1);
}

/// Independently of how the graph is made: whoever meets an earlier task's area, and one of them
/// writes, comes behind it on some way.
TEST(FineGraph, OrdersAllThatMeet) {
  for (const FineCase& c : fine_cases(40)) {
    SCOPED_TRACE(c.name);
    const FineTasks form = fine_form(c.what(), 9);
    FineTasks numbered;
    for (const FineTask& task : form.tasks()) {
      numbered.add(*task.kernel, task.parameters, task.accesses(),
                   static_cast<std::int64_t>(numbered.tasks().size()));
    }
    const FineGraph graph(numbered);
    EXPECT_TRUE(graph.is_valid());
    const auto n = numbers_of(graph);
    const std::size_t size = n.size();
    // behind[a][b]: a is reached from b. Numbers grow along edges.
    std::vector<std::vector<bool>> behind(size, std::vector<bool>(size, false));
    for (std::int32_t a = 0; a < graph.size(); ++a) {
      for (const std::int32_t b : graph.successors(a)) {
        ASSERT_GT(b, a);
        for (std::size_t k = 0; k < size; ++k) {
          if (behind[static_cast<std::size_t>(a)][k]) behind[static_cast<std::size_t>(b)][k] = true;
        }
        behind[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = true;
      }
    }
    const auto tasks = numbered.tasks();
    for (std::size_t later = 0; later < size; ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        bool meet = false;
        for (const FineAccess& x : tasks[earlier].accesses()) {
          for (const FineAccess& y : tasks[later].accesses()) {
            meet |= (x.writes || y.writes) && !x.area.is_empty() && !y.area.is_empty() &&
                    x.area.meets(y.area);
          }
        }
        ASSERT_TRUE(
            !meet ||
            behind[static_cast<std::size_t>(n[later])][static_cast<std::size_t>(n[earlier])])
            << earlier << " and " << later;
      }
    }
  }
}

TEST(FineGraph, TellsHowManyWorkersItKeepsBusy) {
  const auto width = [](const Kernel& kernel, const KernelParameters& parameters,
                        const std::vector<OperandShape>& operands) {
    return FineGraph(fine_form({&kernel, parameters, operands}, 10)).width();
  };
  const KernelParameters square(kernel::PieceParameters{});
  const OperandShape tile{50, 50};
  EXPECT_EQ(width(kernel::gsmm, KernelParameters(kernel::UpdateParameters{0}), {tile, tile, tile}),
            25);
  // Of a row's five solves and four products in turn, 13 cubes of a part's order, and 125 in all.
  EXPECT_EQ(width(kernel::trsm, square, {tile, tile}), 10);
  EXPECT_EQ(width(kernel::potrf, square, {tile}), 4) << "41.7 cubes, 11.7 of them in turn";
  EXPECT_EQ(width(kernel::potrf, square, {{10, 10}}), 1);
  const FineTasks none;
  EXPECT_EQ(FineGraph(none).width(), 1);
}

TEST(FineGraph, CountsOperationsAsTheKernelDoes) {
  const std::vector<OperandShape> tile{{960, 960}};
  const KernelCase potrf{&kernel::potrf, KernelParameters(kernel::PieceParameters{}), tile};
  const FineGraph graph(fine_form(potrf, 192));
  EXPECT_NEAR(graph.flops(), flops_of(potrf), 0.01 * flops_of(potrf));
  // The first diagonal block, down the subdiagonal a solve and a product each, the last block.
  const double b3 = 192.0 * 192 * 192;
  EXPECT_NEAR(graph.longest_way(), b3 / 3 + 3 * (b3 + 2 * b3) + (b3 + b3) + b3 / 3, 0.01 * b3);
}

}  // namespace
}  // namespace heddle::test
