#include "algorithms/qr/qr.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/walk.hpp"
#include "algorithms/qr/steps.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

using qr_tree::make_steps;
using qr_tree::Rows;
using qr_tree::slots;
using qr_tree::Step;
using qr_tree::Way;

enum class Work : std::uint8_t {
  factorize,         ///< the panel, then Q^T on the columns to its right
  apply_transposed,  ///< Q^T on another matrix, with panels that are factored
  apply,             ///< Q on another matrix: from the last panel and the last tile to the first
  generate,          ///< the same on a square upper triangle over nothing
};

bool goes_up(Work work) {
  return work == Work::apply || work == Work::generate;
}

/// Tile columns of A whose diagonal lies above tall tile i.
std::int32_t panels_above(const QrMatrix& q, std::int32_t i) {
  const TileLayout& l = q.a.layout();
  const std::int32_t wide = std::min(i * q.virtual_tiles, l.wide_columns());
  return l.wide_begin(wide).value();
}

/// Panels that pass on what stands in tall tile i beside tile column d when Q is applied.
std::int32_t panels_on(const QrMatrix& q, Work work, std::int32_t i, TileColumn d) {
  const std::int32_t all = panels_above(q, i);
  return work == Work::generate ? std::min(all, d.value() + 1) : all;
}

/// True of a last tall tile with too few rows for an R of its own: in a binomial tree it goes with
/// the tile before it.
bool is_last_and_short(const QrMatrix& q, std::int32_t i) {
  const TileLayout& l = q.a.layout();
  return i + 1 == l.tile_rows() && l.row_count(TileRow{i}) < l.wide_width();
}

/// The tasks of a panel whose diagonal passes through tall tile `top`.
std::vector<Step> steps_of(const QrMatrix& q, Work work, std::int32_t top) {
  const std::int32_t rows = q.a.layout().tile_rows();
  const bool has_short = top + 1 < rows && is_last_and_short(q, rows - 1);
  return make_steps(q.tree, top, rows, has_short, goes_up(work) ? Way::up : Way::down);
}

/// One panel: tile column c of a factorization.
struct Panel {
  const QrMatrix& q;
  Work work;
  TileColumn c;
  std::int32_t wide;  ///< its wide column, and R's tile row
  std::int32_t top;   ///< the tall tile that the diagonal passes through
  std::int32_t rows;  ///< tall tiles of A

  Panel(const QrMatrix& matrix, Work what, TileColumn column)
      : q(matrix),
        work(what),
        c(column),
        wide(matrix.a.layout().wide_of(column)),
        top(wide / matrix.virtual_tiles),
        rows(matrix.a.layout().tile_rows()) {}

  [[nodiscard]] bool factorizes() const { return work == Work::factorize; }
  [[nodiscard]] KernelParameters parameters(std::int32_t i) const {
    const TileLayout& l = q.a.layout();
    const std::int64_t first = i == top ? l.column_begin(c) - l.row_begin(TileRow{top}) : 0;
    return KernelParameters(kernel::PanelParameters{first, l.offset_in_wide(c), q.inner});
  }
  [[nodiscard]] KernelParameters copied_rows() const {
    const TileLayout& l = q.a.layout();
    return KernelParameters(kernel::PanelParameters{0, l.offset_in_wide(c), l.column_count(c)});
  }
  /// Reflectors of tall tile i. A panel before has written the tile once, and once more where it
  /// was one of a pair.
  [[nodiscard]] protocol::Access v(std::int32_t i) const {
    std::int32_t writes = 0;
    if (factorizes()) {
      writes = c.value() + 1;
      if (has_pair(i)) writes += std::min(c.value(), panels_above(q, i));
    }
    return read(q.a(TileRow{i}, c), Version{writes});
  }
  [[nodiscard]] protocol::Access t(std::int32_t i) const {
    return read(q.t(TileRow{i}, c), Version{factorizes() ? 1 : 0});
  }
  /// Of the pair that ends with tall tile i, i > top.
  [[nodiscard]] protocol::Access pair_v(std::int32_t i) const {
    return read((*q.pair_v)(TileRow{i}, c), Version{factorizes() ? 1 : 0});
  }
  [[nodiscard]] protocol::Access pair_t(std::int32_t i) const {
    return read((*q.pair_t)(TileRow{i}, c), Version{factorizes() ? 1 : 0});
  }
  [[nodiscard]] protocol::Access v_of(const Step& step) const {
    return step.kind == Step::Kind::pair ? pair_v(step.tile) : v(step.tile);
  }
  [[nodiscard]] protocol::Access t_of(const Step& step) const {
    return step.kind == Step::Kind::pair ? pair_t(step.tile) : t(step.tile);
  }
  [[nodiscard]] bool has_pair(std::int32_t i) const {
    return q.tree == QrTree::binomial && !is_last_and_short(q, i);
  }
};

