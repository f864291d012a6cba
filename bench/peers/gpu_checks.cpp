#include "bench/peers/gpu_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/peers/cuda_support.hpp"

namespace heddle::peer {
namespace {

constexpr std::int64_t probes = 4;   ///< random vectors
constexpr std::int64_t strip = 512;  ///< columns that are looked at together
constexpr double one = 1;

/// c += op(a) b, op(a) rows×inner, c rows×probes.
void multiply(cublasHandle_t blas, cublasOperation_t op, std::int64_t rows, std::int64_t inner,
              const double* a, std::int64_t a_leading, const double* b, std::int64_t b_leading,
              double* c, std::int64_t c_leading) {
  if (rows == 0 || inner == 0) return;
  check(cublasDgemm_64(blas, op, CUBLAS_OP_N, rows, probes, inner, &one, a, a_leading, b, b_leading,
                       &one, c, c_leading),
        "dgemm");
}

/// c := op(T) b with the triangle T of the w×w block `a`, c of `probes` columns.
void multiply_triangle(cublasHandle_t blas, cublasFillMode_t part, cublasOperation_t op,
                       std::int64_t w, const double* a, std::int64_t a_leading, const double* b,
                       std::int64_t b_leading, double* c, std::int64_t c_leading) {
  check(cublasDtrmm_64(blas, CUBLAS_SIDE_LEFT, part, op, CUBLAS_DIAG_NON_UNIT, w, probes, &one, a,
                       a_leading, b, b_leading, c, c_leading),
        "dtrmm");
}

/// c += b, both w×probes.
void add(cublasHandle_t blas, std::int64_t w, const double* b, std::int64_t b_leading, double* c,
         std::int64_t c_leading) {
  check(cublasDgeam_64(blas, CUBLAS_OP_N, CUBLAS_OP_N, w, probes, &one, c, c_leading, &one, b,
                       b_leading, c, c_leading),
        "dgeam");
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

double scaled(double difference, double norm_of_all, std::int64_t n) {
  return difference /
         (static_cast<double>(n) * norm_of_all * std::numeric_limits<double>::epsilon());
}

/// One GPU's columns' parts of A x and of L Lᵀ x: sums over columns, so that parts of several GPUs
/// add up to the products.
class CholeskyProducts {
 public:
  CholeskyProducts(std::int64_t n, std::int64_t columns_max)
      : n_(n),
        blas_(make_blas()),
        x_(n * probes),
        ax_(n * probes),
        llx_(n * probes),
        transposed_(columns_max * probes),
        product_(columns_max * probes),
        generated_(n * columns_max) {
    fill_probes(x_.data(), n, probes);
    ax_.clear();
    llx_.clear();
  }

  void add_columns(std::int64_t first, std::int64_t w, const double* l) {
    fill_spd({.data = generated_.data(), .rows = n_, .columns = w, .leading = n_, .column = first},
             n_);
    multiply(blas_.get(), CUBLAS_OP_N, n_, w, generated_.data(), n_, x_.data() + first, n_,
             ax_.data(), n_);

    const std::int64_t below = n_ - first - w;
    const double* l11 = l + first;
    const double* l21 = l11 + w;
    double* z = transposed_.data();  // the strip's rows of Lᵀ x
    multiply_triangle(blas_.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, w, l11, n_,
                      x_.data() + first, n_, z, w);
    multiply(blas_.get(), CUBLAS_OP_T, w, below, l21, n_, x_.data() + first + w, n_, z, w);
    multiply_triangle(blas_.get(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, w, l11, n_, z, w,
                      product_.data(), w);
    add(blas_.get(), w, product_.data(), w, llx_.data() + first, n_);
    multiply(blas_.get(), CUBLAS_OP_N, below, w, l21, n_, z, w, llx_.data() + first + w, n_);
  }

  [[nodiscard]] std::vector<double> ax() const { return ax_.to_host(); }
  [[nodiscard]] std::vector<double> llx() const { return llx_.to_host(); }

 private:
  std::int64_t n_;
  BlasHandle blas_;
  DeviceArray<double> x_;
  DeviceArray<double> ax_;
  DeviceArray<double> llx_;
  DeviceArray<double> transposed_;
  DeviceArray<double> product_;
  DeviceArray<double> generated_;
};

void accumulate(std::vector<double>& sums, const std::vector<double>& part) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
}

/// Q of a QR factorization as its reflectors, applied to `probes` columns. Takes a few reflectors
/// at a time: the library's dormqr counts elements with 32 bits.
class Reflectors {
 public:
  Reflectors(std::int64_t m, std::int64_t n, const double* a, const double* tau)
      : m_(m), n_(n), a_(a), tau_(tau), solver_(make_solver()), info_(1) {
    int count = 0;
    for (std::int64_t j = 0; j < n; j += strip) {
      int needed = 0;
      check(cusolverDnDormqr_bufferSize(solver_.get(), CUBLAS_SIDE_LEFT, CUBLAS_OP_T, rows(j),
                                        static_cast<int>(probes), width(j), panel(j), leading(),
                                        tau + j, panel(j), leading(), &needed),
            "dormqr's workspace");
      count = std::max(count, needed);
    }
    work_ = DeviceArray<double>(count);
  }

  /// c := Q c, or Qᵀ c with CUBLAS_OP_T.
  void apply(cublasOperation_t op, double* c) {
    const std::int64_t panels = (n_ + strip - 1) / strip;
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t j = (op == CUBLAS_OP_T ? p : panels - 1 - p) * strip;
      check(cusolverDnDormqr(solver_.get(), CUBLAS_SIDE_LEFT, op, rows(j), static_cast<int>(probes),
                             width(j), panel(j), leading(), tau_ + j, c + j, leading(),
                             work_.data(), static_cast<int>(work_.count()), info_.data()),
            "dormqr");
    }
  }

 private:
  [[nodiscard]] int rows(std::int64_t j) const { return static_cast<int>(m_ - j); }
  [[nodiscard]] int width(std::int64_t j) const {
    return static_cast<int>(std::min(strip, n_ - j));
  }
  [[nodiscard]] int leading() const { return static_cast<int>(m_); }
  [[nodiscard]] const double* panel(std::int64_t j) const { return a_ + j + j * m_; }

  std::int64_t m_;
  std::int64_t n_;
  const double* a_;
  const double* tau_;
  SolverHandle solver_;
  DeviceArray<int> info_;
  DeviceArray<double> work_;
};

/// expected := A x and actual := [R x; 0] for the probes x.
void multiply_a_and_r(std::int64_t m, std::int64_t n, const double* r,
                      const DeviceArray<double>& expected, const DeviceArray<double>& actual) {
  const BlasHandle blas = make_blas();
  const DeviceArray<double> x(n * probes);
  const DeviceArray<double> generated(m * strip);
  const DeviceArray<double> product(strip * probes);
  fill_probes(x.data(), n, probes);
  for (std::int64_t j = 0; j < n; j += strip) {
    const std::int64_t w = std::min(strip, n - j);
    const double* xj = x.data() + j;
    const double* rj = r + j * m;
    fill_normal({.data = generated.data(), .rows = m, .columns = w, .leading = m, .column = j});
    multiply(blas.get(), CUBLAS_OP_N, m, w, generated.data(), m, xj, n, expected.data(), m);
    multiply(blas.get(), CUBLAS_OP_N, j, w, rj, m, xj, n, actual.data(), m);
    multiply_triangle(blas.get(), CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, w, rj + j, m, xj, n,
                      product.data(), w);
    add(blas.get(), w, product.data(), w, actual.data() + j, m);
  }
  synchronize();
}

std::vector<double> difference(const DeviceArray<double>& a, const DeviceArray<double>& b) {
  std::vector<double> values = a.to_host();
  const std::vector<double> other = b.to_host();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= other[i];
  return values;
}

}  // namespace

double cholesky_residual(std::int64_t n, const std::vector<ColumnBlock>& l) {
  std::vector<double> ax(static_cast<std::size_t>(n * probes));
  std::vector<double> llx(ax.size());
  int gpus = 0;
  for (const ColumnBlock& block : l) gpus = std::max(gpus, block.gpu + 1);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const CurrentGpu current(gpu);
    CholeskyProducts products(n, strip);
    for (const ColumnBlock& block : l) {
      if (block.gpu != gpu) continue;
      for (std::int64_t j = 0; j < block.columns; j += strip) {
        products.add_columns(block.first + j, std::min(strip, block.columns - j),
                             block.data + j * n);
      }
    }
    accumulate(ax, products.ax());
    accumulate(llx, products.llx());
  }
  const double all = norm(ax);
  for (std::size_t i = 0; i < ax.size(); ++i) ax[i] -= llx[i];
  return scaled(norm(ax), all, n);
}

QrDeviation qr_deviation(std::int64_t m, std::int64_t n, const double* a, const double* tau) {
  DeviceArray<double> expected(m * probes);
  DeviceArray<double> actual(m * probes);
  expected.clear();
  actual.clear();
  multiply_a_and_r(m, n, a, expected, actual);
  Reflectors q(m, n, a, tau);
  q.apply(CUBLAS_OP_N, actual.data());
  QrDeviation result;
  result.residual = scaled(norm(difference(expected, actual)), norm(expected.to_host()), m);

  fill_probes(expected.data(), m, probes);
  fill_probes(actual.data(), m, probes);
  q.apply(CUBLAS_OP_T, actual.data());
  q.apply(CUBLAS_OP_N, actual.data());
  result.orthogonality = scaled(norm(difference(expected, actual)), norm(expected.to_host()), m);
  return result;
}

}  // namespace heddle::peer
