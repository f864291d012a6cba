#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"

/// Sums over tiles for norms: plain helpers, not kernels. Their order follows from the sizes, so
/// the same tiles give the same bits. No memory is allocated; any thread.
namespace heddle::host {

/// y += |a| x, or |a|^T x, with as many columns of x as of y.
void add_magnitudes(const TileView& a, const TileView& x, const TileView& y);
void add_magnitudes_transposed(const TileView& a, const TileView& x, const TileView& y);

/// y += |a| x with a symmetric, lower part stored.
void add_magnitudes_symmetric(const TileView& a, const TileView& x, const TileView& y);

/// y(k, r) += sum over i of (a(i, k) x(i, r))^2.
void add_squares_transposed(const TileView& a, const TileView& x, const TileView& y);

/// columns[j] += sum over i of |tile(i, j)| unit; at least tile.columns entries. `unit` is a power
/// of two: sums that would leave the range of doubles stay inside with a small one.
void add_column_sums(const TileView& tile, std::span<double> columns, double unit = 1);

/// rows[i] += sum over j of |tile(i, j)| unit; at least tile.rows entries.
void add_row_sums(const TileView& tile, std::span<double> rows, double unit = 1);

/// Absolute row sums (which are the column sums) of the symmetric matrix of which `piece` (rows x
/// w) stores a part: columns [offset, offset + w) of a diagonal tile, on and below the diagonal.
/// Adds to sums[i], i counted within the tile (`rows` entries), what the stored columns and their
/// mirror image contribute; over all pieces of the tile this gives the tile's sums. Elements above
/// the diagonal are not read.
void add_symmetric_sums(const TileView& piece, std::int64_t offset, std::span<double> sums,
                        double unit = 1);

/// Largest |tile(i, j)|, 0 for an empty tile; NaN if any element is NaN.
[[nodiscard]] double max_abs(const TileView& tile);

}  // namespace heddle::host
