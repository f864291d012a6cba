// How fast is cuSOLVER's potrf on one GPU, the matrix in its memory?
#include <cstdlib>
#include <exception>

#include "bench/peers/cuda_support.hpp"
#include "bench/peers/gpu_checks.hpp"

namespace peer = heddle::peer;

namespace {

/// A matrix in the memory of the GPU, and what its factorization needs.
class Potrf {
 public:
  explicit Potrf(std::int64_t n)
      : n_(n),
        solver_(peer::make_solver()),
        parameters_(peer::make_solver_parameters()),
        a_(n * n),
        info_(1) {
    std::size_t device_bytes = 0;
    std::size_t host_bytes = 0;
    peer::check(cusolverDnXpotrf_bufferSize(solver_.get(), parameters_.get(),
                                            CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, a_.data(), n,
                                            CUDA_R_64F, &device_bytes, &host_bytes),
                "potrf's workspace");
    device_work_ = peer::DeviceArray<std::byte>(static_cast<std::int64_t>(device_bytes));
    host_work_.resize(host_bytes);
  }

  void generate() {
    peer::fill_spd({.data = a_.data(), .rows = n_, .columns = n_, .leading = n_}, n_);
    peer::synchronize();
  }

  void factorize() {
    peer::check(
        cusolverDnXpotrf(solver_.get(), parameters_.get(), CUBLAS_FILL_MODE_LOWER, n_, CUDA_R_64F,
                         a_.data(), n_, CUDA_R_64F, device_work_.data(), device_work_.bytes(),
                         host_work_.data(), host_work_.size(), info_.data()),
        "potrf");
    peer::synchronize();
  }

  [[nodiscard]] int info() const { return info_.to_host()[0]; }

  [[nodiscard]] double residual() const {
    return peer::cholesky_residual(n_, {{.gpu = 0, .first = 0, .columns = n_, .data = a_.data()}});
  }

 private:
  std::int64_t n_;
  peer::SolverHandle solver_;
  peer::SolverParameters parameters_;
  peer::DeviceArray<double> a_;
  peer::DeviceArray<int> info_;
  peer::DeviceArray<std::byte> device_work_;
  std::vector<std::byte> host_work_;
};

/// False when the factor is wrong.
bool run(const peer::GpuOptions& options, std::int64_t n) {
  Potrf potrf(n);
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions, [&] { potrf.generate(); }, [&] { potrf.factorize(); });
  std::string details = peer::figure("sm_mhz", peer::clock_now());
  const int info = potrf.info();
  if (info != 0) {
    std::fprintf(stderr, "peer_cusolver_cholesky: potrf says info = %d\n", info);
    return false;
  }
  const double residual = options.check ? potrf.residual() : 0;
  if (options.check) details += peer::figure("residual", residual);
  peer::print_rate("cusolver", "op=cholesky n=" + std::to_string(n) + " nb=0 gpus=1" + details,
                   peer::cholesky_flops(n), seconds);
  return residual < peer::residual_max;
}

}  // namespace

int main(int argc, char** argv) try {
  peer::GpuOptions options;
  CLI::App app{"cuSOLVER's potrf on one GPU"};
  peer::add_gpu_options(app, options);
  CLI11_PARSE(app, argc, argv);
  bool is_right = true;
  for (const std::int64_t n : options.n) is_right = run(options, n) && is_right;
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
