#include "kernels/qr.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/householder.hpp"
#include "kernels/cpu/panels.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/fine/definitions.hpp"
#include "kernels/reflector_blocks.hpp"

namespace heddle::kernel {
namespace {

using host::Side;

TileView active(const TileView& a, std::int64_t first) {
  return rows_of(a, first, a.rows - first);
}

/// The triangle of T of a block of reflectors.
TileView t_of(const TileView& t, Range block) {
  HEDDLE_CHECK(block.count <= t.rows && block.begin + block.count <= t.columns,
               "{} reflectors at {} in T of {} x {}", block.count, block.begin, t.rows, t.columns);
  return t.block(0, block.begin, block.count, block.count);
}

/// T has rows that a narrow last block does not use.
void clear_below(const TileView& t, Range block) {
  host::clear(t.block(block.count, block.begin, t.rows - block.count, block.count));
}

/// to := the upper triangle of `from`, square, and zeros below it.
void copy_upper(const TileView& from, const TileView& to) {
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns && to.rows == to.columns,
               "{} x {} to {} x {}", from.rows, from.columns, to.rows, to.columns);
  for (std::int64_t j = 0; j < to.columns; ++j) {
    std::copy_n(&from(0, j), j + 1, &to(0, j));
    std::fill_n(&to(0, j) + j + 1, to.rows - j - 1, 0.0);
  }
}

std::int64_t run_geqrt(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView a = active(arguments.tiles[0], p.first);
  const std::int64_t w = a.columns;
  const TileView r = rows_of(arguments.tiles[1], p.row, w);
  const TileView& t = arguments.tiles[2];
  HEDDLE_CHECK(r.columns == w, "R of {} columns for a panel of {}", r.columns, w);
  for_blocks(w, p.inner, true, [&](Range block) {
    const std::int64_t rows = a.rows - block.begin;
    const TileView panel = a.block(block.begin, block.begin, rows, block.count);
    const std::int64_t end = block.begin + block.count;
    host::factor_reflectors(panel, t_of(t, block));
    host::apply_reflectors(Side::transposed, panel, t_of(t, block),
                           a.block(block.begin, end, rows, w - end));
    clear_below(t, block);
  });
  copy_upper(rows_of(a, 0, w), r);
  return 0;
}

void apply(Side side, const TileView& c, const TileView& v, const TileView& t, std::int64_t inner) {
  for_blocks(v.columns, inner, side == Side::transposed, [&](Range block) {
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

std::int64_t run_tsqrt(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView& a = arguments.tiles[0];
  const TileView r = rows_of(arguments.tiles[1], p.row, a.columns);
  if (arguments.tiles.size() == 4) {
    copy_upper(rows_of(arguments.tiles[3], p.row, a.columns), r);
  } else {
    check_tiles(arguments, 3);
  }
  factor_below(r, a, arguments.tiles[2], p.inner, std::nullopt);
  return 0;
}

std::int64_t run_ttqrt(const KernelArguments& arguments) {
  check_tiles(arguments, 5);
  const auto p = arguments.parameters.as<PanelParameters>();
  const std::int64_t w = arguments.tiles[0].columns;
  const TileView v = rows_of(arguments.tiles[0], 0, w);
  const TileView r = rows_of(arguments.tiles[1], p.row, w);
  copy_upper(rows_of(arguments.tiles[3], p.row, w), r);
  copy_upper(rows_of(arguments.tiles[4], p.row, w), v);
  factor_below(r, v, arguments.tiles[2], p.inner, 0);
  return 0;
}

void run_on_tile_below(const KernelArguments& arguments, Side side) {
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView& v = arguments.tiles[2];
  const TileView d = rows_of(arguments.tiles[1], p.row, v.columns);
  if (arguments.tiles.size() == 5) {
    host::copy(rows_of(arguments.tiles[4], p.row, v.columns), d);
  } else {
    check_tiles(arguments, 4);
  }
  apply_below(side, d, arguments.tiles[0], v, arguments.tiles[3], p.inner, std::nullopt);
}

std::int64_t run_tsmqr(const KernelArguments& arguments) {
  run_on_tile_below(arguments, Side::transposed);
  return 0;
}

std::int64_t run_tsmqr_back(const KernelArguments& arguments) {
  run_on_tile_below(arguments, Side::plain);
  return 0;
}

/// The reflectors of a pair as a whole square: what is below the triangle need not be there.
TileView triangle_of(const TileView& tile) {
  thread_local std::vector<double> memory;
  const std::int64_t w = tile.columns;
  const auto size = static_cast<std::size_t>(w * w);
  if (memory.size() < size) memory.resize(size);
  const TileView v{memory.data(), w, w, std::max<std::int64_t>(1, w)};
  copy_upper(rows_of(tile, 0, w), v);
  return v;
}

/// On the way down C stands in its own tile afterwards, on the way up before.
void run_on_pair(const KernelArguments& arguments, Side side) {
  check_tiles(arguments, 6);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView v = triangle_of(arguments.tiles[2]);
  const std::int64_t out = side == Side::transposed ? 0 : p.row;
  const std::int64_t in = side == Side::transposed ? p.row : 0;
  const TileView c = rows_of(arguments.tiles[0], out, v.columns);
  const TileView d = rows_of(arguments.tiles[1], p.row, v.columns);
  host::copy(rows_of(arguments.tiles[4], p.row, v.columns), d);
  host::copy(rows_of(arguments.tiles[5], in, v.columns), c);
  apply_below(side, d, c, v, arguments.tiles[3], p.inner, 0);
}

std::int64_t run_ttmqr(const KernelArguments& arguments) {
  run_on_pair(arguments, Side::transposed);
  return 0;
}

std::int64_t run_ttmqr_back(const KernelArguments& arguments) {
  run_on_pair(arguments, Side::plain);
  return 0;
}

std::int64_t run_copy_rows(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const auto p = arguments.parameters.as<PanelParameters>();
  host::copy(rows_of(arguments.tiles[1], p.row, p.inner),
             rows_of(arguments.tiles[0], p.row, p.inner));
  return 0;
}

std::int64_t run_copy_triangle(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const auto p = arguments.parameters.as<PanelParameters>();
  copy_upper(rows_of(arguments.tiles[1], p.row, p.inner),
             rows_of(arguments.tiles[0], p.row, p.inner));
  return 0;
}

}  // namespace

void factor_below(const TileView& r, const TileView& a, const TileView& t, std::int64_t inner,
                  RowsAboveTriangle triangle) {
  const std::int64_t w = a.columns;
  for_blocks(w, inner, true, [&](Range block) {
    const std::int64_t end = block.end();
    const std::int64_t rows = triangle ? std::min(a.rows, *triangle + end) : a.rows;
    const TileView panel = a.block(0, block.begin, rows, block.count);
    const TileView top = r.block(block.begin, block.begin, block.count, block.count);
    host::factor_reflectors_below(top, panel, t_of(t, block), triangle.has_value());
    host::apply_reflectors_below(Side::transposed, panel, t_of(t, block),
                                 r.block(block.begin, end, block.count, w - end),
                                 a.block(0, end, rows, w - end));
    clear_below(t, block);
  });
}

void apply_below(Side side, const TileView& d, const TileView& c, const TileView& v,
                 const TileView& t, std::int64_t inner, RowsAboveTriangle triangle) {
  for_blocks(v.columns, inner, side == Side::transposed, [&](Range block) {
    const std::int64_t rows = triangle ? *triangle + block.end() : v.rows;
    host::apply_reflectors_below(side, v.block(0, block.begin, rows, block.count), t_of(t, block),
                                 d.block(block.begin, 0, block.count, d.columns),
                                 c.block(0, 0, rows, c.columns));
  });
}

// An emulated device computes on the processor too: both definitions are the same function.
constinit const Kernel geqrt{"geqrt", run_geqrt, run_geqrt, cuda::geqrt, fine::geqrt};
constinit const Kernel unmqr{"unmqr", run_unmqr, run_unmqr, cuda::unmqr, fine::unmqr};
constinit const Kernel unmqr_back{"unmqr_back", run_unmqr_back, run_unmqr_back, cuda::unmqr_back,
                                  fine::unmqr};
constinit const Kernel tsqrt{"tsqrt", run_tsqrt, run_tsqrt, cuda::tsqrt, fine::tsqrt};
constinit const Kernel tsmqr{"tsmqr", run_tsmqr, run_tsmqr, cuda::tsmqr, fine::tsmqr};
constinit const Kernel tsmqr_back{"tsmqr_back", run_tsmqr_back, run_tsmqr_back, cuda::tsmqr_back,
                                  fine::tsmqr};
constinit const Kernel ttqrt{"ttqrt", run_ttqrt, run_ttqrt, cuda::ttqrt, fine::ttqrt};
constinit const Kernel ttmqr{"ttmqr", run_ttmqr, run_ttmqr, cuda::ttmqr, fine::ttmqr};
constinit const Kernel ttmqr_back{"ttmqr_back", run_ttmqr_back, run_ttmqr_back, cuda::ttmqr_back,
                                  fine::ttmqr};
constinit const Kernel copy_rows{"copy_rows", run_copy_rows, run_copy_rows, cuda::copy_rows,
                                 fine::copy_rows};
constinit const Kernel copy_triangle{"copy_triangle", run_copy_triangle, run_copy_triangle,
                                     cuda::copy_triangle, fine::copy_triangle};

}  // namespace heddle::kernel
