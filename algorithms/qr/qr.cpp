#include "algorithms/qr/qr.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/matrix/walk.hpp"
#include "base/assert.hpp"
#include "kernels/qr.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

enum class Work : std::uint8_t {
  factorize,         ///< the panel, then Q^T on the columns to its right
  apply_transposed,  ///< Q^T on another matrix, with panels that are factored
  apply,             ///< Q on another matrix: from the last panel and the last tile to the first
};

/// One panel: tile column c of a factorization.
struct Panel {
  const QrMatrix& q;
  Work work;
  TileColumn c;
  std::int32_t wide;  ///< its wide column, and R's tile row
  std::int32_t top;   ///< the tall tile that the diagonal passes through
  std::int32_t rows;  ///< tall tiles of A
  Version v_version;
  Version t_version;

  Panel(const QrMatrix& matrix, Work what, TileColumn column)
      : q(matrix),
        work(what),
        c(column),
        wide(matrix.a.layout().wide_of(column)),
        top(wide / matrix.virtual_tiles),
        rows(matrix.a.layout().tile_rows()),
        v_version(work == Work::factorize ? column.value() + 1 : 0),  // each panel before wrote it
        t_version(work == Work::factorize ? 1 : 0) {}

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

/// Tile columns of A whose diagonal lies above tall tile i.
std::int32_t panels_above(const QrMatrix& q, std::int32_t i) {
  const TileLayout& l = q.a.layout();
  const std::int32_t wide = std::min(i * q.virtual_tiles, l.wide_columns());
  return l.wide_begin(wide).value();
}

/// The tasks of one panel on column d of a matrix. They go down the tall tiles, or up when Q is
/// applied, and each takes the rows beside R from the one before. Walked by the nodes of d's wide
/// column, which see their own tiles and what they hand on.
struct Chain {
  TaskStream& tasks;
  const Panel& p;
  const QrSides& to;
  const OwnPart& own;
  TileColumn d;
  std::int32_t wide = 0;
  std::int32_t priority = 0;

  [[nodiscard]] bool is_up() const { return p.work == Work::apply; }
  [[nodiscard]] bool is_panel() const { return p.work == Work::factorize && d == p.c; }
  [[nodiscard]] NodeId node(std::int32_t i) const { return to.x.distribution().node(i, wide); }
  [[nodiscard]] TileRef moving(std::int32_t i) const { return to.moving(TileRow{i}, d); }
  [[nodiscard]] TileRef above() const { return to.top(TileRow{p.wide}, d); }

  /// The tile whose task hands on to that of tile i; for the first one, where R lives.
  [[nodiscard]] std::int32_t before(std::int32_t i) const {
    if (is_up()) return i + 1 < p.rows ? i + 1 : p.top;
    return i - 1;
  }
  /// What tile i's task hands on.
  [[nodiscard]] protocol::Access handed_on(std::int32_t i) const {
    if (is_up()) {
      return i == p.top ? read(above(), Version{0})
                        : read(moving(i), Version{panels_above(p.q, i) - p.c.value()});
    }
    if (i > p.top) return read(moving(i), Version{p.c.value() + 1});
    // Of each panel R's tile is written by the top tile, and again when the last one has passed.
    const std::int32_t writes = p.has_chain() ? 2 : 1;
    return read(above(), Version{p.q.a.layout().piece_of(p.c) * writes + 1});
  }
  [[nodiscard]] bool takes(std::int32_t i) const { return is_up() || i > p.top; }
  [[nodiscard]] bool sends_before(std::int32_t i) const {
    return takes(i) && own.has_row(before(i)) && !own.has_row(i);
  }
  TaskStream::Room announce_before(std::int32_t i) const {
    return tasks.announce(handed_on(before(i)), node(i), priority);
  }
  void release_before(std::int32_t i) const {
    // On the way up all pieces of a wide column take from the same tile of R's rows.
    const bool again = is_up() && i + 1 == p.rows && p.q.a.layout().piece_of(p.c) > 0;
    if (!again && takes(i) && (own.has_row(before(i)) || own.has_row(i))) {
      tasks.release(handed_on(before(i)));
    }
  }

  TaskStream::Room insert(std::int32_t i) const {
    TaskOptions options;
    options.parameters = p.parameters(i);
    options.priority = priority;
    const protocol::Access tile = read_write(to.x(TileRow{i}, d));
    const protocol::Access v = read(p.v(i), p.v_version);
    const protocol::Access t = read(p.t(i), p.t_version);
    if (i > p.top) {
      const protocol::Access out = write(moving(i));
      const protocol::Access in = handed_on(before(i));
      if (is_panel()) return tasks.insert(kernel::tsqrt, options, tile, out, write(p.t(i)), in);
      const Kernel& kernel = is_up() ? kernel::tsmqr_back : kernel::tsmqr;
      return tasks.insert(kernel, options, tile, out, v, t, in);
    }
    if (is_up()) {
      return tasks.insert(kernel::unmqr_back, options, tile, handed_on(before(i)), v, t);
    }
    const protocol::Access out = read_write(above());
    if (is_panel()) return tasks.insert(kernel::geqrt, options, tile, out, write(p.t(i)));
    return tasks.insert(kernel::unmqr, options, tile, out, v, t);
  }

