#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"
#include "base/units.hpp"
#include "node-runtime/node_facts.hpp"
#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"
#include "tests/support/dense.hpp"
#include "tests/support/lapack.hpp"
#include "tests/threads/mpi_run.hpp"
#include "tests/threads/small_devices.hpp"
#include "tests/threads/small_matrices.hpp"

/// Whole runs on GPUs: the CPUs' results within rounding, the same bits on any schedule.
namespace heddle {
namespace {

using testing::Dense;
using testing::element;
using testing::Machine;
using testing::Outcome;
using testing::outcome_of;
using testing::Work;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr const char* square_tiles = "tile: 64, strip: 0";
constexpr const char* with_strips = "tile: 64, strip: 16, small: 8";

class CudaRun : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = testing::why_not(DeviceBackend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  [[nodiscard]] static int gpus() { return static_cast<int>(probe_cuda().gpus.size()); }
};

Machine gpu_machine(int devices = 1, std::uint64_t memory = testing::plenty_bytes) {
  return {.devices = devices, .memory = memory, .backend = "cuda"};
}

double definite(std::int64_t n, std::int64_t i, std::int64_t j) {
  return i == j ? static_cast<double>(n) : 1.0 / static_cast<double>(1 + std::abs(i - j));
}

Matrix<double> definite_matrix(Node& node, std::int64_t n) {
  Matrix<double> a = node.matrix<double>(n, n, Storage::lower);
  a.fill([n](std::int64_t i, std::int64_t j) { return definite(n, i, j); });
  return a;
}

void expect_done(Job job) {
  EXPECT_EQ(job.wait().status, JobResult::Status::done);
}

Work cholesky_work(std::int64_t n, const std::string& layout) {
  return {"Cholesky", layout, [n](Node& node, Outcome& outcome) {
            Matrix<double> a = definite_matrix(node, n);
            Matrix<double> x = right_hand_sides(a, 3);
            x.fill(element);
            outcome.measure(node, {a, x});
            Job factorization = node.submit(cholesky(a));
            Job solution = node.submit(solve_cholesky(a, x));
            expect_done(factorization);
            expect_done(solution);
            outcome.add(a);
            outcome.add(x);
          }};
}

/// Leaves R and the thin Q.
Work qr_work(std::int64_t m, std::int64_t n, const QrLayout& layout) {
  return {"QR", "tile: auto", [m, n, layout](Node& node, Outcome& outcome) {
            const QrMatrix q = qr_matrix(node, m, n, layout, node.facts().distribution);
            Matrix<double>(q.a).fill(element);
            QrOperand x = qr_operand(q, n);
            x.x.fill([](std::int64_t, std::int64_t) { return 0.0; });
            x.top.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
            outcome.measure(node, {q.a, q.t, q.r, q.traveling_r, x.x, x.top, x.traveling});
            if (q.pair_v) outcome.measure(node, {*q.pair_v, *q.pair_t});
            expect_done(node.submit(qr(q)));
            expect_done(node.submit(apply_q(q, x)));
            outcome.add(q.r);
            outcome.add(x.x);
          }};
}

QrLayout qr_layout(QrTree tree, std::int64_t strip = 0) {
  return {.tile = 64, .strip = strip, .small = 8, .virtual_tiles = 2, .inner = 16, .tree = tree};
}

bool same_bits(const Outcome& a, const Outcome& b) {
  return a.elements.size() == b.elements.size() &&
         std::memcmp(a.elements.data(), b.elements.data(), a.elements.size() * sizeof(double)) == 0;
}

/// The `index`-th element on of an outcome, as a matrix.
Dense dense_at(const Outcome& outcome, std::int64_t index, std::int64_t m, std::int64_t n) {
  Dense matrix(m, n);
  std::copy_n(outcome.elements.begin() + index, m * n, matrix.elements.begin());
  return matrix;
}

/// Every schedule of the work on GPUs gives the same bits.
void expect_same_bits(const Work& work, int gpus) {
  SCOPED_TRACE(work.name + ", " + work.layout);
  const Outcome first = outcome_of(work, gpu_machine());
  EXPECT_EQ(first.evictions, 0U);
  for (int streams = 1; streams <= 4; ++streams) {
    for (const int devices : {1, 2}) {
      if (devices > gpus) continue;
      const std::uint64_t least = first.least_bytes(devices);
      for (const std::uint64_t memory : {testing::plenty_bytes, least, least * 3 / 2}) {
        SCOPED_TRACE(fmt::format("{} streams, {} GPUs of {} bytes", streams, devices, memory));
        Machine machine = gpu_machine(devices, memory);
        machine.streams = streams;
        machine.workers = 1 + streams % 2;
        const Outcome again = outcome_of(work, machine);
        EXPECT_TRUE(same_bits(again, first));
        EXPECT_TRUE(memory != least || devices > 1 || again.evictions > 0);
      }
    }
  }
}

}  // namespace

TEST_F(CudaRun, cholesky_gives_the_cpus_factor_and_a_small_residual) {
  constexpr std::int64_t n = 500;
  for (const char* layout : {square_tiles, with_strips, "tile: 200, strip: 0"}) {
    SCOPED_TRACE(layout);
    const Work work = cholesky_work(n, layout);
    const Outcome gpu = outcome_of(work, gpu_machine());
    const Outcome cpu = outcome_of(work, {});
    ASSERT_EQ(gpu.elements.size(), cpu.elements.size());
    double worst = 0;
    for (std::size_t i = 0; i < gpu.elements.size(); ++i) {
      worst = std::max(worst, std::abs(gpu.elements[i] - cpu.elements[i]));
    }
    EXPECT_LT(worst, 10 * n * epsilon * std::sqrt(n));
    const Dense l = dense_at(gpu, 0, n, n);
    double residual = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i) {
        double sum = definite(n, i, j);
        for (std::int64_t k = 0; k <= j; ++k) sum -= l(i, k) * l(j, k);
        residual = std::max(residual, std::abs(sum));
      }
    }
    EXPECT_LT(residual, 10 * n * epsilon * n);
  }
}

