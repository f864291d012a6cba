#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace heddle {

/// Operations written for tiles, one table per instruction set. The level 3 operations beat a
/// general BLAS where operands are a few hundred rows: only what must be is packed, and no buffer
/// is asked for. All matrices are column-major with their leading dimension; sizes may be 0.
///
/// All tables give the same bits: every element sees its products in the same order, with fused
/// multiply and add. Any thread; no state; at most 200 KiB of stack.
struct MicroKernels {
  using Size = std::int64_t;

  std::string_view name;  ///< instruction set: "avx2", "avx512"

  /// c (m x n) -= a (m x k) * b^T, b (n x k).
  void (*update)(Size m, Size n, Size k, const double* a, Size lda, const double* b, Size ldb,
                 double* c, Size ldc);
  /// c (m x n, m >= n) -= a (m x k) * (first n rows of a)^T, elements on and below the diagonal.
  void (*update_lower)(Size m, Size n, Size k, const double* a, Size lda, double* c, Size ldc);
  /// b (m x n) := b * inv(l)^T, l (n x n) lower triangular.
  void (*solve)(Size m, Size n, const double* l, Size ldl, double* b, Size ldb);
  /// c (m x n) += alpha * a^T b, a (k x m), b (k x n); made for k far larger than m and n.
  void (*inner)(Size m, Size n, Size k, double alpha, const double* a, Size lda, const double* b,
                Size ldb, double* c, Size ldc);
  /// results[j] := x^T * (column j of a), a (m x n): what reflectors are made of.
  void (*dots)(Size m, Size n, const double* x, const double* a, Size lda, double* results);
  /// Column j of a (m x n) -= x * factors[j].
  void (*subtract_multiples)(Size m, Size n, const double* x, const double* factors, double* a,
                             Size lda);
};

/// The tables that this processor and operating system can run, the widest last.
[[nodiscard]] std::span<const MicroKernels* const> micro_kernels();

/// The widest of them; null when there is none.
[[nodiscard]] const MicroKernels* best_micro_kernels();

/// Defined on x86-64 only; to be reached through micro_kernels(), which asks the processor.
extern const MicroKernels micro_avx2;
extern const MicroKernels micro_avx512;

}  // namespace heddle
