// How fast is the plainest tile QR there is: square tiles, a flat tree, LAPACK's kernels, OpenMP
// tasks with depend clauses and priorities?
#include <cblas.h>
#include <lapack.h>
#include <omp.h>
#include <string>
#include <vector>

#include "bench/peers/qr.hpp"
#include "bench/peers/tile_matrix.hpp"

namespace peer = heddle::peer;

namespace {

struct Options : peer::QrOptions {
  std::int64_t inner = 32;
};

// As for Cholesky: libgomp heeds priorities up to OMP_MAX_TASK_PRIORITY.
enum Priority { update = 0, update_of_next_column = 1, factor = 2 };

/// A, the triangular factors T of its tiles' reflectors, and LAPACK's kernels on them, which take
/// `inner` reflectors at a time. After the factorization R is in A on and above the diagonal.
class TileQr {
 public:
  explicit TileQr(const Options& options)
      : a(options.m, options.n, options.block, peer::TileMatrix::Part::all),
        inner_(static_cast<int>(options.inner)) {
    for (int j = 0; j < a.tile_columns(); ++j) {
      for (int i = 0; i < a.tile_rows(); ++i) t_.emplace_back(options.inner * a.columns(j));
    }
    for (int i = 0; i < options.threads; ++i) work_.emplace_back(options.inner * options.block);
  }

  [[nodiscard]] double* t(int i, int j) const {
    return t_[static_cast<std::size_t>(i) +
              static_cast<std::size_t>(j) * static_cast<std::size_t>(a.tile_rows())]
        .data();
  }

  /// Tile (k, k) := its R and V.
  void factor_top(int k) const {
    const int m = a.rows(k);
    const int n = a.columns(k);
    const int block = inner(k);
    int info = 0;
    LAPACK_dgeqrt(&m, &n, &block, a.tile(k, k), &m, t(k, k), &block, work(), &info);
  }

  /// Tile (k, j) := Qᵀ times it, Q that of tile (k, k).
  void update_top(int k, int j) const {
    const int m = a.rows(k);
    const int n = a.columns(j);
    const int reflectors = a.columns(k);
    const int block = inner(k);
    int info = 0;
    LAPACK_dgemqrt("L", "T", &m, &n, &reflectors, &block, a.tile(k, k), &m, t(k, k), &block,
                   a.tile(k, j), &m, work(), &info);
  }

  /// R of tile (k, k) above tile (i, k) := their R and V.
  void factor_below(int k, int i) const {
    const int m = a.rows(i);
    const int n = a.columns(k);
    const int top = a.rows(k);
    const int block = inner(k);
    const int trapezoid = 0;
    int info = 0;
    LAPACK_dtpqrt(&m, &n, &trapezoid, &block, a.tile(k, k), &top, a.tile(i, k), &m, t(i, k), &block,
                  work(), &info);
  }

  /// Tile (k, j) above tile (i, j) := Qᵀ times them, Q that of tile (i, k).
  void update_below(int k, int i, int j) const {
    const int m = a.rows(i);
    const int n = a.columns(j);
    const int reflectors = a.columns(k);
    const int top = a.rows(k);
    const int block = inner(k);
    const int trapezoid = 0;
    int info = 0;
    LAPACK_dtpmqrt("L", "T", &m, &n, &reflectors, &trapezoid, &block, a.tile(i, k), &m, t(i, k),
                   &block, a.tile(k, j), &top, a.tile(i, j), &m, work(), &info);
  }

  peer::TileMatrix a;

 private:
  /// The last column of tiles may be narrower than a block of reflectors.
  [[nodiscard]] int inner(int k) const { return std::min(inner_, a.columns(k)); }
  [[nodiscard]] double* work() const {
    return work_[static_cast<std::size_t>(omp_get_thread_num())].data();
  }

  int inner_;
  std::vector<peer::Buffer> t_;
  std::vector<peer::Buffer> work_;  ///< of each thread
};

/// All tasks are submitted by one thread, in the sequential order. A tile's T also stands for its
/// V: what reads V of a tile on the diagonal need not wait for R above it, which goes on changing.
void factorize(const TileQr& qr) {
  const peer::TileMatrix& a = qr.a;
#pragma omp parallel
#pragma omp single
  for (int k = 0; k < a.tile_columns(); ++k) {
    [[maybe_unused]] double* akk = a.tile(k, k);
    [[maybe_unused]] double* tkk = qr.t(k, k);
#pragma omp task depend(inout : akk[0]) depend(out : tkk[0]) priority(factor)
    qr.factor_top(k);
    for (int j = k + 1; j < a.tile_columns(); ++j) {
      [[maybe_unused]] const int priority = j == k + 1 ? update_of_next_column : update;
      [[maybe_unused]] double* akj = a.tile(k, j);
#pragma omp task depend(in : tkk[0]) depend(inout : akj[0]) priority(priority)
      qr.update_top(k, j);
    }
    for (int i = k + 1; i < a.tile_rows(); ++i) {
      [[maybe_unused]] double* aik = a.tile(i, k);
      [[maybe_unused]] double* tik = qr.t(i, k);
#pragma omp task depend(inout : akk[0], aik[0]) depend(out : tik[0]) priority(factor)
      qr.factor_below(k, i);
      for (int j = k + 1; j < a.tile_columns(); ++j) {
        [[maybe_unused]] const int priority = j == k + 1 ? update_of_next_column : update;
        [[maybe_unused]] double* akj = a.tile(k, j);
        [[maybe_unused]] double* aij = a.tile(i, j);
#pragma omp task depend(in : tik[0]) depend(inout : akj[0], aij[0]) priority(priority)
        qr.update_below(k, i, j);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"tile QR with OpenMP tasks"};
  peer::add_qr_options(app, options);
  app.add_option("--inner", options.inner, "reflectors of a block")->check(CLI::Range(1, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  options.inner = std::min(options.inner, options.block);
  openblas_set_num_threads(1);
  omp_set_num_threads(options.threads);

  TileQr qr(options);
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions, [&] { qr.a.generate(peer::qr_element); },
      [&] { factorize(qr); });
  peer::print_qr(
      "openmp",
      "inner=" + std::to_string(options.inner) + " threads=" + std::to_string(options.threads),
      options, seconds);
  if (!options.check) return 0;
  const auto r = [&](std::int64_t i, std::int64_t j) { return qr.a.element(i, j); };
  return peer::judge_factor(options.m, peer::triangle_error(options.m, options.n, r)) ? 0 : 1;
}