TEST_F(CudaRun, qr_gives_the_cpus_r_an_orthogonal_q_and_a_small_residual) {
  constexpr std::int64_t m = 420;
  constexpr std::int64_t n = 230;
  constexpr double within = 50 * epsilon * (m + n);
  for (const QrTree tree : {QrTree::flat, QrTree::binomial}) {
    for (const std::int64_t strip : {0, 16}) {
      SCOPED_TRACE(
          fmt::format("{} tree, strip {}", tree == QrTree::flat ? "flat" : "binomial", strip));
      const Work work = qr_work(m, n, qr_layout(tree, strip));
      const Outcome gpu = outcome_of(work, gpu_machine());
      const Outcome cpu = outcome_of(work, {});
      const Dense r = dense_at(gpu, 0, n, n);
      const Dense expected = dense_at(cpu, 0, n, n);
      const Dense q = dense_at(gpu, n * n, m, n);
      for (std::int64_t i = 0; i < n; ++i) {
        const double sign = r(i, i) * expected(i, i) < 0 ? -1 : 1;  // a row's sign is free
        for (std::int64_t j = i; j < n; ++j) {
          ASSERT_NEAR(r(i, j), sign * expected(i, j), 1e4 * within) << i << ", " << j;
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
          double sum = -element(i, j);
          for (std::int64_t k = 0; k <= j; ++k) sum += q(i, k) * r(k, j);
          ASSERT_NEAR(sum, 0, within) << "A - Q R at " << i << ", " << j;
        }
        for (std::int64_t i = 0; i <= j; ++i) {
          double sum = i == j ? -1 : 0;
          for (std::int64_t k = 0; k < m; ++k) sum += q(k, i) * q(k, j);
          ASSERT_NEAR(sum, 0, within) << "Q^T Q - 1 at " << i << ", " << j;
        }
      }
    }
  }
}

