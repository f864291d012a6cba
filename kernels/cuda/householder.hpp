#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

/// Householder reflectors in compact WY form on a GPU: whole panels of tiles, in blocks of `inner`
/// columns with a triangle of T each (kernels/kernels.hpp). Nearly all operations are products of
/// at least 128 reflectors; what is narrower is in householder_panel.hpp. All of it is queued on
/// the context's stream, and takes the context's scratch memory.
namespace heddle::kernel::cuda {

/// a (m x w, m >= w) := V below its diagonal and an echo of R on and above; r (w x w) := R, zeros
/// below its diagonal; t (inner x w) := T.
void factor_tile(Context& context, const TileView& a, const TileView& r, const TileView& t,
                 std::int64_t inner);

/// What a tile under R is: any, or an upper triangle as R is, which has w rows and stays so.
enum class Below : std::uint8_t { full, triangle };

/// The same of [r; a], of r (w x w) only what is on and above its diagonal: r := R, a := V.
void factor_tile_below(Context& context, const TileView& r, const TileView& a, const TileView& t,
                       std::int64_t inner, Below below);

enum class Side : std::uint8_t {
  transposed,  ///< Q^T C
  plain,       ///< Q C
};

/// c (m x n) := Q c or Q^T c with v (m x w) and t of factor_tile().
void apply_tile(Context& context, Side side, const TileView& v, const TileView& t,
                std::int64_t inner, const TileView& c);

/// [d; c] := Q [d; c] or Q^T [d; c] with v and t of factor_tile_below(); d has w rows, c as many as
/// v. Of a triangle what is on and above its diagonal is read.
void apply_tile_below(Context& context, Side side, const TileView& v, const TileView& t,
                      std::int64_t inner, Below below, const TileView& d, const TileView& c);

}  // namespace heddle::kernel::cuda
