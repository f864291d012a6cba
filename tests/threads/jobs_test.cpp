#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "tests/threads/failing_allocation.hpp"
#include "tests/threads/small_matrices.hpp"

namespace heddle {
namespace {

using testing::configuration;
using testing::dense;
using testing::dominant;

std::int64_t add_one(const KernelArguments& arguments) {
  arguments.tiles[0](0, 0) += 1;
  return 0;
}
std::int64_t add_input(const KernelArguments& arguments) {
  arguments.tiles[0](0, 0) = 2 * arguments.tiles[0](0, 0) + arguments.tiles[1](0, 0);
  return 0;
}
std::int64_t fail_in_the_middle(const KernelArguments& arguments) {
  return arguments.tiles[0](0, 0) > 40 ? 3 : add_one(arguments);
}
std::int64_t add_one_slowly(const KernelArguments& arguments) {
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  return add_one(arguments);
}
constexpr Kernel lengthy{.name = "lengthy", .host = add_one_slowly};
constexpr Kernel increment{.name = "increment", .host = add_one, .emulated = add_one};
constexpr Kernel accumulate{.name = "accumulate", .host = add_input, .emulated = add_input};
constexpr Kernel failing{
    .name = "failing", .host = fail_in_the_middle, .emulated = fail_in_the_middle};

Matrix<double> cells(Node& node, std::int64_t count) {
  MatrixSpec spec(count, 1);
  spec.layout.tile = 1;
  Matrix<double> m = node.matrix<double>(spec);
  m.fill([](std::int64_t, std::int64_t) { return 0.0; });
  return m;
}

/// Whose jobs copy tiles to the host.
Config with_a_device() {
  return configuration("cpu_workers: 1, devices: {backend: emulated, per_node: 1}",
                       "tile: 32, strip: 16, small: 16");
}

/// Why it gets no memory; empty: it has it.
std::string refusal_of(Job& job) {
  try {
    job.reserve();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return {};
}

TileRef cell(const Matrix<double>& m, std::int64_t i) {
  return m(TileRow{static_cast<std::int32_t>(i)}, TileColumn{0});
}

}  // namespace

TEST(Jobs, in_flight_together_give_what_they_give_alone) {
  Node node(configuration("cpu_workers: 3"));
  std::vector<Matrix<double>> together;
  std::vector<Job> jobs;
  together.reserve(4);
  jobs.reserve(4);
  for (int k = 0; k < 4; ++k) together.push_back(dominant(node, 150 + 13 * k));
  for (auto& a : together) jobs.push_back(node.submit(cholesky(a)));
  for (Job& job : jobs) EXPECT_EQ(job.wait().status, JobResult::Status::done);
  for (int k = 0; k < 4; ++k) {
    Matrix<double> alone = dominant(node, 150 + 13 * k);
    node.submit(cholesky(alone)).wait();
    EXPECT_EQ(dense(alone), dense(together[static_cast<std::size_t>(k)]));
  }
}

TEST(Jobs, that_share_a_matrix_take_effect_in_order_of_submission) {
  Node node(configuration("cpu_workers: 2"));
  Matrix<double> m = cells(node, 3);
  std::vector<Job> jobs;
  for (int k = 0; k < 20; ++k) {
    UserStream stream = node.stream("step", {m});
    if (k % 2 == 0) {
      stream.insert(increment, {read_write(cell(m, 0))});
    } else {
      stream.insert(accumulate, {read_write(cell(m, 1)), read(cell(m, 0))});
    }
    jobs.push_back(stream.end());
  }
  for (Job& job : jobs) job.wait();
  double expected = 0;
  for (int k = 1; k <= 10; ++k) expected = 2 * expected + k;
  EXPECT_EQ(dense(m), (std::vector<double>{10, expected, 0}));
}

TEST(Jobs, can_be_cancelled_in_mid_run_and_leave_the_node_usable) {
  Node node(configuration("cpu_workers: 2, window: 64"));
  Matrix<double> a = dominant(node, 600);
  Matrix<double> b = dominant(node, 600);
  Job first = node.submit(cholesky(a));
  Job second = node.submit(cholesky(b));
  first.cancel();
  const JobResult::Status status = first.wait().status;
  EXPECT_TRUE(status == JobResult::Status::cancelled);
  EXPECT_EQ(second.wait().status, JobResult::Status::done);
  EXPECT_EQ(first.progress(), 1);
}

TEST(Jobs, report_the_first_pivot_that_is_not_positive_as_lapack_does) {
  for (const std::int64_t pivot : {1, 2, 33, 64, 100, 149, 150}) {
    Node node(configuration("cpu_workers: 2", "tile: 32, strip: 16, small: 8"));
    Matrix<double> a = dominant(node, 150);
    const TileLayout l = a.layout();
    a.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
      for (std::int64_t b = 0; b < tile.columns; ++b) {
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          const bool at = l.row_begin(i) + r == l.column_begin(c) + b;
          if (at && l.row_begin(i) + r + 1 >= pivot) tile(r, b) = -1;
        }
      }
    });
    const JobResult result = node.submit(cholesky(a)).wait();
    EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
    EXPECT_EQ(result.info, pivot);
    EXPECT_LT(result.pivot, 0);
  }
}

