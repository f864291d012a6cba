#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "kernels/fine/fine_tasks.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/recorder.hpp"
#include "node-runtime/trace/visit.hpp"
#include "tests/threads/small_matrices.hpp"
#include "tests/threads/some_placement.hpp"

/// Tasks that CPU workers divide into fine ones (000 section 3.2), in whole runs.
namespace heddle {
namespace {

using testing::configuration;
using testing::dense;
using testing::dominant;

std::string divided(std::int64_t tile, std::int64_t small) {
  return "tile: " + std::to_string(tile) + ", small: " + std::to_string(small) + ", hierarchy: on";
}

std::vector<double> factor(const std::string& runtime, const std::string& layout, std::int64_t n) {
  Node node(configuration(runtime, layout));
  Matrix<double> a = dominant(node, n);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
  return dense(a);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Hierarchy, GivesTheFactorForAnySmallSize) {
  const std::int64_t n = 203;
  const std::vector<double> plain = factor("cpu_workers: 2", "tile: 64", n);
  for (const std::int64_t small : {1, 7, 16, 20, 63, 64}) {
    SCOPED_TRACE(small);
    EXPECT_LT(largest_difference(factor("cpu_workers: 3", divided(64, small), n), plain), 1e-11);
  }
}

TEST(Hierarchy, GivesTheSameBitsForAnyNumberOfWorkersEachTime) {
  const std::vector<double> alone = factor("cpu_workers: 1", divided(64, 20), 300);
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (const char* runtime : {"cpu_workers: 1", "cpu_workers: 2", "cpu_workers: 5, wait: park",
                                "cpu_workers: 3, window: 1"}) {
      EXPECT_EQ(factor(runtime, divided(64, 20), 300), alone) << runtime;
    }
  }
}

TEST(Hierarchy, DividesAMatrixOfOneTile) {
  const std::vector<double> plain = factor("cpu_workers: 1", "tile: 128", 100);
  EXPECT_LT(largest_difference(factor("cpu_workers: 3", divided(128, 16), 100), plain), 1e-12);
}

TEST(Hierarchy, ReportsTheFirstPivotThatIsNotPositive) {
  for (const std::int64_t pivot : {1, 20, 21, 64, 65, 149, 150}) {
    SCOPED_TRACE(pivot);
    Node node(configuration("cpu_workers: 3", divided(64, 20)));
    Matrix<double> a = dominant(node, 150);
    const TileLayout l = a.layout();
    a.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
      for (std::int64_t b = 0; b < tile.columns; ++b) {
        const std::int64_t row = l.column_begin(c) + b - l.row_begin(i);
        if (row >= 0 && row < tile.rows && l.column_begin(c) + b + 1 >= pivot) tile(row, b) = -1;
      }
    });
    const JobResult result = node.submit(cholesky(a)).wait();
    EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
    EXPECT_EQ(result.info, pivot);
    EXPECT_LT(result.pivot, 0);
  }
}

Job cholesky_job(Node& node, std::int64_t n) {
  return node.prepare(cholesky(dominant(node, n)));
}

Job qr_job(Node& node, std::int64_t n) {
  QrLayout layout;
  layout.tile = 128;
  layout.fine = 16;
  layout.inner = 16;
  const QrMatrix q = qr_matrix(node, n, n, layout, node.facts().distribution);
  Matrix<double>(q.a).fill(testing::element);
  return node.prepare(qr(q));
}

TEST(Hierarchy, AJobCancelledAmongFineTasksLeavesNoneBehind) {
  for (const auto& make : {cholesky_job, qr_job}) {
    Node node(configuration("cpu_workers: 3, window: 64", divided(128, 16)));
    int among = 0;
    for (int k = 0; k < 10; ++k) {
      Job first = make(node, 500);
      Job second = make(node, 300);
      first.start();
      while (NodeInternals(node).engine().tasks_divided() == 0 && !first.done())
        std::this_thread::yield();
      const bool is_divided = NodeInternals(node).engine().tasks_divided() > 0;
      second.start();
      first.cancel();
      if (first.wait().status == JobResult::Status::cancelled && is_divided) ++among;
      EXPECT_EQ(first.progress(), 1);
      EXPECT_EQ(second.wait().status, JobResult::Status::done);
      EXPECT_EQ(NodeInternals(node).engine().tasks_divided(), 0);
    }
    EXPECT_GT(among, 0) << "no job was cancelled while tasks were divided";
  }
}

TEST(Hierarchy, MakesNoFineGraphsWhileAJobRuns) {
  for (const auto& make : {cholesky_job, qr_job}) {
    Node node(configuration("cpu_workers: 3", divided(128, 16)));
    Job job = make(node, 500);
    EXPECT_EQ(NodeInternals(node).engine().fine_graphs(), 0U)
        << "a job that is only prepared need not run";
    job.reserve();
    const std::size_t made = NodeInternals(node).engine().fine_graphs();
    EXPECT_GT(made, 3U);
    job.start();
    EXPECT_EQ(job.wait().status, JobResult::Status::done);
    EXPECT_EQ(NodeInternals(node).engine().fine_graphs(), made);
  }
}

