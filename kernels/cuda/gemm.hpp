#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"

namespace heddle::kernel::cuda {

/// BLAS's DGEMM on the context's stream: c (m x n) := alpha * op(a) * op(b) + beta * c, op(a) m x
/// k. With beta == 0, c is not read. Sizes may be 0; with k == 0, c := beta * c, and neither a nor
/// b is looked at. All products of the CUDA definitions go through here.
void gemm(Context& context, cublasOperation_t transa, cublasOperation_t transb, std::int64_t m,
          std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t lda,
          const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc);

}  // namespace heddle::kernel::cuda
