#include "kernels/qr.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/panels.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/fine/definitions.hpp"
#include "kernels/fine/parts.hpp"

/// Panels are cut into panels of a few blocks of reflectors, each a task from top to bottom, so
/// that what they leave is what the kernel leaves; all that reflectors are applied to is cut by
/// columns.
namespace heddle::kernel::fine {
namespace {

/// Column of a triangle at which an area's first column lies.
struct TriangleParameters {
  std::int64_t column = 0;
};

/// tile0 (m x n, out) := of the same area, tile1, what is on and above the triangle's diagonal, and
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

constinit const Kernel copy_upper{"copy_upper", run_copy_upper};
constinit const Kernel clear{"clear", run_clear};
constinit const Kernel ttqrt_panel{"ttqrt_panel", run_ttqrt_panel};
constinit const Kernel ttmqr_panel{"ttmqr_panel", run_ttmqr_panel};

/// Columns of a panel that one task factors: whole blocks of reflectors.
std::int64_t panel_step(std::int64_t small, std::int64_t inner) {
  return std::max<std::int64_t>(1, small / inner) * inner;
}

/// All of tile `tile`, of columns `j`.
TileArea columns_of(const KernelCase& what, std::uint8_t tile, Range j) {
  return {tile, 0, j.begin, what.operands[tile].rows, j.count};
}
TileArea all_of(const KernelCase& what, std::uint8_t tile) {
  return columns_of(what, tile, {0, what.operands[tile].columns});
}

/// to := the upper triangle of `from`, both w x w, by columns.
void add_copies(TileArea to, TileArea from, std::int64_t small, FineTasks& tasks) {
  for_parts(to.columns, small, [&](Range j) {
    tasks.add(copy_upper, KernelParameters(TriangleParameters{j.begin}),
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
  /// Of a kernel whose areas begin where its panel does.
  [[nodiscard]] KernelParameters within() const {
    return KernelParameters(PanelParameters{0, 0, p.inner});
  }
};

/// Reflectors applied to columns alone: tiles 2 and 3, V and T, are read as a whole.
void add_by_columns(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  for_parts(what.operands[0].columns, small, [&](Range j) {
    std::array<FineAccess, FineTask::accesses_max> accesses{
        writes(columns_of(what, 0, j)), writes(columns_of(what, 1, j)), reads(all_of(what, 2)),
        reads(all_of(what, 3))};
    for (std::uint8_t tile = 4; tile < what.operands.size(); ++tile) {
      accesses.at(tile) = reads(columns_of(what, tile, j));
    }
    tasks.add(*what.kernel, what.parameters, std::span(accesses).first(what.operands.size()));
  });
}

}  // namespace

void geqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const Panel panel(what);
  const std::int64_t w = what.operands[0].columns;
  const auto a = [&](Range from, Range j) {
    const std::int64_t row = panel.p.first + from.begin;
    return TileArea{0, row, j.begin, what.operands[0].rows - row, j.count};
  };
  const std::int64_t step = panel_step(small, panel.p.inner);
  for_parts(w, step, [&](Range j) {
    tasks.add(kernel::geqrt, panel.within(),
              {writes(a(j, j)), writes(panel.r(j, j)), writes(panel.t(j))});
    tasks.add(clear, KernelParameters{}, {writes(panel.r({j.end(), w - j.end()}, j))});
    for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(kernel::unmqr, panel.within(),
                {writes(a(j, c)), writes(panel.r(j, c)), reads(a(j, j)), reads(panel.t(j))});
    });
  });
}

void tsqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const Panel panel(what);
  const std::int64_t w = what.operands[0].columns;
  if (what.operands.size() > 3) {
    const TileArea r = panel.r({0, w}, {0, w});
    TileArea from = r;
    from.tile = 3;
    add_copies(r, from, small, tasks);
  }
  const std::int64_t step = panel_step(small, panel.p.inner);
  for_parts(w, step, [&](Range j) {
    const TileArea v = columns_of(what, 0, j);
    tasks.add(kernel::tsqrt, panel.within(),
              {writes(v), writes(panel.r(j, j)), writes(panel.t(j))});
    for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(
          kernel::tsmqr, panel.within(),
          {writes(columns_of(what, 0, c)), writes(panel.r(j, c)), reads(v), reads(panel.t(j))});
    });
  });
}

void ttqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
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
  for_parts(w, step, [&](Range j) {
    const KernelParameters parameters(TrapezoidParameters{j.begin, panel.p.inner});
    const auto rows_down_to_panel = [&](Range c) {
      return TileArea{0, 0, c.begin, j.end(), c.count};
    };
    const TileArea v = rows_down_to_panel(j);
    tasks.add(ttqrt_panel, parameters, {writes(v), writes(panel.r(j, j)), writes(panel.t(j))});
    for_parts_from(j.end(), w - j.end(), step, [&](Range c) {
      tasks.add(
          ttmqr_panel, parameters,
          {writes(rows_down_to_panel(c)), writes(panel.r(j, c)), reads(v), reads(panel.t(j))});
    });
  });
}

void unmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  add_by_columns(what, small, tasks);
}
void tsmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  add_by_columns(what, small, tasks);
}
void ttmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  add_by_columns(what, small, tasks);
}

void copy_rows(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  for_parts(what.operands[0].columns, small, [&](Range j) {
    tasks.add(kernel::copy_rows, what.parameters,
              {writes(columns_of(what, 0, j)), reads(columns_of(what, 1, j))});
  });
}

void copy_triangle(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const auto p = what.parameters.as<PanelParameters>();
  const std::int64_t w = p.inner;
  add_copies({0, p.row, 0, w, w}, {1, p.row, 0, w, w}, small, tasks);
}

}  // namespace heddle::kernel::fine
