// How fast is the plainest tile Cholesky there is: OpenMP tasks with depend clauses and priorities?
#include <omp.h>
#include <string>

#include "bench/peers/tiles.hpp"

namespace peer = heddle::peer;

namespace {

// Ahead of the trailing update come the tasks that the next step waits for. libgomp heeds
// priorities up to OMP_MAX_TASK_PRIORITY, which is 0 unless the environment says otherwise.
enum Priority { update = 0, update_of_next_column = 1, solve = 2, factor = 3 };

/// Right-looking: all tasks of a step are submitted by one thread, in the sequential order.
void factorize(peer::TileMatrix& a) {
  const int count = a.tile_rows();
#pragma omp parallel
#pragma omp single
  for (int k = 0; k < count; ++k) {
    const int width = a.rows(k);
    double* akk = a.tile(k, k);
#pragma omp task depend(inout : akk[0]) priority(factor)
    peer::factor_tile(width, akk);
    for (int i = k + 1; i < count; ++i) {
      const int m = a.rows(i);
      double* aik = a.tile(i, k);
#pragma omp task depend(in : akk[0]) depend(inout : aik[0]) priority(solve)
      peer::solve_tile(m, width, akk, aik);
    }
    for (int j = k + 1; j < count; ++j) {
      const int n = a.rows(j);
      const int priority = j == k + 1 ? update_of_next_column : update;
      double* ajk = a.tile(j, k);
      double* ajj = a.tile(j, j);
#pragma omp task depend(in : ajk[0]) depend(inout : ajj[0]) priority(priority)
      peer::update_diagonal_tile(n, width, ajk, ajj);
      for (int i = j + 1; i < count; ++i) {
        const int m = a.rows(i);
        double* aik = a.tile(i, k);
        double* aij = a.tile(i, j);
#pragma omp task depend(in : aik[0], ajk[0]) depend(inout : aij[0]) priority(priority)
        peer::update_tile(m, n, width, aik, ajk, aij);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  peer::FactorOptions options;
  CLI::App app{"tile Cholesky with OpenMP tasks"};
  peer::add_factor_options(app, options);
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(1);
  omp_set_num_threads(options.threads);

  peer::TileMatrix a = peer::cholesky_tiles(options);
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions, [&] { peer::generate_spd(a, options.n); },
      [&] { factorize(a); });
  peer::print_cholesky("openmp", "threads=" + std::to_string(options.threads), options, seconds);
  return !options.check || peer::judge_factor(options.n, peer::factor_error(options.n, a)) ? 0 : 1;
}
