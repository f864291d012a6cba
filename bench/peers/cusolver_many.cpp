// How fast is cuSOLVER's potrf for many matrices in one GPU's memory, dealt out over several
// streams? The number of streams with the shortest time counts.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "bench/peers/cuda_support.hpp"
#include "bench/peers/gpu_checks.hpp"

namespace peer = heddle::peer;

namespace {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using StreamHandle = std::unique_ptr<CUstream_st, DestroyStream>;

StreamHandle make_stream() {
  cudaStream_t stream = nullptr;
  peer::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return StreamHandle(stream);
}

/// A stream with a handle and workspace of its own.
class Lane {
 public:
  explicit Lane(std::int64_t n)
      : n_(n),
        stream_(make_stream()),
        solver_(peer::make_solver()),
        parameters_(peer::make_solver_parameters()) {
    peer::check(cusolverDnSetStream(solver_.get(), stream_.get()), "cusolverDnSetStream");
    std::size_t device_bytes = 0;
    std::size_t host_bytes = 0;
    peer::check(
        cusolverDnXpotrf_bufferSize(solver_.get(), parameters_.get(), CUBLAS_FILL_MODE_LOWER, n,
                                    CUDA_R_64F, nullptr, n, CUDA_R_64F, &device_bytes, &host_bytes),
        "potrf's workspace");
    device_work_ = peer::DeviceArray<std::byte>(static_cast<std::int64_t>(device_bytes));
    host_work_.resize(host_bytes);
  }

  void factorize(double* a, int* info) {
    peer::check(cusolverDnXpotrf(solver_.get(), parameters_.get(), CUBLAS_FILL_MODE_LOWER, n_,
                                 CUDA_R_64F, a, n_, CUDA_R_64F, device_work_.data(),
                                 device_work_.bytes(), host_work_.data(), host_work_.size(), info),
                "potrf");
  }

 private:
  std::int64_t n_;
  StreamHandle stream_;
  peer::SolverHandle solver_;
  peer::SolverParameters parameters_;
  peer::DeviceArray<std::byte> device_work_;
  std::vector<std::byte> host_work_;
};

struct Options : peer::GpuOptions {
  int count = 64;
  std::vector<int> streams{1, 2, 4, 8, 16};
};

/// False when a factor is wrong.
bool run(const Options& options, std::int64_t n) {
  std::vector<peer::DeviceArray<double>> matrices;
  for (int k = 0; k < options.count; ++k) matrices.emplace_back(n * n);
  peer::DeviceArray<int> info(options.count);
  const auto generate = [&] {
    for (const auto& a : matrices) {
      peer::fill_spd({.data = a.data(), .rows = n, .columns = n, .leading = n}, n);
    }
    peer::synchronize();
  };
  std::vector<double> best;
  int best_streams = 0;
  for (const int streams : options.streams) {
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int s = 0; s < streams; ++s) lanes.push_back(std::make_unique<Lane>(n));
    const auto seconds = peer::measure(options.warm_up, options.repetitions, generate, [&] {
      for (std::size_t k = 0; k < matrices.size(); ++k) {
        lanes[k % lanes.size()]->factorize(matrices[k].data(), info.data() + k);
      }
      peer::synchronize();
    });
    if (best.empty() || peer::median(seconds) < peer::median(best)) {
      best = seconds;
      best_streams = streams;
    }
  }
  for (const int one : info.to_host()) {
    if (one == 0) continue;
    std::fprintf(stderr, "peer_cusolver_many: potrf says info = %d\n", one);
    return false;
  }
  double residual = 0;
  if (options.check) {
    for (const auto& a : matrices) {
      const double here =
          peer::cholesky_residual(n, {{.gpu = 0, .first = 0, .columns = n, .data = a.data()}});
      residual = here <= residual ? residual : here;
    }
  }
  std::string details = peer::figure("sm_mhz", peer::clock_now());
  if (options.check) details += peer::figure("residual", residual);
  peer::print_rate("cusolver",
                   "op=many_cholesky n=" + std::to_string(n) +
                       " count=" + std::to_string(options.count) +
                       " streams=" + std::to_string(best_streams) + " gpus=1" + details,
                   peer::cholesky_flops(n) * options.count, best);
  return residual < peer::residual_max;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app{"cuSOLVER's potrf of many matrices on the streams of one GPU"};
  peer::add_gpu_options(app, options);
  app.add_option("--count", options.count, "matrices")->check(CLI::Range(1, 10000));
  app.add_option("--streams", options.streams, "numbers of streams to try")
      ->check(CLI::Range(1, 128));
  CLI11_PARSE(app, argc, argv);
  bool is_right = true;
  for (const std::int64_t n : options.n) is_right = run(options, n) && is_right;
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