protocol::Access written(protocol::Access a) {
  a.mode = protocol::AccessMode::write;
  a.version = protocol::count_here;
  return a;
}

/// The tasks of one panel on column d of a matrix. Each takes the rows beside R from where an
/// earlier one left them. Walked by the nodes of d's wide column, which see their own tiles and
/// what they hand on.
struct Chain {
  TaskStream& tasks;
  const Panel& p;
  const QrSides& to;
  const OwnPart& own;
  TileColumn d;
  std::int32_t wide = 0;
  std::int32_t priority = 0;

  [[nodiscard]] bool is_up() const { return goes_up(p.work); }
  [[nodiscard]] bool is_panel() const { return p.factorizes() && d == p.c; }
  [[nodiscard]] NodeId node(std::int32_t i) const { return to.x.distribution().node(i, wide); }
  [[nodiscard]] TileRef above() const { return to.top(TileRow{p.wide}, d); }
  [[nodiscard]] TileRef moving(Rows rows) const {
    const std::int32_t slot = rows.slot == Rows::Slot::carried ? 1 : 0;
    return to.moving(TileRow{rows.tile * slots(p.q.tree) + slot}, d);
  }

  /// Each panel so far has written what tall tile i hands on once.
  [[nodiscard]] std::int32_t writes_of_moving(std::int32_t i) const {
    return is_up() ? panels_on(p.q, p.work, i, d) - p.c.value() : p.c.value() + 1;
  }

