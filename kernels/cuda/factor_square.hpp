#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

namespace heddle::kernel::cuda {

/// Widest square that factor_square is made for: up to here its updates hide behind the diagonal
/// blocks on a few multiprocessors, past it they are work for large products. Its scratch memory
/// grows with the square of the width, too.
inline constexpr std::int64_t factor_width_max = 2048;

/// Whether factor_square can leave inverse blocks of `inner` columns beside a square of `w`.
[[nodiscard]] bool factor_square_gives(std::int64_t inner, std::int64_t w);

/// Doubles of `scratch`, aligned to 16 bytes, that factor_square needs for a square of `w`.
[[nodiscard]] std::int64_t factor_square_scratch(std::int64_t w);

/// a (w x w, w at most factor_width_max) := its Cholesky factor, lower part only; inverses
/// (inner x w) := its inverse blocks, for an `inner` with factor_square_gives. Where that fails and
/// `*info` is zero, `*info` := first_column + LAPACK's info; a pivot below 2^-1000 or above 2^1000
/// counts as not positive. One launch of at most 1 + w / 32 CTAs, of the GPU's at least two
/// multiprocessors, that run at the same time. Shapes are the caller's to check, as in
/// own_kernels.hpp.
void factor_square(Context& context, const TileView& a, const TileView& inverses, double* scratch,
                   std::int64_t first_column, std::int64_t* info);

}  // namespace heddle::kernel::cuda
