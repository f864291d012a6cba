// How fast is ScaLAPACK's pdgeqrf on a grid of processes?
#include "bench/peers/block_cyclic.hpp"
#include "bench/peers/qr.hpp"

// NOLINTBEGIN(readability-identifier-naming): ScaLAPACK comes without a header
extern "C" void pdgeqrf_(const int* m, const int* n, double* a, const int* row, const int* column,
                         const int* descriptor, double* tau, double* work, const int* work_count,
                         int* info);
// NOLINTEND(readability-identifier-naming)

namespace peer = heddle::peer;

namespace {

/// The factorization with its work space.
class Factorization {
 public:
  explicit Factorization(peer::BlockCyclicMatrix& a) : a_(a), tau_(a.columns) {
    double wanted = 0;
    call(&wanted, -1);
    work_ = peer::Buffer(static_cast<std::int64_t>(wanted));
  }

  int run() { return call(work_.data(), static_cast<int>(work_.count())); }

 private:
  int call(double* work, int work_count) {
    const int one = 1;
    int info = 0;
    pdgeqrf_(&a_.m, &a_.n, a_.elements.data(), &one, &one, a_.descriptor.data(), tau_.data(), work,
             &work_count, &info);
    return info;
  }

  peer::BlockCyclicMatrix& a_;
  peer::Buffer tau_;
  peer::Buffer work_;
};

int run(const peer::QrOptions& options, const peer::Grid& grid) {
  peer::BlockCyclicMatrix a(options.m, options.n, options.block, grid);
  Factorization factorization(a);
  int info = 0;
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions,
      [&] {
        a.generate(peer::qr_element);
        MPI_Barrier(MPI_COMM_WORLD);
      },
      [&] {
        info = factorization.run();
        MPI_Barrier(MPI_COMM_WORLD);
      });
  if (info != 0) {
    std::fprintf(stderr, "peer_scalapack_qr: pdgeqrf says info = %d on rank %d\n", info, grid.rank);
    return 1;
  }
  if (grid.rank == 0) peer::print_qr("scalapack", "grid=" + grid.name(), options, seconds);
  if (!options.check) return 0;
  const std::vector<double> whole = a.gather_square(grid.rank);
  if (grid.rank != 0) return 0;
  const auto r = [&](std::int64_t i, std::int64_t j) {
    return whole[static_cast<std::size_t>(i + j * options.n)];
  };
  return peer::judge_factor(options.m, peer::triangle_error(options.m, options.n, r)) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  peer::QrOptions options;
  options.threads = 1;
  std::string grid = "1x2";
  CLI::App app{"pdgeqrf; start it with mpiexec and as many processes as the grid has places"};
  peer::add_qr_options(app, options);
  app.add_option("--grid", grid, "rows x columns of processes, such as 1x2");
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(options.threads);
  return peer::run_on_grid(grid, [&](const peer::Grid& here) { return run(options, here); });
}
