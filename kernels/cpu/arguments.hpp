#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "kernels/kernel.hpp"
#include "kernels/kernels.hpp"

/// Unpacks the arguments of kernels. Arguments that do not match are defects and abort.
namespace heddle::kernel {

inline void check_tiles(const KernelArguments& arguments, std::size_t count) {
  HEDDLE_CHECK(arguments.tiles.size() == count, "{} tiles, {} expected", arguments.tiles.size(),
               count);
  for (const TileView& tile : arguments.tiles) {
    HEDDLE_CHECK(tile.rows >= 0 && tile.columns >= 0 && tile.leading >= tile.rows,
                 "a tile of {} x {} with leading dimension {}", tile.rows, tile.columns,
                 tile.leading);
  }
}

/// The same for a factored piece as the last of `count` tiles that its inverse blocks may follow
/// (kernels/kernels.hpp). Returns whether they do.
[[nodiscard]] inline bool check_tiles_and_inverses(const KernelArguments& arguments,
                                                   std::size_t count) {
  const bool given = arguments.tiles.size() == count + 1;
  check_tiles(arguments, given ? count + 1 : count);
  if (given) {
    const TileView& piece = arguments.tiles[count - 1];
    const TileView& inverses = arguments.tiles[count];
    HEDDLE_CHECK(inverses.rows >= 1 && inverses.columns == piece.columns,
                 "inverse blocks of {} x {} beside a piece of {} columns", inverses.rows,
                 inverses.columns, piece.columns);
  }
  return given;
}

/// A piece of a diagonal tile (PieceParameters): L11 and L21.
struct Piece {
  TileView square;
  TileView below;
};

[[nodiscard]] inline Piece split(const TileView& piece, std::int64_t offset) {
  const std::int64_t w = piece.columns;
  HEDDLE_CHECK(offset >= 0 && offset + w <= piece.rows,
               "a piece of {} columns at {} in a tile of {} rows", w, offset, piece.rows);
  return {piece.block(offset, 0, w, w), piece.block(offset + w, 0, piece.rows - offset - w, w)};
}

/// Rows [begin, begin + count).
[[nodiscard]] inline TileView rows_of(const TileView& x, std::int64_t begin, std::int64_t count) {
  HEDDLE_CHECK(begin >= 0 && begin + count <= x.rows, "rows [{}, {}) of {}", begin, begin + count,
               x.rows);
  return x.block(begin, 0, count, x.columns);
}

/// A piece of a lower triangle, and the rows of X that its square and the rows below it multiply.
struct LowerSolve {
  Piece l;
  TileView x1;
  TileView x2;
};

/// Tiles X and L of a solution with a piece (kernels/kernels.hpp).
[[nodiscard]] inline LowerSolve lower_solve(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const std::int64_t offset = arguments.parameters.as<PieceParameters>().offset;
  const TileView& x = arguments.tiles[0];
  const Piece l = split(arguments.tiles[1], offset);
  const std::int64_t w = l.square.rows;
  return {l, rows_of(x, offset, w), rows_of(x, offset + w, l.below.rows)};
}

/// The tiles of generate: the numbers of the part's columns and rows are empty where the kind has
/// none.
struct GenerateTiles {
  TileView out;
  TileView columns;
  TileView rows;
};

[[nodiscard]] inline GenerateTiles generate_tiles(const KernelArguments& arguments) {
  const auto parameters = arguments.parameters.as<GenerateParameters>();
  const ElementNumbers numbers = numbers_of(parameters.kind);
  const bool has_columns = numbers.of_column > 0;
  const bool has_rows = numbers.of_row > 0;
  check_tiles(arguments, std::size_t{1} + (has_columns ? 1 : 0) + (has_rows ? 1 : 0));
  GenerateTiles tiles{arguments.tiles[0], {}, {}};
  if (has_columns) {
    tiles.columns = rows_of(arguments.tiles[1], parameters.offset, tiles.out.columns);
  }
  if (has_rows) tiles.rows = arguments.tiles.back();
  HEDDLE_CHECK(tiles.columns.columns == numbers.of_column && tiles.rows.columns == numbers.of_row &&
                   (!has_rows || tiles.rows.rows == tiles.out.rows),
               "a part of {} x {} with {} numbers of columns and {} of {} rows", tiles.out.rows,
               tiles.out.columns, tiles.columns.columns, tiles.rows.columns, tiles.rows.rows);
  return tiles;
}

}  // namespace heddle::kernel
