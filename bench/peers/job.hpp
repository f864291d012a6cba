#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bench/peers/peer.hpp"

/// What the peers that do a whole job share: from the files of a matrix and its right-hand sides to
/// a solution that is checked, as `heddle solve` does.
namespace heddle::peer {

struct JobOptions {
  std::string matrix;
  std::string sides;
  bool qr = false;
  int threads = 2;
};

inline void add_job_options(CLI::App& app, JobOptions& options) {
  app.add_option("--matrix", options.matrix, "A, .npy in Fortran order")->required();
  app.add_option("--rhs", options.sides, "b, likewise")->required();
  app.add_flag("--qr", options.qr, "least squares by QR instead of Cholesky");
  app.add_option("--threads", options.threads, "computing and reading threads")
      ->check(CLI::Range(1, 1024));
}

/// A NumPy file of doubles in Fortran order, as `heddle generate` writes it.
class NpyInput {
 public:
  explicit NpyInput(const std::string& path) : file_(::open(path.c_str(), O_RDONLY)) {
    char header[128] = {};
    if (file_ < 0 || ::pread(file_, header, sizeof header - 1, 0) < 100) {
      throw std::runtime_error("cannot read " + path + "\n");
    }
    const std::string text(header + 10, sizeof header - 11);
    const std::size_t shape = text.find("'shape': (");
    const bool is_right = text.find("'fortran_order': True") != std::string::npos &&
                          text.find("'<f8'") != std::string::npos && shape != std::string::npos;
    long long rows = 0;
    long long columns = 1;
    if (!is_right ||
        std::sscanf(text.c_str() + shape, "'shape': (%lld, %lld", &rows, &columns) < 1) {
      throw std::runtime_error(path + " is not a .npy file of doubles in Fortran order\n");
    }
    rows_ = rows;
    columns_ = columns;
    offset_ =
        10 + static_cast<unsigned char>(header[8]) + 256 * static_cast<unsigned char>(header[9]);
  }
  ~NpyInput() { ::close(file_); }
  NpyInput(const NpyInput&) = delete;
  NpyInput& operator=(const NpyInput&) = delete;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::int64_t count() const { return rows_ * columns_; }

  /// Elements [first, first + count). Any thread.
  void read(double* to, std::int64_t first, std::int64_t count) const {
    auto* bytes = reinterpret_cast<char*>(to);
    std::int64_t left = count * 8;
    std::int64_t at = offset_ + first * 8;
    while (left > 0) {
      const ssize_t done = ::pread(file_, bytes, static_cast<std::size_t>(left), at);
      if (done <= 0) throw std::runtime_error("a file became shorter while it was read\n");
      bytes += done;
      at += done;
      left -= done;
    }
  }
  /// All elements, by several threads.
  void read(double* to, int threads) const {
    in_parts(threads,
             [&](std::int64_t first, std::int64_t part) { read(to + first, first, part); });
  }

  /// Calls work(first, count) for the elements' parts of all threads at once.
  template <class Work>
  void in_parts(int threads, const Work& work) const {
    std::vector<std::thread> all;
    const std::int64_t each = (count() + threads - 1) / threads;
    for (std::int64_t first = 0; first < count(); first += each) {
      all.emplace_back(
          [&work, first, part = std::min(each, count() - first)] { work(first, part); });
    }
    for (std::thread& one : all) one.join();
  }

 private:
  int file_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t offset_ = 0;
};

/// Seconds of the phases of a job, from the start of main().
class JobClock {
 public:
  /// The phase that has just ended.
  void phase(const char* name) {
    const double time = now();
    figures_ += " " + std::string(name) + "=" + std::to_string(time - last_);
    last_ = time;
  }
  void print(const char* peer, const JobOptions& options, std::int64_t m, std::int64_t n,
             double residual) const {
    std::printf("peer=%s op=job kind=%s m=%lld n=%lld%s total=%.6f residual=%.3g\n", peer,
                options.qr ? "qr" : "cholesky", static_cast<long long>(m),
                static_cast<long long>(n), figures_.c_str(), last_ - begin_, residual);
  }

 private:
  double begin_ = now();
  double last_ = begin_;
  std::string figures_;
};

/// |b - A x| / (n (|A| |x| + |b|) eps) in 1-norms; below 10 it is rounding.
inline double scaled_residual(double rest, double a, double x, double b, std::int64_t n) {
  return rest / (static_cast<double>(n) * (a * x + b) * std::numeric_limits<double>::epsilon());
}
constexpr double job_residual_max = 10;

}  // namespace heddle::peer
