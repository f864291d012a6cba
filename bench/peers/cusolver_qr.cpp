// How fast is cuSOLVER's geqrf on one GPU, the matrix in its memory?
#include <cstdlib>
#include <exception>

#include "bench/peers/cuda_support.hpp"
#include "bench/peers/gpu_checks.hpp"
#include "bench/peers/qr.hpp"

namespace peer = heddle::peer;

namespace {

struct Options : peer::GpuOptions {
  std::vector<std::int64_t> m;  ///< after the command line was read as many as n
};

/// A matrix in the memory of the GPU, and what its factorization needs.
class Geqrf {
 public:
  Geqrf(std::int64_t m, std::int64_t n)
      : m_(m),
        n_(n),
        solver_(peer::make_solver()),
        parameters_(peer::make_solver_parameters()),
        a_(m * n),
        tau_(n),
        info_(1) {
    std::size_t device_bytes = 0;
    std::size_t host_bytes = 0;
    peer::check(cusolverDnXgeqrf_bufferSize(solver_.get(), parameters_.get(), m, n, CUDA_R_64F,
                                            a_.data(), m, CUDA_R_64F, tau_.data(), CUDA_R_64F,
                                            &device_bytes, &host_bytes),
                "geqrf's workspace");
    device_work_ = peer::DeviceArray<std::byte>(static_cast<std::int64_t>(device_bytes));
    host_work_.resize(host_bytes);
  }

  void generate() {
    peer::fill_normal({.data = a_.data(), .rows = m_, .columns = n_, .leading = m_});
    peer::synchronize();
  }

  void factorize() {
    peer::check(
        cusolverDnXgeqrf(solver_.get(), parameters_.get(), m_, n_, CUDA_R_64F, a_.data(), m_,
                         CUDA_R_64F, tau_.data(), CUDA_R_64F, device_work_.data(),
                         device_work_.bytes(), host_work_.data(), host_work_.size(), info_.data()),
        "geqrf");
    peer::synchronize();
  }

  [[nodiscard]] int info() const { return info_.to_host()[0]; }

  [[nodiscard]] peer::QrDeviation deviation() const {
    return peer::qr_deviation(m_, n_, a_.data(), tau_.data());
  }

 private:
  std::int64_t m_;
  std::int64_t n_;
  peer::SolverHandle solver_;
  peer::SolverParameters parameters_;
  peer::DeviceArray<double> a_;
  peer::DeviceArray<double> tau_;
  peer::DeviceArray<int> info_;
  peer::DeviceArray<std::byte> device_work_;
  std::vector<std::byte> host_work_;
};

/// False when the factors are wrong.
bool run(const peer::GpuOptions& options, std::int64_t m, std::int64_t n) {
  Geqrf geqrf(m, n);
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions, [&] { geqrf.generate(); }, [&] { geqrf.factorize(); });
  std::string details = peer::figure("sm_mhz", peer::clock_now());
  const int info = geqrf.info();
  if (info != 0) {
    std::fprintf(stderr, "peer_cusolver_qr: geqrf says info = %d\n", info);
    return false;
  }
  const peer::QrDeviation found = options.check ? geqrf.deviation() : peer::QrDeviation();
  if (options.check) {
    details += peer::figure("residual", found.residual) +
               peer::figure("orthogonality", found.orthogonality);
  }
  peer::print_rate(
      "cusolver",
      "op=qr m=" + std::to_string(m) + " n=" + std::to_string(n) + " nb=0 gpus=1" + details,
      peer::qr_flops(m, n), seconds);
  return found.residual < peer::residual_max && found.orthogonality < peer::residual_max;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app{"cuSOLVER's geqrf on one GPU"};
  app.add_option("-m,--m", options.m, "rows, one for each n; left out: as many as columns")
      ->check(CLI::Range(1, 1 << 24));
  peer::add_gpu_options(app, options);
  app.parse_complete_callback([&options] {
    if (options.m.empty()) options.m = options.n;
    if (options.m.size() != options.n.size()) {
      throw CLI::ValidationError("--m", "not as many as --n has");
    }
    for (std::size_t i = 0; i < options.m.size(); ++i) {
      if (options.m[i] < options.n[i]) {
        throw CLI::ValidationError("--m", "fewer rows than columns");
      }
    }
  });
  CLI11_PARSE(app, argc, argv);
  bool is_right = true;
  for (std::size_t i = 0; i < options.n.size(); ++i) {
    is_right = run(options, options.m[i], options.n[i]) && is_right;
  }
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
