#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"

/// Sums and maxima over tiles for norms and determinants: plain helpers, not kernels. Sums run in
/// a fixed order (columns left to right, rows top to bottom), so the same tiles give the same bits.
/// Elements are multiplied by `unit`, a power of two: sums that would leave the range of doubles
/// stay inside with a small one. No memory is allocated; any thread.
namespace heddle::host {

/// columns[j] += sum over i of |tile(i, j)| unit; at least tile.columns entries.
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
