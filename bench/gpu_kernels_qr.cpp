/// How fast are QR's kernels on one GPU, and how much faster than cuSOLVER's factorization of the
/// same panel? Prints one line per figure. Every result is checked by what Q keeps: lengths.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/context.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/householder_panel.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

using kernel::PanelParameters;
using kernel::cuda::check;
using kernel::cuda::Context;

/// A matrix in the GPU's memory, without gaps.
class DeviceMatrix {
 public:
  DeviceMatrix(std::int64_t rows, std::int64_t columns) : view_{nullptr, rows, columns, rows} {
    check(cudaMalloc(reinterpret_cast<void**>(&view_.data), bytes()), "cudaMalloc");
    check(cudaMemset(view_.data, 0, bytes()), "cudaMemset");
    // The stream of the kernels does not wait for the one of cudaMemset.
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;
  ~DeviceMatrix() { static_cast<void>(cudaFree(view_.data)); }

  [[nodiscard]] const TileView& view() const { return view_; }
  [[nodiscard]] std::int64_t count() const { return view_.rows * view_.columns; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(count(), 1)) * sizeof(double);
  }

 private:
  TileView view_;
};

/// The stream that everything runs on, and the values that matrices are made of.
class Bench {
 public:
  explicit Bench(int repetitions) : repetitions_(repetitions), normal_(normal_count, 1) {
    std::vector<double> values(static_cast<std::size_t>(normal_count));
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (double& value : values) value = normal(random);
    check(cudaMemcpy(normal_.view().data, values.data(), normal_.bytes(), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
    context_ = std::make_unique<Context>(0, stream_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    context_.reset();
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  [[nodiscard]] Context& context() { return *context_; }

  /// a := normal random values, the same each time. At most normal_count of them.
  void fill(const DeviceMatrix& a) {
    check(cudaMemcpyAsync(a.view().data, normal_.view().data, a.bytes(), cudaMemcpyDeviceToDevice,
                          stream_),
          "cudaMemcpyAsync");
  }

  void clear(const DeviceMatrix& a) {
    check(cudaMemsetAsync(a.view().data, 0, a.bytes(), stream_), "cudaMemsetAsync");
  }

  /// The Frobenius norm of matrices one above the other.
  [[nodiscard]] double norm(const std::vector<const DeviceMatrix*>& parts) {
    double square = 0;
    for (const DeviceMatrix* part : parts) {
      double length = 0;
      check(cublasDnrm2(context_->blas(), static_cast<int>(part->count()), part->view().data, 1,
                        &length),
            "cublasDnrm2");
      square += length * length;
    }
    return std::sqrt(square);
  }

  /// Median time of `work` in microseconds, `prepare` before each not counted.
  [[nodiscard]] double median_us(const std::function<void()>& prepare,
                                 const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = 0; i <= repetitions_; ++i) {
      prepare();
      check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
      work();
      check(cudaEventRecord(end_, stream_), "cudaEventRecord");
      check(cudaEventSynchronize(end_), "cudaEventSynchronize");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
      if (i > 0) times.push_back(1000.0 * static_cast<double>(milliseconds));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  void run(void (*kernel)(const CudaLaunch&), const PanelParameters& parameters,
           const std::vector<const DeviceMatrix*>& matrices) {
    std::vector<TileView> tiles;
    for (const DeviceMatrix* matrix : matrices) tiles.push_back(matrix->view());
    const KernelParameters packed(parameters);
    std::int64_t info = 0;
    kernel({tiles, packed, *context_, &info});
  }

 private:
  static constexpr std::int64_t normal_count = std::int64_t{1} << 25;

  int repetitions_;
  DeviceMatrix normal_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::unique_ptr<Context> context_;
};

/// One line: `flops` in the median time, and whether lengths stayed what they were.
void report(const std::string& what, double us, double flops, double before, double after) {
  fmt::print("{} us_median={:.1f} tflops_median={:.2f}\n", what, us, flops / us * 1e-6);
  const double change = std::abs(after - before) / before;
  if (!(change < 1e-12)) {
    throw std::runtime_error(fmt::format("{}: lengths changed by {:.1e}", what, change));
  }
  static_cast<void>(std::fflush(stdout));
}

double factor_flops(std::int64_t m, std::int64_t w) {
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(w);
  return 2 * columns * columns * (rows - columns / 3);
}

/// One panel, as the factorizations below have them by the dozen.
void bench_panel(Bench& bench, std::int64_t m, std::int64_t columns) {
  const DeviceMatrix a(m, columns);
  const DeviceMatrix r(columns, columns);
  const DeviceMatrix t(columns, columns);
  const int multiprocessors = bench.context().multiprocessors();
  const DeviceMatrix exchange(
      static_cast<std::int64_t>(kernel::cuda::panel_exchange_count(multiprocessors)), 1);
  kernel::cuda::PanelExchange place(exchange.view().data);
  kernel::cuda::Panel panel;
  panel.columns = columns;
  panel.head = a.view().data;
  panel.body = panel.head + columns;
  panel.head_leading = panel.body_leading = m;
  panel.body_rows = m - columns;
  panel.r = r.view().data;
  panel.t = t.view().data;
  panel.r_leading = panel.t_leading = columns;
  bench.fill(a);
  const double before = bench.norm({&a});
  const double us = bench.median_us(
      [&] { bench.fill(a); }, [&] { kernel::cuda::factor_panel(bench.context(), panel, place); });
  report(fmt::format("peer=heddle op=panel m={} w={}", m, columns), us, factor_flops(m, columns),
         before, bench.norm({&r}));
}

void bench_geqrt(Bench& bench, std::int64_t m, std::int64_t w, std::int64_t inner,
                 const std::vector<std::int64_t>& applied_to) {
  const PanelParameters p{0, 0, inner};
  const DeviceMatrix a(m, w);
  const DeviceMatrix r(w, w);
  const DeviceMatrix t(inner, w);
  bench.fill(a);
  const double before = bench.norm({&a});
  const double us = bench.median_us([&] { bench.fill(a); },
                                    [&] {
                                      bench.run(kernel::cuda::geqrt, p, {&a, &r, &t});
                                    });
  report(fmt::format("peer=heddle op=geqrt m={} w={} inner={}", m, w, inner), us,
         factor_flops(m, w), before, bench.norm({&r}));
  for (const std::int64_t n : applied_to) {
    const DeviceMatrix c(m, n);
    const DeviceMatrix top(w, n);
    bench.fill(c);
    const double c_before = bench.norm({&c});
    const double unmqr_us = bench.median_us([&] { bench.fill(c); },
                                            [&] {
                                              bench.run(kernel::cuda::unmqr, p, {&c, &top, &a, &t});
                                            });
    const double flops = 2 * static_cast<double>(n * w) * static_cast<double>(2 * m - w);
    report(fmt::format("peer=heddle op=unmqr m={} w={} n={} inner={}", m, w, n, inner), unmqr_us,
           flops, c_before, bench.norm({&c}));
  }
}

void bench_tsqrt(Bench& bench, std::int64_t m, std::int64_t w, std::int64_t inner) {
  const PanelParameters p{0, 0, inner};
  const DeviceMatrix a(m, w);
  const DeviceMatrix r(w, w);
  const DeviceMatrix t(inner, w);
  bench.fill(a);
  const double before = bench.norm({&a});
  const double us = bench.median_us(
      [&] {
        bench.fill(a);
        bench.clear(r);
      },
      [&] {
        bench.run(kernel::cuda::tsqrt, p, {&a, &r, &t});
      });
  const double flops = 2 * static_cast<double>(w * w) * static_cast<double>(m);
  report(fmt::format("peer=heddle op=tsqrt m={} w={} inner={}", m, w, inner), us, flops, before,
         bench.norm({&r}));
  for (const std::int64_t n : {1024, 2048}) {
    const DeviceMatrix c(m, n);
    const DeviceMatrix d(w, n);
    const auto prepare = [&] {
      bench.fill(c);
      bench.fill(d);
    };
    prepare();
    const double c_before = bench.norm({&c, &d});
    const double tsmqr_us = bench.median_us(prepare, [&] {
      bench.run(kernel::cuda::tsmqr, p, {&c, &d, &a, &t});
    });
    report(fmt::format("peer=heddle op=tsmqr m={} w={} n={} inner={}", m, w, n, inner), tsmqr_us,
           4 * static_cast<double>(m * w) * static_cast<double>(n), c_before, bench.norm({&c, &d}));
  }
}

void bench_cusolver(Bench& bench, std::int64_t m, std::int64_t w) {
  const DeviceMatrix a(m, w);
  const DeviceMatrix tau(w, 1);
  const int rows = static_cast<int>(m);
  const int columns = static_cast<int>(w);
  int work_count = 0;
  check(cusolverDnDgeqrf_bufferSize(bench.context().solver(), rows, columns, a.view().data, rows,
                                    &work_count),
        "cusolverDnDgeqrf_bufferSize");
  const DeviceMatrix work(work_count, 1);
  const double us = bench.median_us(
      [&] { bench.fill(a); },
      [&] {
        check(cusolverDnDgeqrf(bench.context().solver(), rows, columns, a.view().data, rows,
                               tau.view().data, work.view().data, work_count,
                               bench.context().status()),
              "cusolverDnDgeqrf");
      });
  report(fmt::format("peer=cusolver op=geqrf m={} w={}", m, w), us, factor_flops(m, w), 1, 1);
}

void run(int repetitions) {
  Bench bench(repetitions);
  for (const std::int64_t m : {2048, 4096, 8192, 16384, 32768, 65536}) {
    for (const std::int64_t columns : {16, 32}) {
      if (columns > kernel::cuda::panel_columns(m, bench.context().multiprocessors())) continue;
      bench_panel(bench, m, columns);
    }
  }
  for (const std::int64_t inner : {128, 256, 512}) {
    bench_geqrt(bench, 8192, 512, inner, {1024, 2048});
    bench_geqrt(bench, 8192, 1024, inner, {1024, 2048});
    bench_geqrt(bench, 16384, 1024, inner, {1024, 2048});
    bench_geqrt(bench, 32768, 1024, inner, {1024});
  }
  for (const std::int64_t m : {4096, 8192, 16384}) bench_tsqrt(bench, m, 1024, 256);
  bench_cusolver(bench, 8192, 512);
  bench_cusolver(bench, 16384, 1024);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  CLI::App app("QR's kernels on one GPU");
  int repetitions = 5;
  app.add_option("--repetitions", repetitions, "timed runs, of which the median counts")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    heddle::run(repetitions);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_kernels_qr: {}\n", error.what());
    return 1;
  }
  return 0;
}
