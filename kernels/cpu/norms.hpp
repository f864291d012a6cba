#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"

/// Sums over tiles for norms: plain helpers, not kernels. Their order follows from the sizes, so
/// the same tiles give the same bits. No memory is allocated; any thread.
namespace heddle::host {

/// y += |a| x, or |a|^T x, with as many columns of x as of y.
void add_magnitudes(const TileView& a, const TileView& x, const TileView& y);
void add_magnitudes_transposed(const TileView& a, const TileView& x, const TileView& y);

/// y += |s| x with what `piece` (rows x w) stores of the symmetric s: columns [offset, offset + w)
/// of a diagonal tile, on and below the diagonal, and their mirror image. What is above is not
/// read.
void add_magnitudes_symmetric(const TileView& piece, std::int64_t offset, const TileView& x,
                              const TileView& y);

/// y(k, r) += sum over i of (a(i, k) x(i, r))^2.
void add_squares_transposed(const TileView& a, const TileView& x, const TileView& y);

}  // namespace heddle::host
