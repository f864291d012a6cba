#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

/// What the peer drivers share: command line, clock, test matrix, and the line that carries a
/// figure. A peer uses nothing of heddle's own library, so that no defect can flatter both sides.
namespace heddle::peer {

/// Seconds of a clock that never steps back.
inline double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// The middle of `values` (the upper one of two); `values` is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Doubles on a page boundary, not initialised; freed with the object.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t count)
      : data_(static_cast<double*>(::operator new (
            static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(double),
            std::align_val_t{page}))),
        count_(count) {}
  ~Buffer() { ::operator delete (data_, std::align_val_t{page}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  [[nodiscard]] double* data() const { return data_; }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  static constexpr std::size_t page = 4096;
  double* data_ = nullptr;
  std::int64_t count_ = 0;
};

/// A number in [-0.5, 0.5) that depends on i and j alone.
inline double noise(std::int64_t i, std::int64_t j) {
  auto h = static_cast<std::uint64_t>(i) << 32 ^ static_cast<std::uint64_t>(j);
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11) * 0x1p-53 - 0.5;
}

/// Element (i, j) of a symmetric positive definite matrix of order n: its diagonal outweighs the
/// rest of the row, as n - 1 entries of at most 1/2 sum to less than n.
inline double spd_element(std::int64_t i, std::int64_t j, std::int64_t n) {
  return i == j ? static_cast<double>(n) : noise(std::max(i, j), std::min(i, j));
}

inline double cholesky_flops(std::int64_t n) {
  const auto x = static_cast<double>(n);
  return x * x * x / 3;
}

/// The options of every factorization driver.
struct FactorOptions {
  std::int64_t n = 1000;
  std::int64_t block = 200;
  int repetitions = 3;
  int warm_up = 1;
  int threads = 2;
  bool check = false;
};

inline void add_factor_options(CLI::App& app, FactorOptions& options) {
  app.add_option("--n", options.n, "columns of the matrix")->check(CLI::Range(1, 1 << 20));
  app.add_option("--nb", options.block, "tile or block size")->check(CLI::Range(1, 1 << 20));
  app.add_option("--repetitions", options.repetitions, "timed runs")->check(CLI::Range(1, 1000));
  app.add_option("--warm-up", options.warm_up, "runs before the first timed one");
  app.add_option("--threads", options.threads, "computing threads")->check(CLI::Range(1, 1024));
  app.add_flag("--check", options.check, "compare the factors with the matrix; exit 1 if wrong");
}

/// Seconds of each of `repetitions` calls of `run`, after `warm_up` untimed ones; `prepare` comes
/// before each call and is not timed.
template <class Prepare, class Run>
std::vector<double> measure(int warm_up, int repetitions, Prepare prepare, Run run) {
  std::vector<double> seconds;
  for (int i = -warm_up; i < repetitions; ++i) {
    prepare();
    const double begin = now();
    run();
    const double end = now();
    if (i >= 0) seconds.push_back(end - begin);
  }
  return seconds;
}

/// Prints the one line of a factorization's figure; `what` says which one: operation, shape,
/// blocks.
inline void print_rate(const std::string& peer, const std::string& what, double flops,
                       const std::vector<double>& seconds) {
  const double middle = median(seconds);
  const double best = *std::min_element(seconds.begin(), seconds.end());
  std::printf("peer=%s %s gflops_median=%.2f gflops_best=%.2f seconds=%.6f\n", peer.c_str(),
              what.c_str(), flops * 1e-9 / middle, flops * 1e-9 / best, middle);
  std::fflush(stdout);
}

inline void print_cholesky(const std::string& peer, const std::string& details,
                           const FactorOptions& options, const std::vector<double>& seconds) {
  print_rate(peer,
             "op=cholesky n=" + std::to_string(options.n) + " nb=" + std::to_string(options.block) +
                 " " + details,
             cholesky_flops(options.n), seconds);
}

/// ‖expected − actual‖ / ‖expected‖.
inline double relative_difference(const std::vector<double>& expected,
                                  const std::vector<double>& actual) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (expected[i] - actual[i]) * (expected[i] - actual[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

/// ‖A x − L Lᵀ x‖ / ‖A x‖ for a fixed x, A the SPD test matrix. `factor(i, j)` gives L's element
/// for i >= j.
template <class Factor>
double factor_error(std::int64_t n, Factor factor) {
  const auto count = static_cast<std::size_t>(n);
  std::vector<double> x(count);
  std::vector<double> expected(count);
  std::vector<double> transposed(count);
  std::vector<double> actual(count);
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = noise(i, n + 1);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const auto column = static_cast<std::size_t>(j);
      const double a = spd_element(i, j, n);
      expected[row] += a * x[column];
      if (i != j) expected[column] += a * x[row];
      transposed[column] += factor(i, j) * x[row];
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      actual[static_cast<std::size_t>(i)] += factor(i, j) * transposed[static_cast<std::size_t>(j)];
    }
  }
  return relative_difference(expected, actual);
}

/// Says on standard error how far the factor is off; true when it is right.
inline bool judge_factor(std::int64_t n, double error) {
  const double allowed = 10 * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  const bool right = error <= allowed;  // false for a NaN
  std::fprintf(stderr, "check: relative error %.2e, allowed %.2e: %s\n", error, allowed,
               right ? "right" : "WRONG");
  return right;
}

/// Prints the one line of an empty-task figure: microseconds per task, all and submission alone.
inline void print_tasks(const std::string& peer, const std::string& kind, int workers,
                        std::int64_t tasks, std::vector<double> total_seconds,
                        std::vector<double> submit_seconds) {
  const double scale = 1e6 / static_cast<double>(tasks);
  const double best = *std::min_element(total_seconds.begin(), total_seconds.end());
  std::printf(
      "peer=%s op=tasks kind=%s workers=%d tasks=%lld us_median=%.4f us_best=%.4f "
      "us_submit=%.4f\n",
      peer.c_str(), kind.c_str(), workers, static_cast<long long>(tasks),
      median(std::move(total_seconds)) * scale, best * scale,
      median(std::move(submit_seconds)) * scale);
  std::fflush(stdout);
}

/// The data that empty task number i of the three-handle pattern touches: two inputs that no task
/// writes, and one output out of many, as the updates of a tile factorization do.
struct ThreeHandles {
  static constexpr int inputs = 32;
  static constexpr int outputs = 224;
  static constexpr int count = inputs + outputs;

  int left, right, output;

  explicit ThreeHandles(std::int64_t i)
      : left(static_cast<int>(i % (inputs / 2))),
        right(inputs / 2 + static_cast<int>((i * 5 + 1) % (inputs / 2))),
        output(inputs + static_cast<int>(i % outputs)) {}
};

/// The options of every empty-task driver.
struct TaskOptions {
  std::int64_t tasks = 200000;
  int repetitions = 5;
  int workers = 2;
};

inline void add_task_options(CLI::App& app, TaskOptions& options) {
  app.add_option("--tasks", options.tasks, "tasks per repetition")->check(CLI::Range(1, 1 << 30));
  app.add_option("--repetitions", options.repetitions, "timed runs")->check(CLI::Range(1, 1000));
  app.add_option("--workers", options.workers, "worker threads")->check(CLI::Range(1, 1024));
}

}  // namespace heddle::peer