TEST(Hierarchy, MakesNoFineGraphsOfWhatNobodyWillDivide) {
  for (const unsigned kept : {0U, 4U}) {  // of four tasks of the device
    NodeFaults faults;
    faults.placement = std::make_shared<testing::SomePlacement>(kept);
    Node node(configuration("cpu_workers: 2, placement: dynamic, devices: {backend: emulated}",
                            divided(64, 16) + ", strip: 0"),
              faults);
    Matrix<double> a = dominant(node, 300);
    EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
    EXPECT_EQ(NodeInternals(node).engine().fine_graphs() > 0, kept == 0);
  }
}

// ---- outputs that are renamed ----

std::int64_t add_columns(const KernelArguments& arguments) {
  const TileView& to = arguments.tiles[0];
  const TileView& from = arguments.tiles[1];
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) = 2 * to(i, j) + from(i, j) + 1;
  }
  return 0;
}
void add_columns_fine(const KernelCase& what, std::int64_t small, FineTasks& tasks);
constexpr Kernel adding{
    .name = "adding", .host = add_columns, .emulated = add_columns, .fine = add_columns_fine};
void add_columns_fine(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape shape = what.operands[0];
  for (std::int64_t j = 0; j < shape.columns; j += small) {
    const std::int64_t count = std::min(small, shape.columns - j);
    tasks.add(adding, {},
              {writes({0, 0, j, shape.rows, count}), reads({1, 0, j, shape.rows, count})});
  }
}

TEST(Hierarchy, OutputsThatAreRenamedGoOnFromTheOldContent) {
  Node node(configuration("cpu_workers: 3", divided(12, 4)));
  MatrixSpec spec(48, 12);
  Matrix<double> m = node.matrix<double>(spec);
  m.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(i + 100 * j); });
  const std::vector<double> start = dense(m);
  const auto tile = [&](std::int32_t i) { return m(TileRow{i}, TileColumn{0}); };
  constexpr int rounds = 40;
  UserStream stream = node.stream("renaming", {m});
  for (int round = 0; round < rounds; ++round) {
    // Tile 1 and 2 read tile 0, which is written again meanwhile.
    stream.insert(adding, {read_write(tile(1)), read(tile(0))});
    stream.insert(adding, {read_write(tile(2)), read(tile(0))});
    stream.insert(adding, {read_write(tile(0)), read(tile(3))});
  }
  EXPECT_EQ(stream.end().wait().status, JobResult::Status::done);
  std::vector<double> expected = start;
  const auto at = [&](std::size_t t, std::size_t i, std::size_t j) -> double& {
    return expected[12 * t + i + 48 * j];
  };
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t j = 0; j < 12; ++j) {
      for (int round = 0; round < rounds; ++round) {
        at(1, i, j) = 2 * at(1, i, j) + at(0, i, j) + 1;
        at(2, i, j) = 2 * at(2, i, j) + at(0, i, j) + 1;
        at(0, i, j) = 2 * at(0, i, j) + at(3, i, j) + 1;
      }
    }
  }
  EXPECT_EQ(dense(m), expected);
}

// ---- the trace ----

TEST(Hierarchy, TheTraceHoldsTheDividedTasksAndTheirFineTasks) {
  Config config = configuration("cpu_workers: 2", divided(64, 16));
  config.trace.file = "kept in memory";
  Node node(config);
  Matrix<double> a = dominant(node, 192);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
  const trace::NodeTrace trace = trace::collect(NodeInternals(node).recorder(), {});
  struct Divided {
    trace::TaskRecord record;
    std::vector<trace::TaskRecord> fine;
  };
  std::map<std::uint64_t, Divided> tasks;
  int whole = 0;
  for (const trace::ThreadRecords& thread : trace.threads) {
    for (const trace::Record& record : thread.records) {
      if (record.kind() != trace::RecordKind::task) continue;
      const auto task = record.as<trace::TaskRecord>();
      if (task.is_divided != 0) {
        EXPECT_EQ(thread.name, trace::divided_row);
        EXPECT_GT(task.access_count, 0);
        tasks[task.order].record = task;
      } else if (task.fine > 0) {
        EXPECT_EQ(task.access_count, 0);
        tasks[task.order].fine.push_back(task);
      } else {
        ++whole;
      }
    }
  }
  EXPECT_EQ(tasks.size(), 10U);  // 3 factorizations, 3 solves, 3 + 1 updates
  EXPECT_EQ(whole, 6);           // that filled the tiles
  for (auto& [order, divided] : tasks) {
    std::ranges::sort(divided.fine, {}, &trace::TaskRecord::fine);
    for (std::size_t k = 0; k < divided.fine.size(); ++k) {
      EXPECT_EQ(divided.fine[k].fine, k + 1);
      EXPECT_GE(divided.fine[k].start_ns, divided.record.start_ns);
      EXPECT_LE(divided.fine[k].end_ns, divided.record.end_ns);
      const std::uint32_t after = divided.fine[k].after;
      ASSERT_LE(after, k) << "it has waited for one with a lower number, or for none";
      if (after > 0) {
        EXPECT_LE(divided.fine[after - 1].end_ns, divided.fine[k].start_ns);
      }
    }
    EXPECT_GE(divided.fine.size(), 10U);
  }
}

}  // namespace
}  // namespace heddle
