#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/defined.hpp"
#include "kernels/cpu/panels.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/fine/fine_tasks.hpp"
#include "kernels/fine/parts.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel {
namespace {

using host::Side;

TileView active(const TileView& a, std::int64_t first) {
  return rows_of(a, first, a.rows - first);
}

std::int64_t run_geqrt(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView a = active(arguments.tiles[0], p.first);
  const std::int64_t w = a.columns;
  const TileView r = rows_of(arguments.tiles[1], p.row, w);
  HEDDLE_CHECK(r.columns == w, "R of {} columns for a panel of {}", r.columns, w);
  factor_panel(a, arguments.tiles[2], p.inner);
  copy_upper(rows_of(a, 0, w), r);
  return 0;
}

std::int64_t run_unmqr(const KernelArguments& arguments) {
  check_tiles(arguments, 4);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView c = active(arguments.tiles[0], p.first);
  const TileView v = active(arguments.tiles[2], p.first);
  apply_panel(Side::transposed, c, v, arguments.tiles[3], p.inner);
  host::copy(rows_of(c, 0, v.columns), rows_of(arguments.tiles[1], p.row, v.columns));
  return 0;
}

std::int64_t run_unmqr_back(const KernelArguments& arguments) {
  check_tiles(arguments, 4);
  const auto p = arguments.parameters.as<PanelParameters>();
  const TileView c = active(arguments.tiles[0], p.first);
  const TileView v = active(arguments.tiles[2], p.first);
  host::copy(rows_of(arguments.tiles[1], p.row, v.columns), rows_of(c, 0, v.columns));
  apply_panel(Side::plain, c, v, arguments.tiles[3], p.inner);
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

/// The reflectors of a pair as a full square; elements of the tile below the triangle are
/// undefined.
TileView triangle_of(const TileView& tile) {
  thread_local std::vector<double> memory;
  const std::int64_t w = tile.columns;
  const auto size = static_cast<std::size_t>(w * w);
  if (memory.size() < size) memory.resize(size);
  const TileView v{memory.data(), w, w, std::max<std::int64_t>(1, w)};
  copy_upper(rows_of(tile, 0, w), v);
  return v;
}

/// Forward, C is in its own tile after the kernel; backward, before it.
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

// ---- fine-grain forms --------------------------------------------------------------------------
// A panel is cut into panels of a few blocks of reflectors, each a task over all rows, so that the
// result is the kernel's; the tile that reflectors are applied to is cut by columns.

/// Column of a triangle at which an area's first column lies.
struct TriangleParameters {
  std::int64_t column = 0;
};

/// tile0 (m x n, out) := the elements of tile1 (m x n) on and above the triangle's diagonal, and
/// zeros below it.
std::int64_t run_copy_upper(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const std::int64_t first = arguments.parameters.as<TriangleParameters>().column;
  const TileView& to = arguments.tiles[0];
  const TileView& from = arguments.tiles[1];
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns, "{} x {} to {} x {}", from.rows,
               from.columns, to.rows, to.columns);
  for (std::int64_t j = 0; j < to.columns; ++j) {
    const std::int64_t count = std::min(to.rows, first + j + 1);
    std::copy_n(&from(0, j), count, &to(0, j));
    std::fill_n(&to(0, j) + count, to.rows - count, 0.0);
  }
  return 0;
}

std::int64_t run_clear(const KernelArguments& arguments) {
  check_tiles(arguments, 1);
  host::clear(arguments.tiles[0]);
  return 0;
}

/// Blocks of reflectors whose lower ends form a triangle that began `above` rows higher.
struct TrapezoidParameters {
  std::int64_t above = 0;
  std::int64_t inner = 1;
};

/// Some columns of ttqrt's panel: tile0 (above + w rows, in/out): V; tile1 (w x w, in/out): R;
/// tile2 (inner x w, out): T.
std::int64_t run_ttqrt_panel(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto p = arguments.parameters.as<TrapezoidParameters>();
  factor_below(arguments.tiles[1], arguments.tiles[0], arguments.tiles[2], p.inner, p.above);
  return 0;
}

/// [D; C] := Q^T [D; C] with reflectors of ttqrt_panel. tile0 = C (above + w rows), tile1 = D (w
/// rows), tile2 = V, tile3 = T.
std::int64_t run_ttmqr_panel(const KernelArguments& arguments) {
  check_tiles(arguments, 4);
  const auto p = arguments.parameters.as<TrapezoidParameters>();
  apply_below(host::Side::transposed, arguments.tiles[1], arguments.tiles[0], arguments.tiles[2],
              arguments.tiles[3], p.inner, p.above);
  return 0;
}

constinit const Kernel copy_upper_part{.name = "copy_upper", .host = run_copy_upper};
constinit const Kernel clear_part{.name = "clear", .host = run_clear};

/// Columns of a panel that one task factors: whole blocks of reflectors.
std::int64_t panel_step(std::int64_t small, std::int64_t inner) {
  return std::max<std::int64_t>(1, small / inner) * inner;
}

/// All rows of columns `j` of tile `tile`.
TileArea columns_of(const KernelCase& what, std::uint8_t tile, Range j) {
  return {tile, 0, j.begin, what.operands[tile].rows, j.count};
}
TileArea all_of(const KernelCase& what, std::uint8_t tile) {
  return columns_of(what, tile, {0, what.operands[tile].columns});
}

/// to := the upper triangle of `from`, both w x w, by columns.
void add_copies(TileArea to, TileArea from, std::int64_t small, FineTasks& tasks) {
  fine::for_parts(to.columns, small, [&](Range j) {
    tasks.add(copy_upper_part, KernelParameters(TriangleParameters{j.begin}),
              {writes({to.tile, to.row, to.column + j.begin, to.rows, j.count}),
               reads({from.tile, from.row, from.column + j.begin, from.rows, j.count})});
  });
}

/// How the tiles of a panel's kernels are cut: tile0 A or V, tile1 R, tile2 T.
struct Panel {
  PanelParameters p;
  std::int64_t t_rows;