TEST_F(CudaRun, cholesky_has_the_same_bits_with_any_streams_memory_and_gpus) {
  expect_same_bits(cholesky_work(700, square_tiles), gpus());
  expect_same_bits(cholesky_work(900, with_strips), gpus());
}

TEST_F(CudaRun, qr_has_the_same_bits_with_any_streams_memory_and_gpus) {
  for (const QrTree tree : {QrTree::flat, QrTree::binomial}) {
    expect_same_bits(qr_work(900, 520, qr_layout(tree)), gpus());
  }
}

TEST_F(CudaRun, nodes_that_share_gpus_have_the_same_bits_on_any_grid) {
  std::set<std::string> hashes;
  for (const int nodes : {1, 2, 3}) {
    const testing::MpiRun run = testing::run_nodes(nodes, HEDDLE_BITS_PROGRAM, "cuda 6");
    EXPECT_EQ(run.status, 0) << nodes << " nodes: " << run.output;
    hashes.insert(run.output.substr(0, run.output.find(' ')));
  }
  EXPECT_EQ(hashes.size(), 1U);
}

TEST_F(CudaRun, a_matrix_that_is_not_positive_definite_gives_lapacks_info_and_the_node_goes_on) {
  constexpr std::int64_t n = 300;
  for (const char* layout : {square_tiles, with_strips}) {
    Node node(testing::config_of(gpu_machine(), layout));
    for (const std::int64_t pivot : {1, 2, 17, 63, 64, 65, 200, 299, 300}) {
      SCOPED_TRACE(fmt::format("{}, pivot {}", layout, pivot));
      const auto value = [pivot](std::int64_t i, std::int64_t j) {
        return i == j && i + 1 >= pivot ? -1.0 : definite(n, i, j);
      };
      Matrix<double> a = node.matrix<double>(n, n, Storage::lower);
      a.fill(value);
      Dense dense(n, n);
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = j; i < n; ++i) dense(i, j) = value(i, j);
      }
      const JobResult result = node.submit(cholesky(a)).wait();
      EXPECT_EQ(result.status, JobResult::Status::numerical_failure);
      EXPECT_EQ(result.info, testing::lapack_cholesky_info(dense));
      EXPECT_EQ(result.info, pivot);
      EXPECT_FALSE(result.pivot > 0);  // a GPU may leave no number there
      expect_done(node.submit(cholesky(definite_matrix(node, n))));
    }
  }
}