TEST(Jobs, tell_who_waits_that_a_kernel_takes_long_and_go_on) {
  Node node(configuration("cpu_workers: 1, watchdog_seconds: 0.2"));
  Matrix<double> m = cells(node, 2);
  UserStream stream = node.stream("long", {m});
  stream.insert(lengthy, {read_write(cell(m, 0))});
  stream.insert(increment, {read_write(cell(m, 0))});
  std::vector<std::string> told;
  Job job = stream.end();
  node.on_quiet([&](const std::string& what) { told.push_back(what); });
  EXPECT_EQ(job.wait().status, JobResult::Status::done);
  EXPECT_EQ(dense(m), (std::vector<double>{2, 0}));
  ASSERT_GE(told.size(), 2U);  // and again
  EXPECT_NE(told.front().find("nothing has ended for 0.2 s; 1 task is running"), std::string::npos)
      << told.front();
  EXPECT_NE(told.front().find("a task at place 0 that is ready or running"), std::string::npos)
      << told.front();
}

TEST(Jobs, that_have_reserved_their_memory_give_what_others_give) {
  Node node(with_a_device());
  Matrix<double> a = dominant(node, 150);
  Matrix<double> b = dominant(node, 150);
  node.submit(cholesky(a)).wait();
  Job job = node.prepare(cholesky(b));
  ASSERT_GT(JobInternals(job).blocks_minimum().front(), 0);  // it copies tiles to the host
  job.reserve();
  job.start();
  EXPECT_EQ(job.wait().status, JobResult::Status::done);
  EXPECT_EQ(dense(a), dense(b));
}

TEST(Jobs, that_are_never_started_give_back_what_they_have_reserved) {
  Node node(with_a_device());
  Matrix<double> a = dominant(node, 100);
  // More pools than there can be at a time.
  for (std::size_t i = 0; i < TileStore::pools_max; ++i) {
    Job job = node.prepare(cholesky(a));
    ASSERT_GT(JobInternals(job).blocks_minimum().front(), 0);
    ASSERT_NO_THROW(job.reserve()) << i;
  }
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
}

TEST(Jobs, for_which_there_is_no_memory_say_so_and_leave_the_node_as_it_was) {
  Node node(with_a_device());
  Matrix<double> a = dominant(node, 100);
  std::vector<Job> held;
  std::string why;
  while (why.empty() && held.size() < TileStore::pools_max) {
    held.push_back(node.prepare(cholesky(a)));
    why = refusal_of(held.back());
  }
  EXPECT_NE(why.find("matrices and jobs exist at one time"), std::string::npos) << why;
  held.pop_back();
  // The last one that has its memory still has it; those that are dropped give it back.
  Job last = held.back();
  held.clear();
  last.start();
  EXPECT_EQ(last.wait().status, JobResult::Status::done);
  Job again = node.prepare(cholesky(a));
  EXPECT_EQ(refusal_of(again), "");
}

TEST(Node, lets_other_threads_of_a_program_keep_to_the_cores_that_workers_leave) {
  const CpuTopology topology = CpuTopology::detect();
  if (topology.cores().size() < 2) GTEST_SKIP() << "one core";
  const Node node(configuration("cpu_workers: 1"));
  std::vector<std::int32_t> binding;
  std::thread other([&] {
    NodeInternals(node).bind_beside_workers();
    binding = current_thread_binding();
  });
  other.join();
  EXPECT_FALSE(binding.empty());
  for (const std::int32_t of_worker : topology.cores().front().hardware_threads) {
    EXPECT_EQ(std::ranges::count(binding, of_worker), 0);
  }
}

