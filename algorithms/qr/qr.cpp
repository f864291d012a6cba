#include "algorithms/qr/qr.hpp"

#include <algorithm>

#include "algorithms/matrix/walk.hpp"
#include "base/assert.hpp"
#include "kernels/qr.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// One panel: tile column c of a factorization, and who holds what of it.
struct Panel {
  const QrMatrix& q;
  TileColumn c;
  std::int32_t wide;   ///< its wide column, and R's tile row
  std::int32_t top;    ///< the tall tile that the diagonal passes through
  std::int32_t rows;   ///< tall tiles of A
  Version factored;    ///< of V: each panel before has written the tile once
  Version top_solved;  ///< of R's tile, when the top tile has written it
  TaskOptions options;

  Panel(const QrMatrix& matrix, TileColumn column)
      : q(matrix),
        c(column),
        wide(matrix.a.layout().wide_of(column)),
        top(wide / matrix.virtual_tiles),
        rows(matrix.a.layout().tile_rows()),
        factored(column.value() + 1) {
    // Of each panel R's tile is written by the top tile, and again when the last one has passed.
    const std::int32_t writes = has_chain() ? 2 : 1;
    top_solved = Version{matrix.a.layout().piece_of(column) * writes + 1};
  }

  [[nodiscard]] bool has_chain() const { return top + 1 < rows; }
  [[nodiscard]] KernelParameters parameters(std::int32_t i) const {
    const TileLayout& l = q.a.layout();
    const std::int64_t first = i == top ? l.column_begin(c) - l.row_begin(TileRow{top}) : 0;
    return KernelParameters(kernel::PanelParameters{first, l.offset_in_wide(c), q.inner});
  }
  [[nodiscard]] KernelParameters copied_rows() const {
    const TileLayout& l = q.a.layout();
    return KernelParameters(kernel::PanelParameters{0, l.offset_in_wide(c), l.column_count(c)});
  }
  [[nodiscard]] TileRef v(std::int32_t i) const { return q.a(TileRow{i}, c); }
  [[nodiscard]] TileRef t(std::int32_t i) const { return q.t(TileRow{i}, c); }
};

/// A matrix that a panel's reflectors are applied to, and where the rows go that become final.
struct Target {
  const Matrix<double>& a;
  const Matrix<double>& r;
  const Matrix<double>& moving;

  /// What tall tile i hands on to the next one, in column d.
  [[nodiscard]] protocol::Access handed_on(const Panel& p, std::int32_t i, TileColumn d) const {
    if (i == p.top) return read(r(TileRow{p.wide}, d), p.top_solved);
    return read(moving(TileRow{i}, d), p.factored);
  }
};

/// The tasks on column d of one panel, downwards: the panel itself or the application to another
/// column. Walked by the nodes of the wide column of d, which see their own tiles and what they
/// hand on to the next.
struct Chain {
  TaskStream& tasks;
  const Panel& p;
  const Target& to;
  const OwnPart& own;
  TileColumn d;
  std::int32_t wide;
  std::int32_t priority;

  [[nodiscard]] bool is_panel() const { return &to.a == &p.q.a && d == p.c; }
  [[nodiscard]] NodeId node(std::int32_t i) const { return to.a.distribution().node(i, wide); }

  /// Tall tile i gets what the one before has handed on, or has it already.
  [[nodiscard]] bool hands_over(std::int32_t i) const {
    return i > p.top && own.has_row(i - 1) && !own.has_row(i);
  }
  TaskStream::Room announce(std::int32_t i) const {
    return tasks.announce(to.handed_on(p, i - 1, d), node(i), priority);
  }
  void release(std::int32_t i) const {
    if (i > p.top && (own.has_row(i - 1) || own.has_row(i))) {
      tasks.release(to.handed_on(p, i - 1, d));
    }
  }

  TaskStream::Room insert(std::int32_t i) const {
    TaskOptions options;
    options.parameters = p.parameters(i);
    options.priority = priority;
    const protocol::Access tile = read_write(to.a(TileRow{i}, d));
    const protocol::Access above = read_write(to.r(TileRow{p.wide}, d));
    const protocol::Access v = read(p.v(i), p.factored);
    const protocol::Access t = read(p.t(i), Version{1});
    if (i == p.top) {
      if (is_panel()) return tasks.insert(kernel::geqrt, options, tile, above, write(p.t(i)));
      return tasks.insert(kernel::unmqr, options, tile, above, v, t);
    }
    const protocol::Access before = to.handed_on(p, i - 1, d);
    const protocol::Access out = write(to.moving(TileRow{i}, d));
    if (is_panel()) return tasks.insert(kernel::tsqrt, options, tile, out, write(p.t(i)), before);
    return tasks.insert(kernel::tsmqr, options, tile, out, v, t, before);
  }

