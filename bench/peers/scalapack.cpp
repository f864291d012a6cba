// How fast is ScaLAPACK's pdpotrf on a grid of processes?
#include "bench/peers/block_cyclic.hpp"

// NOLINTBEGIN(readability-identifier-naming): ScaLAPACK comes without a header
extern "C" void pdpotrf_(const char* uplo, const int* n, double* a, const int* row,
                         const int* column, const int* descriptor, int* info);
// NOLINTEND(readability-identifier-naming)

namespace peer = heddle::peer;

namespace {

int factorize(peer::BlockCyclicMatrix& a) {
  const int one = 1;
  int info = 0;
  pdpotrf_("L", &a.n, a.elements.data(), &one, &one, a.descriptor.data(), &info);
  return info;
}

int run(const peer::FactorOptions& options, const peer::Grid& grid) {
  const std::int64_t n = options.n;
  peer::BlockCyclicMatrix a(n, n, options.block, grid);
  int info = 0;
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions,
      [&] {
        a.generate([n](std::int64_t i, std::int64_t j) { return peer::spd_element(i, j, n); });
        MPI_Barrier(MPI_COMM_WORLD);
      },
      [&] {
        info = factorize(a);
        MPI_Barrier(MPI_COMM_WORLD);
      });
  if (info != 0) {
    std::fprintf(stderr, "peer_scalapack: pdpotrf says info = %d on rank %d\n", info, grid.rank);
    return 1;
  }
  if (grid.rank == 0) peer::print_cholesky("scalapack", "grid=" + grid.name(), options, seconds);
  if (!options.check) return 0;
  const std::vector<double> whole = a.gather_square(grid.rank);
  if (grid.rank != 0) return 0;
  const auto element = [&](std::int64_t i, std::int64_t j) {
    return whole[static_cast<std::size_t>(i + j * n)];
  };
  return peer::judge_factor(n, peer::factor_error(n, element)) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  peer::FactorOptions options;
  options.threads = 1;
  std::string grid = "1x2";
  CLI::App app{"pdpotrf; start it with mpiexec and as many processes as the grid has places"};
  peer::add_factor_options(app, options);
  app.add_option("--grid", grid, "rows x columns of processes, such as 1x2");
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(options.threads);
  return peer::run_on_grid(grid, [&](const peer::Grid& here) { return run(options, here); });
}
