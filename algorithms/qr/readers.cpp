#include <algorithm>
#include <cstdint>
#include <vector>

#include "algorithms/qr/panels.hpp"
#include "algorithms/qr/program.hpp"
#include "algorithms/qr/steps.hpp"
#include "algorithms/walk/job.hpp"

namespace heddle::qr_tree {
namespace {

using protocol::Reader;

/// The readers of what panels write and of what they take, for one job.
struct Readers {
  const QrMatrix& q;
  const QrOperand& x;
  Work work;

  [[nodiscard]] bool factorizes() const { return work == Work::factorize; }
  [[nodiscard]] const Distribution& grid() const { return x.x.distribution(); }
  [[nodiscard]] TileColumn first_column(TileColumn c) const {
    return factorizes() || work == Work::generate ? c : TileColumn{0};
  }
  /// The priority that panel c's tasks on column d have.
  [[nodiscard]] std::int32_t priority(TileColumn c, TileColumn d) const {
    if (factorizes()) return column_priority(x.x.layout().tile_columns(), d, c == d ? 1 : 0);
    const std::int32_t panels = q.a.layout().tile_columns();
    const TileColumn turn = goes_up(work) ? TileColumn{panels - 1 - c.value()} : c;
    return column_priority(panels, turn, 0);
  }

  /// Reflectors of tall tile i in column c, or their T: along the row, from the first column that
  /// they are applied to.
  [[nodiscard]] std::vector<Reader> along_row(TileRow i, TileColumn c) const {
    const TileLayout& l = x.x.layout();
    const TileColumn from = factorizes() ? c + 1 : first_column(c);
    std::vector<Reader> readers;
    if (from >= l.end_column()) return readers;
    const WideColumn wide = q.a.layout().wide_of(c);
    const WideColumn first = l.wide_of(from);
    const WideColumn end = std::min(l.end_wide(), first + grid().grid_columns);
    for (WideColumn j = first; j < end; ++j) {
      if ((j - wide) % grid().grid_columns == 0) continue;
      const TileColumn d = std::max(l.wide_begin(j), from);
      readers.push_back({grid().node(i, j), priority(c, d)});
    }
    return readers;
  }

  /// Rows beside R that panel c's tasks on column d take.
  [[nodiscard]] std::vector<Reader> taker(const Rows& rows, TileColumn c, TileColumn d) const {
    const TileRow top = top_of(q, c);
    const WideColumn wide = x.x.layout().wide_of(d);
    const TileRow end = q.a.layout().end_row();
    const TileRow at = taker_of(q.tree, top, end, has_short_below(q, top),
                                goes_up(work) ? Way::up : Way::down, rows);
    const NodeId reader = grid().node(at, wide);
    if (reader == grid().node(rows.tile, wide)) return {};
    return {{reader, priority(c, d)}};
  }

  /// Whether a task of panel c leaves such rows.
  [[nodiscard]] bool are_left(const Rows& rows, TileColumn c) const {
    const TileRow top = top_of(q, c);
    if (rows.slot == Rows::Slot::carried) return rows.tile > top && has_pair(q, rows.tile);
    if (goes_up(work)) return rows.tile > top;
    return rows.tile > top || (rows.tile == top && top + 1 < q.a.layout().end_row());
  }

  [[nodiscard]] std::vector<Reader> of_traveling(std::int32_t row, TileColumn d,
                                                 Version version) const {
    const std::int32_t each = slots(q.tree);
    const Rows rows{TileRow{row / each}, row % each == 0 ? Rows::Slot::kept : Rows::Slot::carried};
    const TileColumn c{goes_up(work) ? panels_on(q, work, rows.tile, d) - version.value()
                                     : version.value() - 1};
    const bool is_panel = version > Version{0} && c >= TileColumn{0} &&
                          c < q.a.layout().end_column() && d >= first_column(c);
    if (!is_panel || !are_left(rows, c)) return {};
    return taker(rows, c, d);
  }

  /// R's rows, which the panels of a wide column take one after the other on the way up: all on the
  /// same node.
  [[nodiscard]] std::vector<Reader> of_top(WideColumn wide, TileColumn d, Version version) const {
    if (!goes_up(work) || version != Version{0} || wide >= q.a.layout().end_wide()) return {};
    TileColumn c = q.a.layout().wide_begin(wide + 1) - 1;
    if (work == Work::generate) c = std::min(c, d);
    if (c < q.a.layout().wide_begin(wide)) return {};
    return taker({top_of(q, c), Rows::Slot::r}, c, d);
  }
};

}  // namespace

std::vector<Reader> readers_of(const QrMatrix& q, const QrOperand& x, Work work,
                               protocol::TileId tile, Version version) {
  const Readers readers{q, x, work};
  const auto row = [&](const Matrix<double>& m) { return tile.index % m.layout().tile_rows(); };
  const auto column = [&](const Matrix<double>& m) {
    return TileColumn{tile.index / m.layout().tile_rows()};
  };
  if (tile.matrix == x.traveling.id()) {
    return readers.of_traveling(row(x.traveling), column(x.traveling), version);
  }
  if (tile.matrix == x.top.id()) {
    return readers.of_top(WideColumn{row(x.top)}, column(x.top), version);
  }
  const bool is_v = tile.matrix == q.a.id();
  const bool is_pair = q.pair_v && (tile.matrix == q.pair_v->id() || tile.matrix == q.pair_t->id());
  if (!is_v && !is_pair && tile.matrix != q.t.id()) return {};
  const TileRow i{row(q.a)};
  const TileColumn c = column(q.a);
  const TileRow top = top_of(q, c);
  std::int32_t writes = work == Work::factorize ? 1 : 0;
  if (is_v && work == Work::factorize) {
    writes = c.value() + 1 + (has_pair(q, i) ? std::min(c.value(), panels_above(q, i)) : 0);
  }
  const bool is_made = is_pair ? i > top && has_pair(q, i) : i >= top;
  if (!is_made || version != Version{writes}) return {};
  return readers.along_row(i, c);
}

}  // namespace heddle::qr_tree
