#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/householder.hpp"
#include "kernels/kernel.hpp"

/// The steps of the host kernels of QR, by blocks of `inner` reflectors (kernels/kernels.hpp). On
/// the calling thread.
namespace heddle::kernel {

/// to := the upper triangle of `from`, square, and zeros below it.
void copy_upper(const TileView& from, const TileView& to);

/// Factors `a` (at least as many rows as columns): V below the diagonal, R on and above it; t := T.
void factor_panel(const TileView& a, const TileView& t, std::int64_t inner);

/// c := Q^T c or Q c with the reflectors v of factor_panel().
void apply_panel(host::Side side, const TileView& c, const TileView& v, const TileView& t,
                 std::int64_t inner);

/// Rows of the tile above its upper triangle; nullopt: the tile is full.
using RowsAboveTriangle = std::optional<std::int64_t>;

/// Factors a tile under R: `a` becomes V, r := R, t := T. In a triangle, rows past a
/// block's last column are zero and stay untouched.
void factor_below(const TileView& r, const TileView& a, const TileView& t, std::int64_t inner,
                  RowsAboveTriangle triangle);

/// [d; c] := Q^T [d; c] or Q [d; c] with the reflectors v of factor_below().
void apply_below(host::Side side, const TileView& d, const TileView& c, const TileView& v,
                 const TileView& t, std::int64_t inner, RowsAboveTriangle triangle);

}  // namespace heddle::kernel
