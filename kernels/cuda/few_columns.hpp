#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernels.hpp"

/// Products and solves with a few right-hand sides: bound by reading the tile once, and for a solve
/// by the chain of its diagonal blocks. Sums run in an order that follows from the sizes only. On
/// views of the GPU's memory, queued on the context's stream; any size may be 0, shapes are the
/// caller's to check.
namespace heddle::kernel::cuda {

/// With more right-hand sides cuBLAS's products are faster.
inline constexpr std::int64_t few_columns_max = 32;

/// y := alpha * a * x + beta * y, with magnitudes for the elements of a if `term` says so. With
/// beta == 0, y is not read.
void launch_multiply_few(Context& context, double alpha, const TileView& a, const TileView& x,
                         double beta, const TileView& y, Term term = Term::product);

/// y := alpha * a^T * x + beta * y, likewise, and with any term.
void launch_multiply_transposed_few(Context& context, double alpha, const TileView& a,
                                    const TileView& x, double beta, const TileView& y,
                                    Term term = Term::product);

/// y += |s| * x with what a (m x w) stores of the symmetric s: its first w columns, on and below
/// the diagonal, and their mirror image. x and y have m rows.
void launch_magnitudes_symmetric(Context& context, const TileView& a, const TileView& x,
                                 const TileView& y);

enum class Triangle : std::uint8_t { lower, lower_transposed, upper };

/// x := inv(op(t)) * x with a triangle of t, square.
void launch_solve_few(Context& context, Triangle triangle, const TileView& t, const TileView& x);

}  // namespace heddle::kernel::cuda
