#include "kernels/cuda/gemm.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/assert.hpp"
#include "kernels/cuda/gemm_plans.hpp"
#include "kernels/cuda/libraries.hpp"

namespace heddle::kernel::cuda {
namespace {

int narrow(std::int64_t value) {
  HEDDLE_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(),
               "a size or leading dimension of {} does not fit cuBLAS's integers", value);
  return static_cast<int>(value);
}

/// Empty tiles may have a leading dimension of 0, which cuBLAS refuses.
int leading(std::int64_t value) {
  return std::max(1, narrow(value));
}

/// c := beta * c.
void scale(Context& context, std::int64_t m, std::int64_t n, double beta, double* c,
           std::int64_t ldc) {
  if (beta == 1) return;
  if (beta == 0) {
    check(cudaMemset2DAsync(c, static_cast<std::size_t>(ldc) * sizeof(double), 0,
                            static_cast<std::size_t>(m) * sizeof(double),
                            static_cast<std::size_t>(n), context.stream()),
          "cudaMemset2DAsync");
    return;
  }
  const double zero = 0;
  check(cublas().dgeam(context.blas(), CUBLAS_OP_N, CUBLAS_OP_N, narrow(m), narrow(n), &beta, c,
                       leading(ldc), &zero, c, leading(ldc), c, leading(ldc)),
        "cublasDgeam");
}

}  // namespace

void gemm(Context& context, cublasOperation_t transa, cublasOperation_t transb, std::int64_t m,
          std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t lda,
          const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(context, m, n, beta, c, ldc);
  const GemmShape shape{transa,    transb,       narrow(m),    narrow(n),
                        narrow(k), leading(lda), leading(ldb), leading(ldc)};
  // A cuBLAS handle is one of cublasLt too.
  auto* lt = reinterpret_cast<cublasLtHandle_t>(context.blas());
  const auto workspace = context.blas_workspace();
  if (const auto* algorithm = context.gemm_plans().algorithm(lt, shape, workspace.size())) {
    GemmDescription d(shape);
    check(cublas_lt().multiply(lt, &d.operation, &alpha, a, &d.a, b, &d.b, &beta, c, &d.c, c, &d.c,
                               algorithm, workspace.data(), workspace.size(), context.stream()),
          "cublasLtMatmul");
    return;
  }
  check(cublas().dgemm(context.blas(), transa, transb, shape.m, shape.n, shape.k, &alpha, a,
                       shape.lda, b, shape.ldb, &beta, c, shape.ldc),
        "cublasDgemm");
}

}  // namespace heddle::kernel::cuda
