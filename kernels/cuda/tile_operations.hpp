#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

/// The matrix operations that the CUDA definitions are made of, on views of the GPU's memory. They
/// queue their work on the context's stream. Any size may be 0; shapes are checked.
namespace heddle::kernel::cuda {

/// A size or leading dimension as cuBLAS takes it; one that does not fit is a defect and aborts.
[[nodiscard]] int to_int(std::int64_t value);

/// A view's leading dimension as cuBLAS takes it: at least 1, which an empty view may leave out.
[[nodiscard]] int leading_dimension(const TileView& a);

/// c := alpha * op(a) * op(b) + beta * c.
void multiply(Context& context, double alpha, const TileView& a, cublasOperation_t transa,
              const TileView& b, cublasOperation_t transb, double beta, const TileView& c);

/// c (m x n, m >= n) -= a (m x k) * (first n rows of a)^T, on and below the diagonal of c.
void update_lower(Context& context, const TileView& c, const TileView& a);

/// to := from, and to -= from; shapes equal.
void copy_tile(Context& context, const TileView& from, const TileView& to);
void subtract_tile(Context& context, const TileView& from, const TileView& to);

/// Every element := 0.
void clear_tile(Context& context, const TileView& c);

/// The inverse blocks (kernels/kernels.hpp) of the lower triangle of l (w x w), inverses.rows
/// columns each.
void invert_diagonal_blocks(Context& context, const TileView& l, const TileView& inverses);

/// x (m x w) := x * inv(l)^T with the lower triangle of l (w x w) and its inverse blocks. `scratch`
/// has solve_scratch(m, w) doubles.
void solve_right_transposed(Context& context, const TileView& l, const TileView& inverses,
                            const TileView& x, double* scratch);
[[nodiscard]] std::int64_t solve_scratch(std::int64_t m, std::int64_t w);

/// A multiple of 32 doubles, the alignment of scratch memory.
[[nodiscard]] constexpr std::int64_t aligned(std::int64_t count) {
  return (count + 31) / 32 * 32;
}

}  // namespace heddle::kernel::cuda
