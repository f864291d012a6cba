#include "algorithms/qr/program.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "algorithms/qr/operand_places.hpp"
#include "algorithms/qr/panels.hpp"
#include "algorithms/qr/steps.hpp"
#include "algorithms/walk/job.hpp"
#include "algorithms/walk/own_part.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle::qr_tree {
namespace {

/// The first row of tall tile i that is at or below the diagonal in column c.
std::int64_t first_row_of(const QrMatrix& q, TileRow i, TileColumn c) {
  const TileLayout& l = q.a.layout();
  return i == top_of(q, c) ? l.column_begin(c) - l.row_begin(i) : 0;
}

/// The tasks of a panel whose diagonal passes through tall tile `top`.
std::vector<Step> steps_of(const QrMatrix& q, Work work, TileRow top) {
  const TileRow end = q.a.layout().end_row();
  return make_steps(q.tree, top, end, has_short_below(q, top), goes_up(work) ? Way::up : Way::down);
}

/// One panel: tile column c of a factorization.
struct Panel {
  const QrMatrix& q;
  Work work;
  TileColumn c;
  WideColumn wide;
  TileRow top;  ///< the tall tile that the diagonal passes through

  Panel(const QrMatrix& matrix, Work what, TileColumn column)
      : q(matrix),
        work(what),
        c(column),
        wide(matrix.a.layout().wide_of(column)),
        top(top_of(matrix, column)) {}

  [[nodiscard]] bool factorizes() const { return work == Work::factorize; }
  [[nodiscard]] KernelParameters parameters(TileRow i) const {
    return KernelParameters(
        kernel::PanelParameters{first_row_of(q, i, c), q.a.layout().offset_in_wide(c), q.inner});
  }
  [[nodiscard]] KernelParameters copied_rows() const {
    const TileLayout& l = q.a.layout();
    return KernelParameters(kernel::PanelParameters{0, l.offset_in_wide(c), l.column_count(c)});
  }
  /// Reflectors of tall tile i. Each panel before has written the tile once, and once more where
  /// the tile ended a pair.
  [[nodiscard]] protocol::Access v(TileRow i) const {
    std::int32_t writes = 0;
    if (factorizes()) {
      writes = c.value() + 1;
      if (has_pair(i)) writes += std::min(c.value(), panels_above(q, i));
    }
    return read(q.a(i, c), Version{writes});
  }
  [[nodiscard]] protocol::Access t(TileRow i) const { return made_here(q.t, i); }
  /// The pair that ends with tall tile i, i > top.
  [[nodiscard]] protocol::Access pair_v(TileRow i) const { return made_here(*q.pair_v, i); }
  [[nodiscard]] protocol::Access pair_t(TileRow i) const { return made_here(*q.pair_t, i); }
  [[nodiscard]] protocol::Access v_of(const Step& step) const {
    return step.kind == Step::Kind::pair ? pair_v(step.tile) : v(step.tile);
  }
  [[nodiscard]] protocol::Access t_of(const Step& step) const {
    return step.kind == Step::Kind::pair ? pair_t(step.tile) : t(step.tile);
  }
  [[nodiscard]] bool has_pair(TileRow i) const { return qr_tree::has_pair(q, i); }
  /// What the step leaves, on this node, goes to the columns that it is applied to.
  void publish(TaskStream& tasks, const Step& step) const {
    if (step.kind == Step::Kind::home) return;
    tasks.publish(v_of(step));
    tasks.publish(t_of(step));
  }
  /// Gives up this node's copies of the panel.
  void release(TaskStream& tasks, const OwnPart& own) const {
    for (TileRow i = own.first_row(top); i < q.a.layout().end_row(); i = i + own.grid_rows) {
      tasks.release(v(i));
      tasks.release(t(i));
      if (i == top || !has_pair(i)) continue;
      tasks.release(pair_v(i));
      tasks.release(pair_t(i));
    }
  }

 private:
  [[nodiscard]] protocol::Access made_here(const Matrix<double>& m, TileRow i) const {
    return read(m(i, c), Version{factorizes() ? 1 : 0});
  }
};

protocol::Access written(protocol::Access a) {
  a.mode = protocol::AccessMode::write;
  a.version = protocol::count_here;
  return a;
}

/// The tasks of one panel on column d of a matrix. Each takes the rows beside R from where an
/// earlier one left them.
struct Chain {
  TaskStream& tasks;
  const Panel& p;
  const QrOperand& to;
  const OwnPart& own;
  OperandPlaces& places;
  TileColumn d;
  WideColumn wide;
  std::int32_t priority = 0;

