/// How fast are the tile kernels on a GPU, one at a time? Medians by CUDA events, with inputs in
/// the GPU's memory or cache and the host ahead of the GPU, as in a run.

#include "bench/gpu_kernels.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <random>

#include "base/error.hpp"

namespace heddle::bench {

using kernel::cuda::check;

DeviceMatrix::DeviceMatrix(std::int64_t rows, std::int64_t columns)
    : rows_(rows), columns_(columns) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes()), "cudaMalloc");
  memory_.reset(static_cast<double*>(memory));
}

std::size_t DeviceMatrix::bytes() const {
  return static_cast<std::size_t>(rows_ * columns_) * sizeof(double);
}

void DeviceMatrix::Free::operator()(double* memory) const {
  static_cast<void>(cudaFree(memory));
}

/// The delay is a buffer of 1 GiB: the quarter of a millisecond that it takes to clear it is enough
/// for the host to queue a whole repetition.
GpuBench::GpuBench(const GpuBenchOptions& options) : options_(options), delay_(1 << 14, 1 << 13) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaEventCreate(&begin_), "cudaEventCreate");
  check(cudaEventCreate(&end_), "cudaEventCreate");
  void* info = nullptr;
  check(cudaHostAlloc(&info, sizeof(std::int64_t), cudaHostAllocMapped), "cudaHostAlloc");
  info_ = static_cast<std::int64_t*>(info);
  *info_ = 0;
  context_ = std::make_unique<kernel::cuda::Context>(0, stream_);

  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  normal_.resize((1 << 20) + 7);
  std::generate(normal_.begin(), normal_.end(), [&] { return normal(random); });
}

GpuBench::~GpuBench() {
  context_.reset();
  static_cast<void>(cudaFreeHost(info_));
  static_cast<void>(cudaEventDestroy(end_));
  static_cast<void>(cudaEventDestroy(begin_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

bool GpuBench::wants(const std::string& kernel) const {
  return kernel.starts_with(options_.only);
}

void GpuBench::run(const Definition& definition, const KernelParameters& parameters,
                   const std::vector<TileView>& tiles) {
  definition({tiles, parameters, *context_, info_});
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  if (*info_ != 0) throw Error(ErrorCode::internal, fmt::format("a kernel's info is {}", *info_));
}

double GpuBench::repetition_us(const Case& timed) {
  check(cudaMemsetAsync(delay_.view().data, 0, delay_.bytes(), stream_), "cudaMemsetAsync");
  for (const auto& [to, from] : timed.restored) {
    check(cudaMemcpyAsync(to->view().data, from->view().data, to->bytes(), cudaMemcpyDeviceToDevice,
                          stream_),
          "cudaMemcpyAsync");
  }
  check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
  timed.definition({timed.tiles, timed.parameters, *context_, info_});
  check(cudaEventRecord(end_, stream_), "cudaEventRecord");
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  if (*info_ != 0) {
    throw Error(ErrorCode::internal, fmt::format("{}'s info is {}", timed.kernel, *info_));
  }
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return 1e3 * static_cast<double>(milliseconds);
}

void GpuBench::time(const Case& timed) {
  static_cast<void>(repetition_us(timed));  // scratch memory grows, libraries load their kernels
  std::vector<double> times(static_cast<std::size_t>(options_.repetitions));
  std::generate(times.begin(), times.end(), [&] { return repetition_us(timed); });
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  fmt::print("{:<18} {:<32} {:>10.1f} {:>10.1f} {:>9.2f}\n", timed.kernel, timed.shape, median,
             times.front(), timed.flops / median / 1e6);
  static_cast<void>(std::fflush(stdout));
}

void GpuBench::fill(const DeviceMatrix& matrix, double diagonal) {
  const TileView view = matrix.view();
  std::vector<double> host(static_cast<std::size_t>(view.rows * view.columns));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = normal_[i % normal_.size()];
  if (diagonal != 0) {
    for (std::int64_t j = 0; j < std::min(view.rows, view.columns); ++j) {
      host[static_cast<std::size_t>(j + j * view.rows)] = diagonal;
    }
  }
  check(cudaMemcpy(view.data, host.data(), matrix.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
}

void GpuBench::fill_normal(const DeviceMatrix& matrix) {
  fill(matrix, 0);
}

/// The eigenvalues of a symmetric matrix of normal numbers are within 2 sqrt(n).
void GpuBench::fill_definite(const DeviceMatrix& matrix) {
  fill(matrix, 4 * std::sqrt(static_cast<double>(matrix.view().columns)) + 4);
}

namespace {

void print_machine() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int runtime = 0;
  int driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  fmt::print("{}, {} multiprocessors, CUDA {}, driver for CUDA {}\n", properties.name,
             properties.multiProcessorCount, runtime, driver);
}

int run(int argc, char** argv) {
  CLI::App app("Times the tile kernels on GPU 0");
  GpuBenchOptions options;
  app.add_option("--repetitions", options.repetitions, "of each case")->check(CLI::Range(1, 1000));
  app.add_option("--only", options.only, "kernels whose name begins with this");
  CLI11_PARSE(app, argc, argv);
  print_machine();
  GpuBench bench(options);
  fmt::print("{:<18} {:<32} {:>10} {:>10} {:>9}\n", "kernel", "shape", "us", "us best", "TFLOP/s");
  time_cholesky_kernels(bench);
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  try {
    return heddle::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_kernels: {}\n", error.what());
    return 1;
  }
}