TEST_F(CudaRun, jobs_in_flight_together_give_what_they_give_alone) {
  const auto work = [](bool together) {
    return Work{"several jobs", square_tiles, [together](Node& node, Outcome& outcome) {
                  std::vector<Matrix<double>> matrices;
                  std::vector<Job> jobs;
                  for (int k = 0; k < 4; ++k)
                    matrices.push_back(definite_matrix(node, 450 + 37 * k));
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
  const Outcome alone = outcome_of(work(false), gpu_machine());
  for (const std::uint64_t memory : {testing::plenty_bytes, alone.least_bytes(1)}) {
    EXPECT_TRUE(same_bits(outcome_of(work(true), gpu_machine(1, memory)), alone)) << memory;
  }
}

TEST_F(CudaRun, a_cancelled_job_leaves_a_node_that_gives_the_same_bits) {
  const Work good = cholesky_work(500, square_tiles);
  const Outcome expected = outcome_of(good, gpu_machine());
  for (const std::uint64_t memory : {testing::plenty_bytes, expected.least_bytes(1)}) {
    const Work work{"after a cancelled job", square_tiles, [&](Node& node, Outcome& outcome) {
                      Matrix<double> a = definite_matrix(node, 900);
                      Job job = node.submit(cholesky(a));
                      job.cancel();
                      job.wait();
                      good.run(node, outcome);
                    }};
    EXPECT_TRUE(same_bits(outcome_of(work, gpu_machine(1, memory)), expected)) << memory;
  }
}

TEST_F(CudaRun, memory_that_is_too_small_or_not_there_is_refused_with_numbers) {
  const auto refusal = [](std::uint64_t memory) {
    return testing::error_of([memory] {
      Node node(testing::config_of(gpu_machine(1, memory), square_tiles));
      static_cast<void>(definite_matrix(node, 900));
    });
  };
  const std::string small = refusal(64 << 10);
  const std::uint64_t least = TileStore::least_device_bytes(std::size_t{64} * 64 * 8, 1);
  for (const std::string& part : {format_bytes(64 << 10), format_bytes(least)}) {
    EXPECT_NE(small.find(part), std::string::npos) << small;
  }
  const std::uint64_t more_than_is_there = std::uint64_t{1} << 45;
  const std::string large = refusal(more_than_is_there);
  EXPECT_NE(large.find(format_bytes(more_than_is_there)), std::string::npos) << large;
  EXPECT_NE(large.find("are free"), std::string::npos) << large;
}

TEST_F(CudaRun,
       memory_that_others_have_taken_since_the_start_is_refused_and_can_be_had_again_later) {
  Node node(testing::config_of(gpu_machine(1, std::uint64_t{16} << 30), square_tiles));
  {
    // Takes all that is free.
    Node other(Config::from_text(
        "layout: {tile: 64}\nruntime: {cpu_workers: 1, devices: {backend: cuda, per_node: 1}}\n",
        "all that is free"));
    const Matrix<double> first = definite_matrix(other, 900);
    const std::string refused =
        testing::error_of([&] { static_cast<void>(definite_matrix(node, 900)); });
    for (const char* part : {"16.00 GiB were refused", "another process has taken memory since"}) {
      EXPECT_NE(refused.find(part), std::string::npos) << refused;
    }
  }
  Matrix<double> a = definite_matrix(node, 900);
  expect_done(node.submit(cholesky(a)));
}

// ---- faults ------------------------------------------------------------------------------------

namespace {

constexpr int fault_status = 3;

/// In a process of its own, for CUDA does not recover: what the failure says, and status 3.
template <class Run>
[[noreturn]] void end_with_failure_of(const Run& run) {
  int status = 0;
  try {
    Node node(testing::config_of(gpu_machine(), square_tiles));
    run(node);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", error.code() == ErrorCode::internal ? "internal" : "other",
               error.what());
    status = fault_status;
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

void fault_alone(Node& node) {
  Matrix<double> a = definite_matrix(node, 64);
  UserStream stream = node.stream("fault", {a});
  stream.insert(testing::broken, {read_write(a(TileRow{0}, TileColumn{0}))});
  stream.end().wait();
}

void fault_in_mid_run(Node& node) {
  Matrix<double> a = definite_matrix(node, 3000);
  Matrix<double> b = definite_matrix(node, 64);
  Job factorization = node.submit(cholesky(a));
  while (factorization.progress() < 0.1) std::this_thread::yield();
  UserStream stream = node.stream("fault", {b});
  stream.insert(testing::broken, {read_write(b(TileRow{0}, TileColumn{0}))});
  stream.end().wait();
  factorization.wait();
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

using CudaRunDeathTest = CudaRun;

TEST_F(CudaRunDeathTest, a_fault_on_the_gpu_ends_the_run_with_operation_task_and_device_named) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(
      end_with_failure_of(fault_alone), ::testing::ExitedWithCode(fault_status),
      "internal: .*GPU.*stream.*cudaErrorIllegalAddress.*broken.*its task: broken on tile 0 "
      "of matrix");
  EXPECT_LT(seconds_since(begin), 30);
}

TEST_F(CudaRunDeathTest, a_fault_in_mid_run_ends_all_jobs_within_seconds) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(end_with_failure_of(fault_in_mid_run), ::testing::ExitedWithCode(fault_status),
              "internal: .*cudaErrorIllegalAddress");
  EXPECT_LT(seconds_since(begin), 30);
}

}  // namespace heddle