TEST(Jobs, advance_with_the_smallest_window) {
  Node node(configuration("cpu_workers: 2, window: 1"));
  Matrix<double> a = dominant(node, 200);
  Matrix<double> x = right_hand_sides(a, 2);
  x.fill([](std::int64_t i, std::int64_t) { return static_cast<double>(i); });
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
  EXPECT_EQ(node.submit(solve_cholesky(a, x)).wait().status, JobResult::Status::done);
}

/// What the engine's lock guards agrees each time that somebody has the lock: programs with small
/// windows, divided tasks, users' streams and cancellations side by side.
TEST(Jobs, leave_the_engine_valid_at_every_moment) {
  Node node(configuration("cpu_workers: 3, window: 7"));
  std::atomic<bool> ends{false};
  std::int64_t looks = 0;
  std::thread looker([&] {
    for (; !ends.load(); ++looks)
      ASSERT_TRUE(NodeInternals(node).engine().is_valid()) << "look " << looks;
  });
  for (int round = 0; round < 4; ++round) {
    Matrix<double> a = dominant(node, 150);
    Matrix<double> b = dominant(node, 90);
    Matrix<double> c = cells(node, 3);
    Job first = node.submit(cholesky(a));
    Job second = node.submit(cholesky(b));
    if (round % 2 == 1) second.cancel();
    UserStream stream = node.stream("steps", {c});
    for (std::int64_t t = 0; t < 40; ++t) stream.insert(increment, {read_write(cell(c, t % 3))});
    stream.end().wait();
    EXPECT_EQ(first.wait().status, JobResult::Status::done);
    second.wait();
  }
  ends = true;
  looker.join();
  EXPECT_GT(looks, 0);
  EXPECT_TRUE(NodeInternals(node).engine().counters().is_valid());
}

TEST(Jobs, of_nothing_end) {
  Node node(configuration("cpu_workers: 1"));
  Matrix<double> a = dominant(node, 0);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
}

TEST(Jobs, pass_on_what_a_visit_throws) {
  Node node(configuration("cpu_workers: 2"));
  Matrix<double> a = dominant(node, 100);
  EXPECT_THROW(
      a.for_each_tile([](TileRow, TileColumn, TileView) { throw Error(ErrorCode::usage, "no"); }),
      Error);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
}

TEST(Streams, of_users_find_dependences_by_themselves) {
  Node node(configuration("cpu_workers: 3, window: 5"));
  Matrix<double> m = cells(node, 8);
  UserStream stream = node.stream("chains", {m});
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 8; ++i) stream.insert(increment, {read_write(cell(m, i))});
  }
  EXPECT_EQ(stream.end().wait().status, JobResult::Status::done);
  EXPECT_EQ(dense(m), std::vector<double>(8, 500.0));
}

TEST(Streams, fail_the_node_by_name_when_memory_lacks_inside_the_protocol) {
  if (!testing::FailingAllocation::is_available()) GTEST_SKIP() << "under a sanitizer";
  int failures = 0;
  // Which allocations of this thread are the protocol's depends on how far the worker is.
  for (std::int64_t k = 0; k < 40 || (failures == 0 && k < 800); ++k) {
    const std::int64_t successes = k % 40;
    SCOPED_TRACE(successes);
    Node node(configuration("cpu_workers: 1"));
    Matrix<double> m = cells(node, 4);
    UserStream stream = node.stream("lacking", {m});
    std::string said;
    {
      const testing::FailingAllocation allocation(successes);
      try {
        for (int i = 0; i < 40; ++i) stream.insert(increment, {read_write(cell(m, i % 4))});
      } catch (const Error& error) {
        said = error.what();
      } catch (const std::bad_alloc&) {
        said = "before the protocol";
      }
    }
    if (said.empty()) {  // all allocations succeeded
      EXPECT_EQ(stream.end().wait().status, JobResult::Status::done);
    } else if (said != "before the protocol") {
      ++failures;
      EXPECT_TRUE(node.failed());
      EXPECT_THROW(stream.insert(increment, {read_write(cell(m, 0))}), Error);
    }
  }
  EXPECT_GT(failures, 0);
}