  explicit Panel(const KernelCase& what)
      : p(what.parameters.as<PanelParameters>()), t_rows(what.operands[2].rows) {}

  [[nodiscard]] TileArea r(Range i, Range j) const {
    return {1, p.row + i.begin, j.begin, i.count, j.count};
  }
  [[nodiscard]] TileArea t(Range j) const { return {2, 0, j.begin, t_rows, j.count}; }
  /// Parameters of a kernel whose areas begin where its panel does.
  [[nodiscard]] KernelParameters within() const {
    return KernelParameters(PanelParameters{0, 0, p.inner});
  }
};

/// Reflectors are applied by columns: each fine task reads all of tiles 2 and 3, V and T.
void divide_by_columns(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  fine::for_parts(what.operands[0].columns, small, [&](Range j) {
    std::array<FineAccess, FineTask::accesses_max> accesses{
        writes(columns_of(what, 0, j)), writes(columns_of(what, 1, j)), reads(all_of(what, 2)),
        reads(all_of(what, 3))};
    for (std::uint8_t tile = 4; tile < what.operands.size(); ++tile) {
      accesses.at(tile) = reads(columns_of(what, tile, j));
    }
    tasks.add(*what.kernel, what.parameters, std::span(accesses).first(what.operands.size()));
  });
}

void divide_geqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const Panel panel(what);
  const std::int64_t w = what.operands[0].columns;
  const auto a = [&](Range from, Range j) {
    const std::int64_t row = panel.p.first + from.begin;
    return TileArea{0, row, j.begin, what.operands[0].rows - row, j.count};
  };
  const std::int64_t step = panel_step(small, panel.p.inner);
  fine::for_parts(w, step, [&](Range j) {
    tasks.add(geqrt, panel.within(), {writes(a(j, j)), writes(panel.r(j, j)), writes(panel.t(j))});
    tasks.add(clear_part, KernelParameters{}, {writes(panel.r({j.end(), w - j.end()}, j))});
    fine::for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(unmqr, panel.within(),
                {writes(a(j, c)), writes(panel.r(j, c)), reads(a(j, j)), reads(panel.t(j))});
    });
  });
}

void divide_tsqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const Panel panel(what);
  const std::int64_t w = what.operands[0].columns;
  if (what.operands.size() > 3) {
    const TileArea r = panel.r({0, w}, {0, w});
    TileArea from = r;
    from.tile = 3;
    add_copies(r, from, small, tasks);
  }
  const std::int64_t step = panel_step(small, panel.p.inner);
  fine::for_parts(w, step, [&](Range j) {
    const TileArea v = columns_of(what, 0, j);
    tasks.add(tsqrt, panel.within(), {writes(v), writes(panel.r(j, j)), writes(panel.t(j))});
    fine::for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(
          tsmqr, panel.within(),
          {writes(columns_of(what, 0, c)), writes(panel.r(j, c)), reads(v), reads(panel.t(j))});
    });
  });
}

