#include "kernels/cpu/panels.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/reflector_blocks.hpp"

namespace heddle::kernel {
namespace {

using host::Side;

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

}  // namespace

void copy_upper(const TileView& from, const TileView& to) {
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns && to.rows == to.columns,
               "{} x {} to {} x {}", from.rows, from.columns, to.rows, to.columns);
  for (std::int64_t j = 0; j < to.columns; ++j) {
    std::copy_n(&from(0, j), j + 1, &to(0, j));
    std::fill_n(&to(0, j) + j + 1, to.rows - j - 1, 0.0);
  }
}

void factor_panel(const TileView& a, const TileView& t, std::int64_t inner) {
  const std::int64_t w = a.columns;
  for_blocks(w, inner, true, [&](Range block) {
    const std::int64_t rows = a.rows - block.begin;
    const TileView panel = a.block(block.begin, block.begin, rows, block.count);
    const std::int64_t end = block.end();
    host::factor_reflectors(panel, t_of(t, block));
    host::apply_reflectors(Side::transposed, panel, t_of(t, block),
                           a.block(block.begin, end, rows, w - end));
    clear_below(t, block);
  });
}

void apply_panel(Side side, const TileView& c, const TileView& v, const TileView& t,
                 std::int64_t inner) {
  for_blocks(v.columns, inner, side == Side::transposed, [&](Range block) {
    const std::int64_t rows = v.rows - block.begin;
    host::apply_reflectors(side, v.block(block.begin, block.begin, rows, block.count),
                           t_of(t, block), c.block(block.begin, 0, rows, c.columns));
  });
}

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

}  // namespace heddle::kernel