  // After the last tile what was on its way goes to where R lives.
  [[nodiscard]] bool hands_home() const {
    return p.has_chain() && own.has_row(p.rows - 1) && !own.has_row(p.top);
  }
  TaskStream::Room announce_home() const {
    return tasks.announce(to.handed_on(p, p.rows - 1, d), node(p.top), priority);
  }
  TaskStream::Room insert_home() const {
    TaskOptions options;
    options.parameters = p.copied_rows();
    options.priority = priority;
    return tasks.insert(kernel::copy_rows, options, read_write(to.r(TileRow{p.wide}, d)),
                        to.handed_on(p, p.rows - 1, d));
  }
  void release_home() const {
    if (own.has_row(p.rows - 1) || own.has_row(p.top)) {
      tasks.release(to.handed_on(p, p.rows - 1, d));
    }
  }
};

/// Each node walks the tasks that write its own tiles, and announces to whom its part of a panel
/// goes where the first task that reads it there stands.
Program factorize(TaskStream& tasks, QrMatrix q) {
  const TileLayout layout = q.a.layout();
  const OwnPart own(q.a.distribution(), tasks.node());
  const std::int32_t columns = layout.tile_columns();
  const std::int32_t wides = layout.wide_columns();
  const Target target{q.a, q.r, q.moving};

  for (TileColumn c{0}; c.value() < columns; ++c) {
    const Panel p(q, c);
    const bool has_panel = own.has_wide(p.wide);
    const TileColumn next = c + 1;
    const std::int32_t first_wide = next.value() < columns ? layout.wide_of(next) : wides;
    // The panel, then each column to its right: from the top tile down.
    for (std::int32_t j = p.wide; j < wides; ++j) {
      // Nodes of the panel's column send it along their row when another column's turn first comes.
      const bool sends = has_panel && j >= first_wide && j < first_wide + own.grid_columns;
      if (!own.has_wide(j) && !sends) continue;
      const TileColumn begin = std::max(layout.wide_begin(j), c);
      for (TileColumn d = begin; d < layout.wide_begin(j + 1); ++d) {
        const std::int32_t priority = column_priority(columns, d.value(), d == c ? 1 : 0);
        const Chain chain{tasks, p, target, own, d, j, priority};
        for (std::int32_t i = p.top; i < p.rows; ++i) {
          if (sends && d == begin && own.has_row(i) && !own.has_wide(j)) {
            const NodeId reader = q.a.distribution().node(i, j);
            co_await tasks.announce(read(p.v(i), p.factored), reader, priority);
            co_await tasks.announce(read(p.t(i), Version{1}), reader, priority);
          }
          if (!own.has_wide(j)) continue;
          if (chain.hands_over(i)) co_await chain.announce(i);
          if (own.has_row(i)) co_await chain.insert(i);
          chain.release(i);
        }
        if (!own.has_wide(j) || !p.has_chain()) continue;
        if (chain.hands_home()) co_await chain.announce_home();
        if (own.has_row(p.top)) co_await chain.insert_home();
        chain.release_home();
      }
    }
    for (std::int32_t i = own.first_row(p.top); i < p.rows; i += own.grid_rows) {
      tasks.release(read(p.v(i), p.factored));
      tasks.release(read(p.t(i), Version{1}));
    }
  }
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
              .wide = layout.tile};
  const std::int64_t tall = a.layout.tile_rows();
  const auto with_rows = [&](std::int64_t each, std::int64_t count) {
    MatrixSpec spec = a;
    spec.rows = spec.layout.rows = count;
    spec.layout.tile = each;
    return spec;
  };
  QrSpecs specs{a, with_rows(layout.inner, tall * layout.inner), with_rows(layout.tile, columns),
                with_rows(layout.tile, tall * layout.tile)};
  specs.r.storage = Storage::upper;
  specs.r.distribution.row_group = layout.virtual_tiles;
  specs.moving.temporary = true;
  return specs;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                   const Distribution& distribution) {
  const QrSpecs specs = qr_specs(rows, columns, layout, distribution);
  QrMatrix q{node.matrix<double>(specs.a), node.matrix<double>(specs.t),
             node.matrix<double>(specs.r), node.matrix<double>(specs.moving),
             layout.virtual_tiles,         layout.inner};
  q.r.fill([](std::int64_t /*i*/, std::int64_t /*j*/) { return 0.0; });
  return q;
}

JobSpec qr(const QrMatrix& q) {
  JobSpec spec;
  spec.name = "qr";
  for (const Matrix<double>& m : {q.a, q.t, q.r, q.moving}) {
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.temporaries = {q.moving.id()};
  spec.program = [q](TaskStream& tasks) { return factorize(tasks, q); };
  return spec;
}

}  // namespace heddle