  /// The rows as the task after reads them.
  [[nodiscard]] protocol::Access taken(Rows rows) const {
    if (rows.slot != Rows::Slot::r) {
      return read(moving(rows), Version{writes_of_moving(rows.tile)});
    }
    HEDDLE_DEBUG(is_up());
    return read(above(), Version{0});
  }
  [[nodiscard]] protocol::Access left(Rows rows) const {
    return rows.slot == Rows::Slot::r ? read_write(above()) : write(moving(rows));
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
  TaskStream::Room announce(const Step& step, Rows rows) const {
    return tasks.announce(taken(rows), node(step.tile), priority);
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

  TaskStream::Room insert(const Step& step) const {
    TaskOptions options;
    options.parameters = p.parameters(step.tile);
    options.priority = priority;
    const TileRef tile = to.x(TileRow{step.tile}, d);
    switch (step.kind) {
      case Step::Kind::leaf:
        break;
      case Step::Kind::below:
        return insert_below(step, options, tile);
      case Step::Kind::pair:
        return insert_pair(step, options, tile);
      case Step::Kind::home:
        options.parameters = p.copied_rows();
        return tasks.insert(is_panel() ? kernel::copy_triangle : kernel::copy_rows, options,
                            read_write(above()), taken(step.in));
    }
    const std::int32_t i = step.tile;
    if (is_up()) {
      return tasks.insert(kernel::unmqr_back, options, read_write(tile), taken(step.in), p.v(i),
                          p.t(i));
    }
    if (is_panel()) {
      return tasks.insert(kernel::geqrt, options, read_write(tile), left(step.out),
                          written(p.t(i)));
    }
    return tasks.insert(kernel::unmqr, options, read_write(tile), left(step.out), p.v(i), p.t(i));
  }
  TaskStream::Room insert_below(const Step& step, const TaskOptions& options, TileRef tile) const {
    const std::int32_t i = step.tile;
    if (is_panel()) {
      return tasks.insert(kernel::tsqrt, options, read_write(tile), left(step.out), written(p.t(i)),
                          taken(step.in));
    }
    return tasks.insert(is_up() ? kernel::tsmqr_back : kernel::tsmqr, options, read_write(tile),
                        left(step.out), p.v(i), p.t(i), taken(step.in));
  }
  TaskStream::Room insert_pair(const Step& step, const TaskOptions& options, TileRef tile) const {
    const std::int32_t i = step.tile;
    if (is_panel()) {
      return tasks.insert(kernel::ttqrt, options, written(p.pair_v(i)), left(step.out),
                          written(p.pair_t(i)), taken(step.in), taken(step.own));
    }
    if (is_up()) {
      return tasks.insert(kernel::ttmqr_back, options, left(step.own), left(step.out), p.pair_v(i),
                          p.pair_t(i), taken(step.in), read(tile));
    }
    return tasks.insert(kernel::ttmqr, options, read_write(tile), left(step.out), p.pair_v(i),
                        p.pair_t(i), taken(step.in), taken(step.own));
  }
};

/// Each node walks the tasks that write its own tiles, and announces to whom its part of a panel
/// goes where the first task that reads it there stands. To factorize, `x` is A itself.
Program walk(TaskStream& tasks, QrMatrix q, QrSides x, Work work) {
  const TileLayout layout = x.x.layout();
  const OwnPart own(q.a.distribution(), tasks.node());
  const std::int32_t panels = q.a.layout().tile_columns();
  const std::int32_t columns = layout.tile_columns();
  const std::int32_t wides = layout.wide_columns();
  const bool up = goes_up(work);
  std::vector<Step> steps;
  std::int32_t steps_top = -1;

  for (std::int32_t turn = 0; turn < panels; ++turn) {
    const TileColumn c{up ? panels - 1 - turn : turn};
    const std::int32_t top = q.a.layout().wide_of(c) / q.virtual_tiles;
    if (top != steps_top) steps = steps_of(q, work, top);
    steps_top = top;
    const Panel p(q, work, c);
    const bool has_panel = own.has_wide(p.wide);
    // In a factorization the panel comes first, then the columns to its right. A triangle that Q is
    // applied to has nothing in this panel's rows but in its column and to the right.
    const TileColumn first{work == Work::factorize || work == Work::generate ? c.value() : 0};
    const TileColumn readers{work == Work::factorize ? c.value() + 1 : first.value()};
    const std::int32_t first_reader = readers.value() < columns ? layout.wide_of(readers) : wides;
    for (std::int32_t j = first.value() < columns ? layout.wide_of(first) : wides; j < wides; ++j) {
      // Nodes of the panel's column send it along their row when another column's turn first comes.
      const bool has_column = own.has_wide(j);
      const bool sends =
          has_panel && !has_column && j >= first_reader && j < first_reader + own.grid_columns;
      if (!has_column && !sends) continue;
      const TileColumn begin = std::max(layout.wide_begin(j), first);
      for (TileColumn d = begin; d < layout.wide_begin(j + 1); ++d) {
        const bool is_panel = work == Work::factorize && d == p.c;
        const std::int32_t priority = work == Work::factorize
                                          ? column_priority(columns, d.value(), is_panel ? 1 : 0)
                                          : column_priority(panels, turn, 0);
        const Chain chain{tasks, p, x, own, d, j, priority};
        for (const Step& step : steps) {
          const std::int32_t i = step.tile;
          if (sends && d == begin && own.has_row(i) && step.kind != Step::Kind::home) {
            const NodeId reader = x.x.distribution().node(i, j);
            co_await tasks.announce(p.v_of(step), reader, priority);
            co_await tasks.announce(p.t_of(step), reader, priority);
          }
          if (!has_column) continue;
          if (chain.takes_in(step) && chain.sends(step, step.in)) {
            co_await chain.announce(step, step.in);
          }
          if (chain.takes_own(step) && chain.sends(step, step.own)) {
            co_await chain.announce(step, step.own);
          }
          if (own.has_row(i)) co_await chain.insert(step);
          chain.release(step);
        }
      }
    }
    for (std::int32_t i = own.first_row(p.top); i < p.rows; i += own.grid_rows) {
      tasks.release(p.v(i));
      tasks.release(p.t(i));
      if (i > p.top && p.has_pair(i)) {
        tasks.release(p.pair_v(i));
        tasks.release(p.pair_t(i));
      }
    }
  }
}

/// What of each tile other nodes need: the reflectors without what is above them, triangles, and
/// the rows of a panel alone.
struct Parts {
  QrMatrix q;
  QrSides x;
  Work work;

  [[nodiscard]] TilePart operator()(protocol::TileId tile, Version version) const {
    using enum TilePart::Shape;
    if (tile.matrix == q.a.id()) return of_v(tile);
    if (q.pair_v && tile.matrix == q.pair_v->id()) {
      return {upper, 0, q.a.layout().column_count(column(*q.pair_v, tile))};
    }
    if (tile.matrix == x.moving.id()) {
      const TileColumn d = column(x.moving, tile);
      const std::int32_t i = tile.index % x.moving.layout().tile_rows() / slots(q.tree);
      return rows_of_panel(panel_of_moving(i, d, version), d);
    }
    return {};
  }

 private:
  [[nodiscard]] static TileColumn column(const Matrix<double>& m, protocol::TileId tile) {
    return TileColumn{tile.index / m.layout().tile_rows()};
  }
  /// A tile of A travels once its column is factored.
  [[nodiscard]] TilePart of_v(protocol::TileId tile) const {
    const TileLayout& l = q.a.layout();
    const TileColumn c = column(q.a, tile);
    const std::int32_t i = tile.index % l.tile_rows();
    const std::int32_t top = l.wide_of(c) / q.virtual_tiles;
    const bool is_leaf = i == top || (q.tree == QrTree::binomial && !is_last_and_short(q, i));
    if (!is_leaf) return {};
    const std::int64_t first = i == top ? l.column_begin(c) - l.row_begin(TileRow{top}) : 0;
    return {TilePart::Shape::lower, first};
  }
  /// Of a panel in its own column, R; of a panel beside it, whole rows.
  [[nodiscard]] TilePart rows_of_panel(TileColumn c, TileColumn d) const {
    const TileLayout& l = q.a.layout();
    const bool triangle = work == Work::factorize && c == d;
    return {triangle ? TilePart::Shape::upper : TilePart::Shape::full, l.offset_in_wide(c),
            l.column_count(c)};
  }
  [[nodiscard]] TileColumn panel_of_moving(std::int32_t i, TileColumn d, Version version) const {
    if (!goes_up(work)) return TileColumn{version.value() - 1};
    return TileColumn{panels_on(q, work, i, d) - version.value()};
  }
};

JobSpec job_of(std::string name, const QrMatrix& q, const QrSides& x, Work work) {
  JobSpec spec;
  spec.name = std::move(name);
  spec.fine = q.a.layout().fine;
  std::vector<Matrix<double>> matrices{q.a, q.t, x.x, x.top, x.moving};
  if (q.pair_v) matrices.insert(matrices.end(), {*q.pair_v, *q.pair_t});
  for (const Matrix<double>& m : matrices) {
    const bool known =
        std::find(spec.matrices.begin(), spec.matrices.end(), m.id()) != spec.matrices.end();
    if (known) continue;
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.temporaries = {x.moving.id()};
  spec.part = Parts{q, x, work};
  spec.program = [q, x, work](TaskStream& tasks) { return walk(tasks, q, x, work); };
  return spec;
}

void check_sides(const QrMatrix& q, const QrSides& x) {
  HEDDLE_CHECK(x.x.rows() == q.a.rows() && x.x.layout().tile == q.a.layout().tile &&
                   x.top.rows() == q.a.columns() && x.top.columns() == x.x.columns(),
               "{} x {} and {} x {} beside a factorization of {} x {}", x.x.rows(), x.x.columns(),
               x.top.rows(), x.top.columns(), q.a.rows(), q.a.columns());
}

auto maker(Node& node) {
  return [&node](const MatrixSpec& spec) { return node.matrix<double>(spec); };
}

}  // namespace

QrSpecs qr_specs(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                 const Distribution& distribution) {
  HEDDLE_CHECK(rows >= columns && layout.virtual_tiles >= 1 && layout.inner >= 1 &&
                   layout.inner <= layout.tile,
               "{} x {} in tiles of {}, {} virtual, inner {}", rows, columns, layout.tile,
               layout.virtual_tiles, layout.inner);
  MatrixSpec a;
  a.rows = rows;
  a.columns = columns;
  a.has_layout = true;
  a.distribution = distribution;
  a.layout = {.rows = rows,
              .columns = columns,
              .tile = layout.tile * layout.virtual_tiles,
              .strip = layout.strip,
              .small = layout.small,
              .fine = layout.fine,
              .wide = layout.tile};
  const std::int64_t tall = a.layout.tile_rows();
  const std::int32_t moving = slots(layout.tree);
  const auto with_rows = [&](std::int64_t each, std::int64_t count) {
    MatrixSpec spec = a;
    spec.rows = spec.layout.rows = count;
    spec.layout.tile = each;
    return spec;
  };
  QrSpecs specs{.a = a,
                .t = with_rows(layout.inner, tall * layout.inner),
                .r = with_rows(layout.tile, columns),
                .moving = with_rows(layout.tile, tall * moving * layout.tile),
                .pair_v = with_rows(layout.tile, tall * layout.tile),
                .pair_t = with_rows(layout.inner, tall * layout.inner)};
  specs.r.storage = Storage::upper;
  specs.r.distribution.row_group = layout.virtual_tiles;
  specs.moving.temporary = true;
  specs.moving.distribution.row_group = moving;
  return specs;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                   const Distribution& distribution) {
  const QrSpecs specs = qr_specs(rows, columns, layout, distribution);
  std::optional<QrMatrix> q;
  // All nodes fill R, or none.
  together(node, [&] { q = qr_matrix_of(specs, layout, maker(node)); });
  q->r.fill([](std::int64_t /*i*/, std::int64_t /*j*/) { return 0.0; });
  return *q;
}

JobSpec qr(const QrMatrix& q) {
  return job_of("qr", q, {q.a, q.r, q.moving}, Work::factorize);
}

QrSidesSpecs qr_sides_specs(const QrMatrix& q, std::int64_t columns) {
  const std::int64_t tile = q.a.layout().wide_width();
  const std::int64_t parts = std::max<std::int64_t>(1, (columns + tile - 1) / tile);
  const auto like = [&](const Matrix<double>& m) {
    MatrixSpec spec = m.state()->spec;
    spec.storage = Storage::full;
    spec.distribution.devices = 0;
    spec.columns = spec.layout.columns = columns;
    spec.layout.strip = spec.layout.small = spec.layout.fine = 0;
    spec.layout.wide = std::max<std::int64_t>(1, (columns + parts - 1) / parts);
    return spec;
  };
  return {like(q.a), like(q.r), like(q.moving)};
}

QrSides qr_sides(const QrMatrix& q, std::int64_t columns) {
  return qr_sides_of(qr_sides_specs(q, columns), maker(q.a.node()));
}

QrSidesSpecs explicit_q_sides_specs(const QrMatrix& q) {
  return {q.a.state()->spec, q.r.state()->spec, q.moving.state()->spec};
}

QrSides explicit_q_sides(const QrMatrix& q) {
  return qr_sides_of(explicit_q_sides_specs(q), maker(q.a.node()));
}

JobSpec apply_q_transposed(const QrMatrix& q, const QrSides& x) {
  check_sides(q, x);
  return job_of("Q^T x", q, x, Work::apply_transposed);
}

JobSpec apply_q(const QrMatrix& q, const QrSides& x) {
  check_sides(q, x);
  return job_of("Q x", q, x, Work::apply);
}

JobSpec apply_q_to_triangle(const QrMatrix& q, const QrSides& x) {
  check_sides(q, x);
  HEDDLE_CHECK(x.x.layout() == q.a.layout() && x.top.layout() == q.r.layout(),
               "a triangle of {} columns in tiles of {}", x.x.columns(), x.x.layout().tile);
  return job_of("Q [R; 0]", q, x, Work::generate);
}

}  // namespace heddle