TEST(Streams, write_to_fresh_copies_while_old_ones_are_read) {
  Node node(configuration("cpu_workers: 3"));
  Matrix<double> m = cells(node, 12);
  UserStream stream = node.stream("renaming", {m});
  for (int round = 1; round <= 300; ++round) {
    stream.insert(increment, {read_write(cell(m, 0))});
    for (int i = 1; i < 12; ++i)
      stream.insert(accumulate, {read_write(cell(m, i)), read(cell(m, 0))});
  }
  stream.end().wait();
  const std::vector<double> all = dense(m);
  for (int i = 2; i < 12; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], all[1]);
  double expected = 0;
  for (int round = 1; round <= 300; ++round) expected = 2 * expected + round;
  EXPECT_EQ(all[1], expected);
}

TEST(Streams, come_after_the_jobs_that_were_submitted_before_them) {
  Node node(configuration("cpu_workers: 2, window: 16"));
  Matrix<double> a = dominant(node, 400);
  Matrix<double> b = dominant(node, 400);
  node.submit(cholesky(b)).wait();
  Job factorization = node.submit(cholesky(a));
  UserStream stream = node.stream("after", {a});
  stream.insert(increment, {read_write(a(TileRow{12}, TileColumn{0}))});
  stream.end().wait();
  EXPECT_EQ(factorization.wait().status, JobResult::Status::done);
  std::vector<double> expected = dense(b);
  expected[384] += 1;
  EXPECT_EQ(dense(a), expected);
}

TEST(Streams, stop_at_a_kernel_that_fails) {
  Node node(configuration("cpu_workers: 2"));
  Matrix<double> m = cells(node, 1);
  UserStream stream = node.stream("failing", {m});
  for (int i = 0; i < 100; ++i) stream.insert(failing, {read_write(cell(m, 0))});
  const JobResult result = stream.end().wait();
  EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
  EXPECT_EQ(result.info, 3);
  EXPECT_EQ(dense(m).front(), 41);
}

TEST(Matrices, wrap_memory_of_the_caller) {
  Node node(configuration("cpu_workers: 2"));
  constexpr std::int64_t n = 100;
  constexpr std::int64_t leading = 117;
  std::vector<double> memory(static_cast<std::size_t>(leading * n), 7.0);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      memory[static_cast<std::size_t>(i + j * leading)] =
          i < j    ? 0.0
          : i == j ? static_cast<double>(n)
                   : 1.0 / static_cast<double>(1 + i - j);
    }
  }
  MatrixSpec spec(n, n, Storage::lower);
  Matrix<double> wrapped = node.wrap(memory.data(), leading, spec);
  EXPECT_EQ(node.submit(cholesky(wrapped)).wait().status, JobResult::Status::done);
  Matrix<double> own = dominant(node, n);
  node.submit(cholesky(own)).wait();
  const std::vector<double> expected = dense(own);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < leading; ++i) {
      const double value = memory[static_cast<std::size_t>(i + j * leading)];
      if (i >= n) {
        EXPECT_EQ(value, 7.0);
      } else if (i >= j) {
        EXPECT_EQ(value, expected[static_cast<std::size_t>(i + j * n)]);
      }
    }
  }
}

TEST(Nodes, of_emulated_devices_pass_their_failures_on) {
  NodeFaults faults;
  faults.devices.fail_kernel = 3;
  Node node(with_a_device(), faults);
  Matrix<double> a = node.matrix<double>(128, 128, Storage::lower);
  try {
    a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 200.0 : 1.0; });
    node.submit(cholesky(a)).wait();
    FAIL() << "the device's failure went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("kernel"), std::string::npos) << error.what();
  }
}

TEST(Nodes, can_live_in_one_process_together) {
  Node first(configuration("cpu_workers: 1"));
  Node second(configuration("cpu_workers: 2"));
  Matrix<double> a = dominant(first, 90);
  Matrix<double> b = dominant(second, 90);
  Job one = first.submit(cholesky(a));
  Job two = second.submit(cholesky(b));
  one.wait();
  two.wait();
  EXPECT_EQ(dense(a), dense(b));
}

}  // namespace heddle