  // On the way down, what has passed the last tile goes to where R lives.
  [[nodiscard]] bool comes_home() const { return !is_up() && p.has_chain(); }
  [[nodiscard]] bool sends_home() const { return own.has_row(p.rows - 1) && !own.has_row(p.top); }
  TaskStream::Room announce_home() const {
    return tasks.announce(handed_on(p.rows - 1), node(p.top), priority);
  }
  TaskStream::Room insert_home() const {
    TaskOptions options;
    options.parameters = p.copied_rows();
    options.priority = priority;
    return tasks.insert(kernel::copy_rows, options, read_write(above()), handed_on(p.rows - 1));
  }
  void release_home() const {
    if (own.has_row(p.rows - 1) || own.has_row(p.top)) tasks.release(handed_on(p.rows - 1));
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

  for (std::int32_t turn = 0; turn < panels; ++turn) {
    const bool up = work == Work::apply;
    const Panel p(q, work, TileColumn{up ? panels - 1 - turn : turn});
    const bool has_panel = own.has_wide(p.wide);
    // In a factorization the panel comes first, then the columns to its right.
    const TileColumn first{work == Work::factorize ? turn : 0};
    const TileColumn readers{work == Work::factorize ? turn + 1 : 0};
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
        for (std::int32_t k = p.top; k < p.rows; ++k) {
          const std::int32_t i = up ? p.rows - 1 - (k - p.top) : k;
          if (sends && d == begin && own.has_row(i)) {
            const NodeId reader = x.x.distribution().node(i, j);
            co_await tasks.announce(read(p.v(i), p.v_version), reader, priority);
            co_await tasks.announce(read(p.t(i), p.t_version), reader, priority);
          }
          if (!has_column) continue;
          if (chain.sends_before(i)) co_await chain.announce_before(i);
          if (own.has_row(i)) co_await chain.insert(i);
          chain.release_before(i);
        }
        if (!has_column || !chain.comes_home()) continue;
        if (chain.sends_home()) co_await chain.announce_home();
        if (own.has_row(p.top)) co_await chain.insert_home();
        chain.release_home();
      }
    }
    for (std::int32_t i = own.first_row(p.top); i < p.rows; i += own.grid_rows) {
      tasks.release(read(p.v(i), p.v_version));
      tasks.release(read(p.t(i), p.t_version));
    }
  }
}

JobSpec job_of(std::string name, const QrMatrix& q, const QrSides& x, Work work) {
  JobSpec spec;
  spec.name = std::move(name);
  for (const Matrix<double>& m : {q.a, q.t, x.x, x.top, x.moving}) {
    const bool known =
        std::find(spec.matrices.begin(), spec.matrices.end(), m.id()) != spec.matrices.end();
    if (known) continue;
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.temporaries = {x.moving.id()};
  spec.program = [q, x, work](TaskStream& tasks) { return walk(tasks, q, x, work); };
  return spec;
}

void check_sides(const QrMatrix& q, const QrSides& x) {
  HEDDLE_CHECK(x.x.rows() == q.a.rows() && x.x.layout().tile == q.a.layout().tile &&
                   x.top.rows() == q.a.columns() && x.top.columns() == x.x.columns(),
               "{} x {} and {} x {} beside a factorization of {} x {}", x.x.rows(), x.x.columns(),
               x.top.rows(), x.top.columns(), q.a.rows(), q.a.columns());
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
    spec.layout.strip = spec.layout.small = 0;
    spec.layout.wide = std::max<std::int64_t>(1, (columns + parts - 1) / parts);
    return spec;
  };
  return {like(q.a), like(q.r), like(q.moving)};
}

QrSides qr_sides(const QrMatrix& q, std::int64_t columns) {
  const QrSidesSpecs specs = qr_sides_specs(q, columns);
  Node& node = q.a.node();
  return {node.matrix<double>(specs.x), node.matrix<double>(specs.top),
          node.matrix<double>(specs.moving)};
}

JobSpec apply_q_transposed(const QrMatrix& q, const QrSides& x) {
  check_sides(q, x);
  return job_of("Q^T x", q, x, Work::apply_transposed);
}

JobSpec apply_q(const QrMatrix& q, const QrSides& x) {
  check_sides(q, x);
  return job_of("Q x", q, x, Work::apply);
}

}  // namespace heddle
