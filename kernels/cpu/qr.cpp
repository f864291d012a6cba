#include "kernels/qr.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/householder.hpp"
#include "kernels/cpu/tile_operations.hpp"

namespace heddle::kernel {
namespace {

using host::Side;

void check_tiles(const KernelArguments& arguments, std::size_t count) {
  HEDDLE_CHECK(arguments.tiles.size() == count, "{} tiles, {} expected", arguments.tiles.size(),
               count);
}

TileView rows_of(const TileView& a, std::int64_t begin, std::int64_t count) {
  HEDDLE_CHECK(begin >= 0 && count >= 0 && begin + count <= a.rows, "rows [{}, {}) of {}", begin,
               begin + count, a.rows);
  return a.block(begin, 0, count, a.columns);
}

TileView active(const TileView& a, std::int64_t first) {
  return rows_of(a, first, a.rows - first);
}

/// A block of reflectors of a panel: its columns, and its triangle of T.
struct Block {
  std::int64_t begin;
  std::int64_t count;
};

/// Calls `work` for each block, from the left or from the right.
template <class Work>
void for_blocks(std::int64_t columns, std::int64_t inner, bool from_left, const Work& work) {
  HEDDLE_CHECK(inner >= 1, "blocks of {} reflectors", inner);
  const std::int64_t blocks = (columns + inner - 1) / inner;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t begin = (from_left ? b : blocks - 1 - b) * inner;
    work(Block{begin, std::min(inner, columns - begin)});
  }
}

TileView t_of(const TileView& t, Block block) {
  HEDDLE_CHECK(block.count <= t.rows && block.begin + block.count <= t.columns,
               "{} reflectors at {} in T of {} x {}", block.count, block.begin, t.rows, t.columns);
  return t.block(0, block.begin, block.count, block.count);
}

/// T has rows that a narrow last block does not use.
void clear_below(const TileView& t, Block block) {
  host::clear(t.block(block.count, block.begin, t.rows - block.count, block.count));
}

/// Rows [row, row + count) of tile1, taken from tile `last` if the task has that.
TileView taken_rows(const KernelArguments& arguments, std::size_t last, std::int64_t row,
                    std::int64_t count) {
  const TileView rows = rows_of(arguments.tiles[1], row, count);
  if (arguments.tiles.size() == last + 1) {
    host::copy(rows_of(arguments.tiles[last], row, count), rows);
  } else {
    check_tiles(arguments, last);
  }
  return rows;
}

std::int64_t run_geqrt(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView a = active(arguments.tiles[0], p.first);
  const std::int64_t w = a.columns;
  const TileView r = rows_of(arguments.tiles[1], p.row, w);
  const TileView& t = arguments.tiles[2];
  HEDDLE_CHECK(r.columns == w, "R of {} columns for a panel of {}", r.columns, w);
  for_blocks(w, p.inner, true, [&](Block block) {
    const std::int64_t rows = a.rows - block.begin;
    const TileView panel = a.block(block.begin, block.begin, rows, block.count);
    const std::int64_t end = block.begin + block.count;
    host::factor_reflectors(panel, t_of(t, block));
    host::apply_reflectors(Side::transposed, panel, t_of(t, block),
                           a.block(block.begin, end, rows, w - end));
    clear_below(t, block);
  });
  for (std::int64_t j = 0; j < w; ++j) {
    for (std::int64_t i = 0; i < w; ++i) r(i, j) = i <= j ? a(i, j) : 0.0;
  }
  return 0;
}

void apply(Side side, const TileView& c, const TileView& v, const TileView& t, std::int64_t inner) {
  for_blocks(v.columns, inner, side == Side::transposed, [&](Block block) {
    const std::int64_t rows = v.rows - block.begin;
    host::apply_reflectors(side, v.block(block.begin, block.begin, rows, block.count),
                           t_of(t, block), c.block(block.begin, 0, rows, c.columns));
  });
}

std::int64_t run_unmqr(const KernelArguments& arguments) {
  check_tiles(arguments, 4);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView c = active(arguments.tiles[0], p.first);
  const TileView v = active(arguments.tiles[2], p.first);
  apply(Side::transposed, c, v, arguments.tiles[3], p.inner);
  host::copy(rows_of(c, 0, v.columns), rows_of(arguments.tiles[1], p.row, v.columns));
  return 0;
}

std::int64_t run_unmqr_back(const KernelArguments& arguments) {
  check_tiles(arguments, 4);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView c = active(arguments.tiles[0], p.first);
  const TileView v = active(arguments.tiles[2], p.first);
  host::copy(rows_of(arguments.tiles[1], p.row, v.columns), rows_of(c, 0, v.columns));
  apply(Side::plain, c, v, arguments.tiles[3], p.inner);
  return 0;
}

void factor_below(const KernelArguments& arguments, bool triangular) {
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView& a = arguments.tiles[0];
  const std::int64_t w = a.columns;
  const TileView r = taken_rows(arguments, 3, p.row, w);
  const TileView& t = arguments.tiles[2];
  HEDDLE_CHECK(r.columns == w, "R of {} columns for a panel of {}", r.columns, w);
  for_blocks(w, p.inner, true, [&](Block block) {
    const std::int64_t end = block.begin + block.count;
    // Of two triangles, rows past the block's last column are zero.
    const std::int64_t rows = triangular ? std::min(a.rows, end) : a.rows;
    const TileView panel = a.block(0, block.begin, rows, block.count);
    const TileView top = r.block(block.begin, block.begin, block.count, block.count);
    host::factor_reflectors_below(top, panel, t_of(t, block), triangular);
    host::apply_reflectors_below(Side::transposed, panel, t_of(t, block),
                                 r.block(block.begin, end, block.count, w - end),
                                 a.block(0, end, rows, w - end));
    clear_below(t, block);
  });
}

std::int64_t run_tsqrt(const KernelArguments& arguments) {
  factor_below(arguments, false);
  return 0;
}

std::int64_t run_ttqrt(const KernelArguments& arguments) {
  factor_below(arguments, true);
  return 0;
}

void apply_below(const KernelArguments& arguments, Side side) {
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView& c = arguments.tiles[0];
  const TileView& v = arguments.tiles[2];
  const TileView d = taken_rows(arguments, 4, p.row, v.columns);
  for_blocks(v.columns, p.inner, side == Side::transposed, [&](Block block) {
    host::apply_reflectors_below(side, v.block(0, block.begin, v.rows, block.count),
                                 t_of(arguments.tiles[3], block),
                                 d.block(block.begin, 0, block.count, d.columns), c);
  });
}

std::int64_t run_tsmqr(const KernelArguments& arguments) {
  apply_below(arguments, Side::transposed);
  return 0;
}

std::int64_t run_tsmqr_back(const KernelArguments& arguments) {
  apply_below(arguments, Side::plain);
  return 0;
}

std::int64_t run_copy_rows(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const auto p = arguments.parameters.as<PanelParameters>();
  host::copy(rows_of(arguments.tiles[1], p.row, p.inner),
             rows_of(arguments.tiles[0], p.row, p.inner));
  return 0;
}

}  // namespace

// An emulated device computes on the processor too: both definitions are the same function.
constinit const Kernel geqrt{"geqrt", run_geqrt, run_geqrt};
constinit const Kernel unmqr{"unmqr", run_unmqr, run_unmqr};
constinit const Kernel unmqr_back{"unmqr_back", run_unmqr_back, run_unmqr_back};
constinit const Kernel tsqrt{"tsqrt", run_tsqrt, run_tsqrt};
constinit const Kernel tsmqr{"tsmqr", run_tsmqr, run_tsmqr};
constinit const Kernel tsmqr_back{"tsmqr_back", run_tsmqr_back, run_tsmqr_back};
constinit const Kernel ttqrt{"ttqrt", run_ttqrt, run_ttqrt};
constinit const Kernel copy_rows{"copy_rows", run_copy_rows, run_copy_rows};

}  // namespace heddle::kernel
