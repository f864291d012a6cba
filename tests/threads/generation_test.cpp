#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>

#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/program.hpp"
#include "tests/threads/small_matrices.hpp"

namespace heddle {
namespace {

std::atomic<std::int64_t> inserted{0};
std::atomic<std::int64_t> executed{0};
std::atomic<std::int64_t> most_ahead{0};  ///< while tasks were executed

std::int64_t take_a_while(const KernelArguments& /*arguments*/) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  while (std::chrono::steady_clock::now() < until) {
  }
  most_ahead = std::max(most_ahead.load(), inserted.load() - executed.fetch_add(1));
  return 0;
}
constexpr Kernel slow{.name = "slow", .host = take_a_while};

constexpr std::int64_t slow_tiles = 64;
constexpr std::int64_t slow_tasks = 8000;

Program slow_program(TaskStream& tasks, Matrix<double> matrix) {
  inserted = executed = most_ahead = 0;
  for (std::int64_t t = 0; t < slow_tasks; ++t) {
    inserted.fetch_add(1);
    co_await tasks.insert(
        slow, {read_write(matrix(TileRow{static_cast<int>(t % slow_tiles)}, TileColumn{0}))});
  }
}

}  // namespace

/// In one go it would have the lock all that time, and workers wait for it with every task. Each
/// time: where others use the cores, a worker may be away for as long as all of it takes.
TEST(Generation, is_not_further_ahead_than_workers_need) {
  Node node(testing::configuration("cpu_workers: 1, window: 100000", "tile: 1"));
  if (node.facts().oversubscribed) GTEST_SKIP() << "it has no core beside the worker's";
  MatrixSpec matrix(slow_tiles, 1);
  Matrix<double> m = node.matrix<double>(matrix);
  m.fill([](std::int64_t, std::int64_t) { return 0.0; });
  std::int64_t least_ahead = slow_tasks;
  for (int run = 0; run < 10 && least_ahead >= slow_tasks / 2; ++run) {
    JobSpec spec;
    spec.name = "slow tasks";
    spec.matrices = {m.id()};
    spec.keep_alive = {m.state()};
    spec.program = [m](TaskStream& tasks) { return slow_program(tasks, m); };
    EXPECT_EQ(node.submit(std::move(spec)).wait().status, JobResult::Status::done);
    EXPECT_EQ(executed, slow_tasks);
    least_ahead = std::min(least_ahead, most_ahead.load());
  }
  EXPECT_LT(least_ahead, slow_tasks / 2);
}

}  // namespace heddle