  [[nodiscard]] bool is_up() const { return goes_up(p.work); }
  [[nodiscard]] bool is_panel() const { return p.factorizes() && d == p.c; }
  [[nodiscard]] NodeId node(TileRow i) const { return to.x.distribution().node(i, wide); }
  [[nodiscard]] TileRef above() const { return to.top(TileRow{p.wide.value()}, d); }
  [[nodiscard]] TileRef traveling(Rows rows) const {
    const std::int32_t slot = rows.slot == Rows::Slot::carried ? 1 : 0;
    return to.traveling(TileRow{rows.tile.value() * slots(p.q.tree) + slot}, d);
  }

  /// Each panel so far has written what tall tile i hands on once.
  [[nodiscard]] Version handed_on(TileRow i) const {
    return Version{is_up() ? panels_on(p.q, p.work, i, d) - p.c.value() : p.c.value() + 1};
  }

  /// The rows as the task after reads them.
  [[nodiscard]] protocol::Access taken(Rows rows) const {
    if (rows.slot != Rows::Slot::r) return read(traveling(rows), handed_on(rows.tile));
    HEDDLE_DEBUG(is_up());
    return read(above(), Version{0});
  }
  [[nodiscard]] protocol::Access left(Rows rows) const {
    return rows.slot == Rows::Slot::r ? read_write(above()) : write(traveling(rows));
  }

  // What the step reads of rows that another task left, perhaps on another node.
  [[nodiscard]] bool takes_in(const Step& step) const {
    return is_up() || step.kind != Step::Kind::leaf;
  }
  [[nodiscard]] bool takes_own(const Step& step) const {
    return !is_up() && step.kind == Step::Kind::pair;
  }
  [[nodiscard]] bool sends(const Step& step, Rows rows) const {
    return own.has_row(rows.tile) && !own.has_row(step.tile);
  }
  void release(const Step& step, Rows rows) const {
    if (own.has_row(rows.tile) || own.has_row(step.tile)) tasks.release(taken(rows));
  }
  void release(const Step& step) const {
    // On the way up all pieces of a wide column take from the same tile of R's rows, from the right
    // to the left; of a triangle, those that the column has part in.
    const bool again = is_up() && step.in.slot == Rows::Slot::r && p.q.a.layout().piece_of(p.c) > 0;
    if (takes_in(step) && !again) release(step, step.in);
    if (takes_own(step)) release(step, step.own);
  }

  TaskStream::Room insert(const OperandPlaces::Move& move) const {
    TaskOptions options;
    options.priority = priority;
    return tasks.insert(kernel::copy, {write(move.to), read(move.from)}, options);
  }
  TaskStream::Room insert(const Step& step) const {
    TaskOptions options;
    options.parameters = p.parameters(step.tile);
    options.priority = priority;
    const TileRef tile = places.tile(step.tile, d);
    switch (step.kind) {
      case Step::Kind::leaf:
        return insert_leaf(step, options, tile);
      case Step::Kind::below:
        return insert_below(step, options, tile);
      case Step::Kind::pair:
        return insert_pair(step, options, tile);
      case Step::Kind::home:
        break;
    }
    options.parameters = p.copied_rows();
    return tasks.insert(is_panel() ? kernel::copy_triangle : kernel::copy_rows,
                        {read_write(above()), taken(step.in)}, options);
  }
  TaskStream::Room insert_leaf(const Step& step, const TaskOptions& options, TileRef tile) const {
    const TileRow i = step.tile;
    if (is_up()) {
      return tasks.insert(kernel::unmqr_back, {read_write(tile), taken(step.in), p.v(i), p.t(i)},
                          options);
    }
    if (is_panel()) {
      return tasks.insert(kernel::geqrt, {read_write(tile), left(step.out), written(p.t(i))},
                          options);
    }
    return tasks.insert(kernel::unmqr, {read_write(tile), left(step.out), p.v(i), p.t(i)}, options);
  }
  TaskStream::Room insert_below(const Step& step, const TaskOptions& options, TileRef tile) const {
    const TileRow i = step.tile;
    if (is_panel()) {
      return tasks.insert(kernel::tsqrt,
                          {read_write(tile), left(step.out), written(p.t(i)), taken(step.in)},
                          options);
    }
    return tasks.insert(is_up() ? kernel::tsmqr_back : kernel::tsmqr,
                        {read_write(tile), left(step.out), p.v(i), p.t(i), taken(step.in)},
                        options);
  }
  TaskStream::Room insert_pair(const Step& step, const TaskOptions& options, TileRef tile) const {
    const TileRow i = step.tile;
    if (is_panel()) {
      return tasks.insert(kernel::ttqrt,
                          {written(p.pair_v(i)), left(step.out), written(p.pair_t(i)),
                           taken(step.in), taken(step.own)},
                          options);
    }
    if (is_up()) {
      return tasks.insert(
          kernel::ttmqr_back,
          {left(step.own), left(step.out), p.pair_v(i), p.pair_t(i), taken(step.in), read(tile)},
          options);
    }
    return tasks.insert(kernel::ttmqr,
                        {read_write(tile), left(step.out), p.pair_v(i), p.pair_t(i), taken(step.in),
                         taken(step.own)},
                        options);
  }
};

/// The columns that a panel's tasks are on. In a factorization the panel comes first, then the
/// columns to its right; a triangle that Q is applied to has nothing to the left of the panel.
struct Columns {
  TileColumn first;
  TileColumn end;

