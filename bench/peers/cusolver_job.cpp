// How long does a whole job take with cuSOLVER on one GPU: reading, factorizing, solving, and the
// residual?
#include <cstdlib>
#include <exception>

#include "bench/peers/cuda_support.hpp"
#include "bench/peers/job.hpp"

namespace peer = heddle::peer;

namespace {

using Array = peer::DeviceArray<double>;

/// Page-locked host memory of a reading thread.
class Staging {
 public:
  static constexpr std::int64_t count = std::int64_t{2} << 20;  // 16 MiB
  Staging() {
    void* memory = nullptr;
    peer::check(cudaMallocHost(&memory, count * sizeof(double)), "cudaMallocHost");
    data_ = static_cast<double*>(memory);
  }
  ~Staging() { cudaFreeHost(data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  [[nodiscard]] double* data() const { return data_; }

 private:
  double* data_ = nullptr;
};

/// From the file into the GPU's memory; each thread has a stream and a page-locked buffer.
void read(const peer::NpyInput& file, const Array& to, int threads) {
  file.in_parts(threads, [&](std::int64_t first, std::int64_t part) {
    const Staging staging;
    cudaStream_t stream = nullptr;
    peer::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (std::int64_t done = 0; done < part; done += Staging::count) {
      const std::int64_t count = std::min(Staging::count, part - done);
      file.read(staging.data(), first + done, count);
      peer::check(cudaMemcpyAsync(to.data() + first + done, staging.data(),
                                  static_cast<std::size_t>(count) * sizeof(double),
                                  cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync");
      peer::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
    cudaStreamDestroy(stream);
  });
}

void copy(const Array& to, const Array& from) {
  peer::check(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice),
              "cudaMemcpyAsync");
}

/// Sum of the magnitudes of all elements.
double norm(cublasHandle_t blas, const double* x, std::int64_t count) {
  double sum = 0;
  peer::check(cublasDasum_64(blas, count, x, 1, &sum), "dasum");
  return sum;
}

/// 1-norm of A's columns, the largest; a call for each.
double one_norm(cublasHandle_t blas, const Array& a, std::int64_t m, std::int64_t n) {
  double most = 0;
  for (std::int64_t j = 0; j < n; ++j) most = std::max(most, norm(blas, a.data() + j * m, m));
  return most;
}

void require_success(const peer::DeviceArray<int>& info, const char* what) {
  const int value = info.to_host()[0];
  if (value == 0) return;
  throw std::runtime_error(std::string(what) + " says info = " + std::to_string(value) + "\n");
}

double cholesky(const peer::NpyInput& matrix, const peer::NpyInput& sides,
                const peer::JobOptions& options, peer::JobClock& clock) {
  const std::int64_t n = matrix.rows();
  const std::int64_t columns = sides.columns();
  const peer::SolverHandle solver = peer::make_solver();
  const peer::BlasHandle blas = peer::make_blas();
  const peer::SolverParameters parameters = peer::make_solver_parameters();
  const Array a(matrix.count());
  const Array kept(matrix.count());
  const Array b(sides.count());
  const Array x(sides.count());
  const peer::DeviceArray<int> info(1);
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
  peer::check(
      cusolverDnXpotrf_bufferSize(solver.get(), parameters.get(), CUBLAS_FILL_MODE_LOWER, n,
                                  CUDA_R_64F, a.data(), n, CUDA_R_64F, &device_bytes, &host_bytes),
      "potrf's workspace");
  const peer::DeviceArray<std::byte> work(static_cast<std::int64_t>(device_bytes));
  std::vector<std::byte> host_work(host_bytes);
  peer::synchronize();
  clock.phase("start");
  read(matrix, a, options.threads);
  read(sides, b, options.threads);
  copy(kept, a);
  copy(x, b);
  peer::synchronize();
  clock.phase("read");
  peer::check(cusolverDnXpotrf(solver.get(), parameters.get(), CUBLAS_FILL_MODE_LOWER, n,
                               CUDA_R_64F, a.data(), n, CUDA_R_64F, work.data(), work.bytes(),
                               host_work.data(), host_work.size(), info.data()),
              "potrf");
  peer::synchronize();
  require_success(info, "potrf");
  clock.phase("factor");
  peer::check(cusolverDnXpotrs(solver.get(), parameters.get(), CUBLAS_FILL_MODE_LOWER, n, columns,
                               CUDA_R_64F, a.data(), n, CUDA_R_64F, x.data(), n, info.data()),
              "potrs");
  peer::synchronize();
  clock.phase("solve");
  const double b_norm = norm(blas.get(), b.data(), b.count());
  const double minus = -1;
  const double one = 1;
  peer::check(cublasDsymm_64(blas.get(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, n, columns,
                             &minus, kept.data(), n, x.data(), n, &one, b.data(), n),
              "dsymm");
  const double residual =
      peer::scaled_residual(norm(blas.get(), b.data(), b.count()), one_norm(blas.get(), kept, n, n),
                            norm(blas.get(), x.data(), x.count()), b_norm, n);
  clock.phase("verify");
  return residual;
}

double least_squares(const peer::NpyInput& matrix, const peer::NpyInput& sides,
                     const peer::JobOptions& options, peer::JobClock& clock) {
  const std::int64_t m = matrix.rows();
  const std::int64_t n = matrix.columns();
  const auto columns = static_cast<int>(sides.columns());
  const peer::SolverHandle solver = peer::make_solver();
  const peer::BlasHandle blas = peer::make_blas();
  const peer::SolverParameters parameters = peer::make_solver_parameters();
  const Array a(matrix.count());
  const Array kept(matrix.count());
  const Array b(sides.count());
  const Array x(sides.count());
  const Array tau(n);
  const Array normal(n * columns);
  const peer::DeviceArray<int> info(1);
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
  peer::check(
      cusolverDnXgeqrf_bufferSize(solver.get(), parameters.get(), m, n, CUDA_R_64F, a.data(), m,
                                  CUDA_R_64F, tau.data(), CUDA_R_64F, &device_bytes, &host_bytes),
      "geqrf's workspace");
  int apply_count = 0;
  const auto rows = static_cast<int>(m);
  const auto reflectors = static_cast<int>(n);
  peer::check(cusolverDnDormqr_bufferSize(solver.get(), CUBLAS_SIDE_LEFT, CUBLAS_OP_T, rows,
                                          columns, reflectors, a.data(), rows, tau.data(), x.data(),
                                          rows, &apply_count),
              "ormqr's workspace");
  const peer::DeviceArray<std::byte> work(static_cast<std::int64_t>(device_bytes));
  const Array apply_work(apply_count);
  std::vector<std::byte> host_work(host_bytes);
  peer::synchronize();
  clock.phase("start");
  read(matrix, a, options.threads);
  read(sides, b, options.threads);
  copy(kept, a);
  copy(x, b);
  peer::synchronize();
  clock.phase("read");
  peer::check(cusolverDnXgeqrf(solver.get(), parameters.get(), m, n, CUDA_R_64F, a.data(), m,
                               CUDA_R_64F, tau.data(), CUDA_R_64F, work.data(), work.bytes(),
                               host_work.data(), host_work.size(), info.data()),
              "geqrf");
  peer::synchronize();
  require_success(info, "geqrf");
  clock.phase("factor");
  const double minus = -1;
  const double one = 1;
  const double zero = 0;
  peer::check(cusolverDnDormqr(solver.get(), CUBLAS_SIDE_LEFT, CUBLAS_OP_T, rows, columns,
                               reflectors, a.data(), rows, tau.data(), x.data(), rows,
                               apply_work.data(), apply_count, info.data()),
              "ormqr");
  peer::check(cublasDtrsm_64(blas.get(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                             CUBLAS_DIAG_NON_UNIT, n, columns, &one, a.data(), m, x.data(), m),
              "dtrsm");
  peer::synchronize();
  clock.phase("solve");
  const double b_norm = norm(blas.get(), b.data(), b.count());
  peer::check(cublasDgemm_64(blas.get(), CUBLAS_OP_N, CUBLAS_OP_N, m, columns, n, &minus,
                             kept.data(), m, x.data(), m, &one, b.data(), m),
              "dgemm");
  peer::check(cublasDgemm_64(blas.get(), CUBLAS_OP_T, CUBLAS_OP_N, n, columns, m, &one, kept.data(),
                             m, b.data(), m, &zero, normal.data(), n),
              "dgemm");
  double a_norm = 0;
  peer::check(cublasDnrm2_64(blas.get(), kept.count(), kept.data(), 1, &a_norm), "dnrm2");
  double x_norm = 0;
  for (int j = 0; j < columns; ++j) x_norm += norm(blas.get(), x.data() + std::int64_t{j} * m, n);
  const double residual = peer::scaled_residual(norm(blas.get(), normal.data(), normal.count()),
                                                a_norm * a_norm, x_norm, a_norm * b_norm, m);
  clock.phase("verify");
  return residual;
}

}  // namespace

int main(int argc, char** argv) try {
  peer::JobClock clock;
  peer::JobOptions options;
  CLI::App app{"A whole job by cuSOLVER on one GPU"};
  peer::add_job_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const peer::NpyInput matrix(options.matrix);
  const peer::NpyInput sides(options.sides);
  const double residual = (options.qr ? least_squares : cholesky)(matrix, sides, options, clock);
  clock.print("cusolver", options, matrix.rows(), matrix.columns(), residual);
  return residual < peer::job_residual_max ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
