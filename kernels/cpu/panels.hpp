#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/householder.hpp"
#include "kernels/kernel.hpp"

/// What the host kernels of QR do with tiles under R, by blocks of `inner` reflectors
/// (kernels/qr.hpp). On the calling thread.
namespace heddle::kernel {

/// Rows of the tile above those at which its upper triangle begins; nothing: the tile is full.
using RowsAboveTriangle = std::optional<std::int64_t>;

/// Factors a tile under R: `a` becomes V, r := R, t := T. Of a triangle, rows past a block's last
/// column are zero and left alone.
void factor_below(const TileView& r, const TileView& a, const TileView& t, std::int64_t inner,
                  RowsAboveTriangle triangle);

/// [d; c] := Q^T [d; c] or Q [d; c] with the reflectors v of factor_below().
void apply_below(host::Side side, const TileView& d, const TileView& c, const TileView& v,
                 const TileView& t, std::int64_t inner, RowsAboveTriangle triangle);

}  // namespace heddle::kernel
