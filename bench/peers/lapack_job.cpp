// How long does a whole job take with LAPACK and the threads inside OpenBLAS: reading, factorizing,
// solving, and the residual?
#include <cblas.h>
#include <cstdlib>
#include <exception>
#include <lapack.h>

#include "bench/peers/job.hpp"

namespace peer = heddle::peer;

namespace {

double norm(const peer::Buffer& x) {
  return cblas_dasum(static_cast<int>(x.count()), x.data(), 1);
}

void require_success(int info, const char* what) {
  if (info == 0) return;
  throw std::runtime_error(std::string(what) + " says info = " + std::to_string(info) + "\n");
}

/// The upper triangle stays what it was, so that it is A for the residual.
double cholesky(const peer::NpyInput& matrix, const peer::NpyInput& sides,
                const peer::JobOptions& options, peer::JobClock& clock) {
  const auto n = static_cast<int>(matrix.rows());
  const auto columns = static_cast<int>(sides.columns());
  const peer::Buffer a(matrix.count());
  const peer::Buffer b(sides.count());
  const peer::Buffer x(sides.count());
  const peer::Buffer diagonal(n);
  matrix.read(a.data(), options.threads);
  sides.read(b.data(), options.threads);
  cblas_dcopy(n, a.data(), n + 1, diagonal.data(), 1);
  cblas_dcopy(static_cast<int>(b.count()), b.data(), 1, x.data(), 1);
  clock.phase("read");
  int info = 0;
  LAPACK_dpotrf("L", &n, a.data(), &n, &info);
  require_success(info, "dpotrf");
  clock.phase("factor");
  LAPACK_dpotrs("L", &n, &columns, a.data(), &n, x.data(), &n, &info);
  require_success(info, "dpotrs");
  clock.phase("solve");
  cblas_dcopy(n, diagonal.data(), 1, a.data(), n + 1);
  const double b_norm = norm(b);
  cblas_dsymm(CblasColMajor, CblasLeft, CblasUpper, n, columns, -1, a.data(), n, x.data(), n, 1,
              b.data(), n);
  std::vector<double> work(static_cast<std::size_t>(n));
  const double a_norm = LAPACK_dlansy("1", "U", &n, a.data(), &n, work.data());
  const double residual = peer::scaled_residual(norm(b), a_norm, norm(x), b_norm, n);
  clock.phase("verify");
  return residual;
}

/// A is read again for the residual of the normal equations.
double least_squares(const peer::NpyInput& matrix, const peer::NpyInput& sides,
                     const peer::JobOptions& options, peer::JobClock& clock) {
  const auto m = static_cast<int>(matrix.rows());
  const auto n = static_cast<int>(matrix.columns());
  const auto columns = static_cast<int>(sides.columns());
  const peer::Buffer a(matrix.count());
  const peer::Buffer b(sides.count());
  const peer::Buffer x(sides.count());
  const peer::Buffer tau(n);
  const peer::Buffer work(std::int64_t{m} * 64);
  const auto work_count = static_cast<int>(work.count());
  matrix.read(a.data(), options.threads);
  sides.read(b.data(), options.threads);
  cblas_dcopy(static_cast<int>(b.count()), b.data(), 1, x.data(), 1);
  clock.phase("read");
  int info = 0;
  LAPACK_dgeqrf(&m, &n, a.data(), &m, tau.data(), work.data(), &work_count, &info);
  require_success(info, "dgeqrf");
  clock.phase("factor");
  LAPACK_dormqr("L", "T", &m, &columns, &n, a.data(), &m, tau.data(), x.data(), &m, work.data(),
                &work_count, &info);
  require_success(info, "dormqr");
  LAPACK_dtrtrs("U", "N", "N", &n, &columns, a.data(), &m, x.data(), &m, &info);
  require_success(info, "dtrtrs");
  clock.phase("solve");
  const double b_norm = norm(b);
  matrix.read(a.data(), options.threads);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, columns, n, -1, a.data(), m, x.data(),
              m, 1, b.data(), m);
  const peer::Buffer normal(std::int64_t{n} * columns);
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, n, columns, m, 1, a.data(), m, b.data(), m,
              0, normal.data(), n);
  const double a_norm = LAPACK_dlange("F", &m, &n, a.data(), &m, nullptr);
  double x_norm = 0;
  for (int j = 0; j < columns; ++j) x_norm += cblas_dasum(n, x.data() + std::int64_t{j} * m, 1);
  const double residual =
      peer::scaled_residual(norm(normal), a_norm * a_norm, x_norm, a_norm * b_norm, m);
  clock.phase("verify");
  return residual;
}

}  // namespace

int main(int argc, char** argv) try {
  peer::JobClock clock;
  peer::JobOptions options;
  CLI::App app{"A whole job by LAPACK with threaded OpenBLAS"};
  peer::add_job_options(app, options);
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(options.threads);
  const peer::NpyInput matrix(options.matrix);
  const peer::NpyInput sides(options.sides);
  const double residual = (options.qr ? least_squares : cholesky)(matrix, sides, options, clock);
  clock.print("lapack", options, matrix.rows(), matrix.columns(), residual);
  return residual < peer::job_residual_max ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