  Columns(const TileLayout& l, const Panel& p)
      : first(p.factorizes() || p.work == Work::generate ? p.c : TileColumn{0}),
        end(l.end_column()) {}
};

}  // namespace

Program walk(TaskStream& tasks, QrMatrix q, QrOperand x, Work work) {
  const TileLayout layout = x.x.layout();
  const OwnPart own(q.a.distribution(), tasks.node());
  const std::int32_t panels = q.a.layout().tile_columns();
  OperandPlaces places(x);
  std::vector<Step> steps;
  std::optional<TileRow> steps_top;

  for (std::int32_t turn = 0; turn < panels; ++turn) {
    const Panel p(q, work, TileColumn{goes_up(work) ? panels - 1 - turn : turn});
    if (p.top != steps_top) steps = steps_of(q, work, p.top);
    steps_top = p.top;
    for (const Step& step : steps) {
      const bool is_there = !p.factorizes() && own.has_wide(p.wide) && own.has_row(step.tile);
      if (is_there) p.publish(tasks, step);
    }
    const Columns columns(layout, p);
    for (TileColumn d = columns.first; d < columns.end; ++d) {
      const WideColumn j = layout.wide_of(d);
      if (!own.has_wide(j)) continue;
      const bool is_panel = p.factorizes() && d == p.c;
      const std::int32_t priority =
          p.factorizes() ? column_priority(layout.tile_columns(), d, is_panel ? 1 : 0)
                         : column_priority(panels, TileColumn{turn}, 0);
      const Chain chain{tasks, p, x, own, places, d, j, priority};
      for (TileRow i = own.first_row(p.top); places.moves() && i < q.a.layout().end_row();
           i = i + own.grid_rows) {
        const auto move = places.move(i, d, q.a.home(p.top, p.c).place);
        if (!move) continue;
        co_await chain.insert(*move);
        tasks.release(read(move->from));
      }
      for (const Step& step : steps) {
        const bool is_mine = own.has_row(step.tile);
        if (chain.takes_in(step) && chain.sends(step, step.in)) {
          tasks.publish(chain.taken(step.in));
        }
        if (chain.takes_own(step) && chain.sends(step, step.own)) {
          tasks.publish(chain.taken(step.own));
        }
        if (is_mine) co_await chain.insert(step);
        if (is_mine && is_panel) p.publish(tasks, step);
        chain.release(step);
      }
    }
    p.release(tasks, own);
  }
  for (TileColumn d{0}; places.moves() && d < layout.end_column(); ++d) {
    if (!own.has_wide(layout.wide_of(d))) continue;
    for (TileRow i = own.first_row(TileRow{0}); i < layout.end_row(); i = i + own.grid_rows) {
      const auto move = places.move_home(i, d);
      if (!move) continue;
      co_await tasks.insert(kernel::copy, {write(move->to), read(move->from)});
      tasks.release(read(move->from));
    }
  }
}

TilePart part_of(const QrMatrix& q, const QrOperand& x, Work work, protocol::TileId tile,
                 Version version) {
  const TileLayout& l = q.a.layout();
  const auto row = [&](const Matrix<double>& m) { return tile.index % m.layout().tile_rows(); };
  const auto column = [&](const Matrix<double>& m) {
    return TileColumn{tile.index / m.layout().tile_rows()};
  };
  if (tile.matrix == q.a.id()) {  // it travels once its column is factored
    const TileRow i{row(q.a)};
    const TileColumn c = column(q.a);
    const bool is_leaf =
        i == top_of(q, c) || (q.tree == QrTree::binomial && !is_last_and_short(q, i));
    return is_leaf ? TilePart{TilePart::Shape::lower, first_row_of(q, i, c)} : TilePart{};
  }
  if (q.pair_v && tile.matrix == q.pair_v->id()) {
    return {TilePart::Shape::upper, 0, l.column_count(column(*q.pair_v))};
  }
  if (tile.matrix != x.traveling.id()) return {};
  // R of a panel in its own column, whole rows of a panel beside it.
  const TileColumn d = column(x.traveling);
  const TileRow i{row(x.traveling) / slots(q.tree)};
  const TileColumn c{goes_up(work) ? panels_on(q, work, i, d) - version.value()
                                   : version.value() - 1};
  const bool triangle = work == Work::factorize && c == d;
  return {triangle ? TilePart::Shape::upper : TilePart::Shape::full, l.offset_in_wide(c),
          l.column_count(c)};
}

}  // namespace heddle::qr_tree