void divide_ttqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const Panel panel(what);
  const std::int64_t w = what.operands[0].columns;
  const TileArea r = panel.r({0, w}, {0, w});
  const auto input = [&](std::uint8_t tile) {
    TileArea area = r;
    area.tile = tile;
    return area;
  };
  add_copies(r, input(3), small, tasks);
  add_copies({0, 0, 0, w, w}, input(4), small, tasks);
  const std::int64_t step = panel_step(small, panel.p.inner);
  fine::for_parts(w, step, [&](Range j) {
    const KernelParameters parameters(TrapezoidParameters{j.begin, panel.p.inner});
    const auto rows_down_to_panel = [&](Range c) {
      return TileArea{0, 0, c.begin, j.end(), c.count};
    };
    const TileArea v = rows_down_to_panel(j);
    tasks.add(ttqrt_panel, parameters, {writes(v), writes(panel.r(j, j)), writes(panel.t(j))});
    fine::for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(
          ttmqr_panel, parameters,
          {writes(rows_down_to_panel(c)), writes(panel.r(j, c)), reads(v), reads(panel.t(j))});
    });
  });
}

void divide_copy_rows(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  fine::for_parts(what.operands[0].columns, small, [&](Range j) {
    tasks.add(copy_rows, what.parameters,
              {writes(columns_of(what, 0, j)), reads(columns_of(what, 1, j))});
  });
}

void divide_copy_triangle(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const auto p = what.parameters.as<PanelParameters>();
  const std::int64_t w = p.inner;
  add_copies({0, p.row, 0, w, w}, {1, p.row, 0, w, w}, small, tasks);
}

// ---- operations --------------------------------------------------------------------------------

double active_rows(const KernelCase& what) {
  return what.rows(0) - static_cast<double>(what.parameters.as<PanelParameters>().first);
}
double geqrt_flops(const KernelCase& what) {
  const double w = what.columns(0);
  return 2 * w * w * (active_rows(what) - w / 3);
}
double unmqr_flops(const KernelCase& what) {
  const double w = what.columns(2);
  return (4 * active_rows(what) - 2 * w) * w * what.columns(0);
}
double tsqrt_flops(const KernelCase& what) {
  return 2 * what.rows(0) * what.columns(0) * what.columns(0);
}
double tsmqr_flops(const KernelCase& what) {
  return 4 * what.rows(0) * what.columns(2) * what.columns(0);
}
double ttqrt_flops(const KernelCase& what) {
  const double w = what.columns(0);
  return 2 * w * w * w / 3;
}
double ttmqr_flops(const KernelCase& what) {
  return 2 * what.columns(2) * what.columns(2) * what.columns(0);
}

}  // namespace

constinit const Kernel geqrt = defined("geqrt", run_geqrt, cuda::geqrt, divide_geqrt, geqrt_flops);
constinit const Kernel unmqr =
    defined("unmqr", run_unmqr, cuda::unmqr, divide_by_columns, unmqr_flops);
constinit const Kernel unmqr_back =
    defined("unmqr_back", run_unmqr_back, cuda::unmqr_back, divide_by_columns, unmqr_flops);
constinit const Kernel tsqrt = defined("tsqrt", run_tsqrt, cuda::tsqrt, divide_tsqrt, tsqrt_flops);
constinit const Kernel tsmqr =
    defined("tsmqr", run_tsmqr, cuda::tsmqr, divide_by_columns, tsmqr_flops);
constinit const Kernel tsmqr_back =
    defined("tsmqr_back", run_tsmqr_back, cuda::tsmqr_back, divide_by_columns, tsmqr_flops);
constinit const Kernel ttqrt = defined("ttqrt", run_ttqrt, cuda::ttqrt, divide_ttqrt, ttqrt_flops);
constinit const Kernel ttmqr =
    defined("ttmqr", run_ttmqr, cuda::ttmqr, divide_by_columns, ttmqr_flops);
constinit const Kernel ttmqr_back =
    defined("ttmqr_back", run_ttmqr_back, cuda::ttmqr_back, divide_by_columns, ttmqr_flops);
constinit const Kernel copy_rows =
    defined("copy_rows", run_copy_rows, cuda::copy_rows, divide_copy_rows);
constinit const Kernel copy_triangle =
    defined("copy_triangle", run_copy_triangle, cuda::copy_triangle, divide_copy_triangle);
constinit const Kernel ttqrt_panel{.name = "ttqrt_panel", .host = run_ttqrt_panel};
constinit const Kernel ttmqr_panel{.name = "ttmqr_panel", .host = run_ttmqr_panel};

}  // namespace heddle::kernel
