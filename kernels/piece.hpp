#pragma once

#include <cstdint>

namespace heddle::kernel {

/// First column of a diagonal tile's piece within its wide column; 0 for square tiles.
///
/// A *piece* of width w is a tile of w columns that begins at column `offset` of its wide column. A
/// piece of a diagonal tile is stored with all rows of its tile. Of a lower triangular or symmetric
/// matrix its rows above `offset` and the strictly upper part of the w x w block at row `offset`
/// are zero, and every kernel leaves them untouched: L11 is the lower triangle of that block, L21
/// the rows beneath it. Of an upper triangular matrix, U11 is the upper triangle of that block, U01
/// the rows above it, and nothing below is read.
struct PieceParameters {
  std::int64_t offset = 0;
};

}  // namespace heddle::kernel
