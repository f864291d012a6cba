#include "algorithms/cholesky/cholesky.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/matrix/walk.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// Copies of column c's tiles that this node may hold are not needed after step c.
void release_column(TaskStream& tasks, const Matrix<double>& l, const OwnPart& own, TileColumn c,
                    Version version) {
  const std::int32_t rows = l.layout().tile_rows();
  const std::int32_t k = l.layout().wide_of(c);
  std::int32_t by_row = own.first_row(k);
  std::int32_t by_column = own.first_wide(k);
  for (std::int32_t i = std::min(by_row, by_column); i < rows; i = std::min(by_row, by_column)) {
    tasks.release(read(l(TileRow{i}, c), version));
    if (i == by_row) by_row += own.grid_rows;
    if (i == by_column) by_column += own.grid_columns;
  }
}

/// The updates of one step: column c of `l` is applied to the columns of `r` from `first` on.
/// Shared by the factorization (r and l the same matrix) and its check. Walks the own tiles of r
/// and, where column c is this node's, also whatever reads it elsewhere for the first time, in the
/// order of the sequential program: wide column by wide column, piece by piece, downwards.
struct Update {
  TaskStream& tasks;
  const Matrix<double>& r;
  const Matrix<double>& l;
  const OwnPart& own;
  TileColumn c;
  Version version;
  TileColumn first;

  [[nodiscard]] bool announces() const { return own.has_wide(l.layout().wide_of(c)); }

  [[nodiscard]] std::int32_t first_wide() const {
    const std::int32_t wide = r.layout().wide_of(first);
    return announces() ? wide : own.first_wide(wide);
  }
  [[nodiscard]] std::int32_t next_wide(std::int32_t wide) const {
    return wide + (announces() ? 1 : own.grid_columns);
  }
  /// The first piece of wide column j that is updated.
  [[nodiscard]] TileColumn begin(std::int32_t j) const {
    return std::max(r.layout().wide_begin(j), first);
  }

  /// Tiles of column c meet the nodes of this wide column's grid column for the first time.
  [[nodiscard]] bool new_along_row(std::int32_t j) const {
    return j < r.layout().wide_of(first) + own.grid_columns;
  }

  /// To whom tiles (i, c) and (j, c) go because of the first update of tile (i, j). At most two.
  [[nodiscard]] std::int32_t readers_at(std::int32_t i, std::int32_t j,
                                        std::array<std::int32_t, 2>& sources) const {
    std::int32_t count = 0;
    const bool new_down_column = i < j + own.grid_rows;
    if (!announces() || (own.has_row(i) && own.has_wide(j))) return 0;
    if (new_along_row(j) && own.has_row(i)) sources[static_cast<std::size_t>(count++)] = i;
    if (new_down_column && i != j && own.has_row(j)) {
      sources[static_cast<std::size_t>(count++)] = j;
    }
    return count;
  }
  /// The first row from i on at which something is to be done for piece d of wide column j: all of
  /// them while there may be new readers of tile (j, c), else own ones.
  [[nodiscard]] std::int32_t row_from(std::int32_t i, std::int32_t j, TileColumn d) const {
    const bool first_piece = announces() && d == begin(j);
    if (first_piece && i < j + own.grid_rows && own.has_row(j)) return i;
    if (own.has_wide(j) || (first_piece && new_along_row(j))) return own.first_row(i);
    return r.layout().tile_rows();
  }

  [[nodiscard]] TaskOptions options(std::int32_t i, std::int32_t j, TileColumn d,
                                    std::int32_t priority) const {
    const std::int64_t offset = r.layout().offset_in_wide(d);
    TaskOptions o;
    o.priority = priority;
    o.parameters = i == j ? KernelParameters(kernel::PieceParameters{offset})
                          : KernelParameters(kernel::UpdateParameters{offset});
    return o;
  }
  TaskStream::Room insert(std::int32_t i, std::int32_t j, TileColumn d,
                          std::int32_t priority) const {
    if (i == j) {
      return tasks.insert(kernel::syrk, options(i, j, d, priority), read_write(r(TileRow{i}, d)),
                          read(l(TileRow{i}, c), version));
    }
    return tasks.insert(kernel::gsmm, options(i, j, d, priority), read_write(r(TileRow{i}, d)),
                        read(l(TileRow{i}, c), version), read(l(TileRow{j}, c), version));
  }
};

/// For each tile column the one by whose priority it is updated: itself in core. Out of core, the
/// columns that a device's memory holds together are updated together, all of them by one panel
/// before the next: each panel then comes to the device once for the group and not for each column.
using Groups = std::vector<TileColumn>;

/// Priorities between the updates of a group and those of the next one, or more.
std::int32_t span_of(const Groups& groups) {
  std::int32_t widest = 1;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    widest = std::max(widest, static_cast<std::int32_t>(c) - groups[c].value() + 1);
  }
  const auto columns = static_cast<std::int32_t>(groups.size());
  return column_priority(columns, columns - widest, 3) + 1;
}

/// Of a device's memory, what the columns of a group may take beside a panel that passes by.
constexpr double group_share = 0.75;

/// Whose priorities are asked for; of a matrix without a node the first one's.
NodeId node_of(const Matrix<double>& a) {
  return NodeId{a.state()->node == nullptr ? 0 : a.node().facts().rank};
}

/// Of each device of the matrix's node; 0: there are none, or nobody knows.
std::uint64_t device_memory_of(const Matrix<double>& a) {
  if (a.distribution().devices == 0 || a.state()->node == nullptr) return 0;
  const NodeFacts& facts = a.node().facts();
  return facts.devices == 0 ? 0 : facts.device_memory_bytes;
}

/// How tiles share the memory of devices.
struct MemoryUse {
  Groups groups;
  /// What comes to a device drives nothing out: no task needs to wait for more urgent ones to go.
  bool has_room = true;

  [[nodiscard]] std::int32_t priority_span() const {
    return has_room ? std::numeric_limits<std::int32_t>::max() : span_of(groups);
  }
};

/// Of a node whose devices have that memory each; 0: as much as is of use.
MemoryUse use_of_memory(const Matrix<double>& a, NodeId node, std::uint64_t device_memory) {
  const TileLayout& l = a.layout();
  MemoryUse use;
  Groups& groups = use.groups;
  for (TileColumn c{0}; c.value() < l.tile_columns(); ++c) groups.push_back(c);
  const std::int32_t devices = a.distribution().devices;
  if (devices == 0 || device_memory == 0) return use;
  // What all devices of the node have, and what a wide column takes of it.
  const OwnPart own(a.distribution(), node);
  const double memory = static_cast<double>(device_memory) * devices;
  std::vector<double> bytes(static_cast<std::size_t>(l.wide_columns()), 0.0);
  double all = 0;
  for (std::int32_t j = own.first_wide(0); j < l.wide_columns(); j += own.grid_columns) {
    double& column = bytes[static_cast<std::size_t>(j)];
    for (std::int32_t i = own.first_row(j); i < l.tile_rows(); i = own.first_row(i + 1)) {
      column += 8.0 * static_cast<double>(l.row_count(TileRow{i}) * (l.wide_width() - l.strip));
    }
    all += column;
  }
  use.has_room = all <= group_share * memory;
  if (all <= memory) return use;
  const double most = group_share * memory - *std::max_element(bytes.begin(), bytes.end());
  TileColumn first{0};
  double taken = 0;
  for (std::int32_t j = 0; j < l.wide_columns(); ++j) {
    taken += bytes[static_cast<std::size_t>(j)];
    if (taken > most) {
      first = l.wide_begin(j);
      taken = bytes[static_cast<std::size_t>(j)];
    }
    for (TileColumn c = l.wide_begin(j); c < l.wide_begin(j + 1); ++c) {
      // Of several pieces each keeps its place behind the first.
      groups[static_cast<std::size_t>(c.value())] = first + l.piece_of(c);
    }
  }
  return use;
}

/// The panel of one step: the diagonal piece, and the tiles under it, which it divides.
struct Panel {
  TaskStream& tasks;
  const Matrix<double>& a;
  const std::optional<Matrix<double>>& inverses;
  TileColumn c;
  std::int32_t k = 0;  ///< the diagonal tile's row
  Version factored;    ///< of tiles of column c
  TaskOptions options;

  [[nodiscard]] bool has_inverses() const {
    return inverses.has_value() && a.layout().is_remainder(c);
  }
  [[nodiscard]] protocol::Access diagonal() const { return read(a(TileRow{k}, c), factored); }
  [[nodiscard]] protocol::Access blocks() const {
    return read((*inverses)(TileRow{k}, c), Version{1});
  }
  TaskStream::Room factorize() const {
    const TileRef tile = a(TileRow{k}, c);
    if (!has_inverses()) return tasks.insert(kernel::potrf, options, read_write(tile));
    return tasks.insert(kernel::potrf, options, read_write(tile),
                        write((*inverses)(TileRow{k}, c)));
  }
  TaskStream::Room divide(std::int32_t i) const {
    const TileRef tile = a(TileRow{i}, c);
    if (!has_inverses()) {
      return tasks.insert(kernel::trsm, options, read_write(tile), diagonal());
    }
    return tasks.insert(kernel::trsm, options, read_write(tile), diagonal(), blocks());
  }
};

/// 001 section 3.1, with each node walking only the tasks that write its own tiles, and announcing
/// to whom the tiles of its part of a finished column go.
Program factorize(TaskStream& tasks, Matrix<double> a, std::optional<Matrix<double>> inverses,
                  Groups groups) {
  const TileLayout layout = a.layout();
  const OwnPart own(a.distribution(), tasks.node());
  const std::int32_t rows = layout.tile_rows();
  const std::int32_t columns = layout.tile_columns();

  for (TileColumn c{0}; c.value() < columns; ++c) {
    const std::int32_t k = layout.wide_of(c);  // the diagonal tile's row
    const Version factored{c.value() + 1};     // each column before it has updated the tile once
    const bool has_panel = own.has_wide(k);
    const bool has_diagonal = has_panel && own.has_row(k);
    Panel panel{tasks, a, inverses, c, k, factored, {}};
    panel.options.parameters = KernelParameters(kernel::PieceParameters{layout.offset_in_wide(c)});

    if (has_diagonal) {
      panel.options.priority = column_priority(columns, c.value(), 2);
      panel.options.info_base = layout.column_begin(c);
      co_await panel.factorize();
      panel.options.info_base = 0;
    }
    panel.options.priority = column_priority(columns, c.value(), 1);
    for (std::int32_t i = k + 1; has_panel && i < rows; ++i) {
      if (has_diagonal && i <= k + own.grid_rows && !own.has_row(i)) {
        const NodeId reader = a.distribution().node(i, k);
        co_await tasks.announce(panel.diagonal(), reader, panel.options.priority);
        if (panel.has_inverses()) {
          co_await tasks.announce(panel.blocks(), reader, panel.options.priority);
        }
      }
      if (own.has_row(i)) co_await panel.divide(i);
    }
    if (has_panel && panel.has_inverses()) tasks.release(panel.blocks());
    const Update update{tasks, a, a, own, c, factored, c + 1};
    for (std::int32_t j = update.first_wide(); j < rows; j = update.next_wide(j)) {
      for (TileColumn d = update.begin(j); d < layout.wide_begin(j + 1); ++d) {
        const std::int32_t priority =
            column_priority(columns, groups[static_cast<std::size_t>(d.value())].value(), 0);
        for (std::int32_t i = update.row_from(j, j, d); i < rows;
             i = update.row_from(i + 1, j, d)) {
          std::array<std::int32_t, 2> sources{};
          const std::int32_t readers = d == update.begin(j) ? update.readers_at(i, j, sources) : 0;
          for (std::int32_t s = 0; s < readers; ++s) {
            co_await tasks.announce(
                read(a(TileRow{sources[static_cast<std::size_t>(s)]}, c), factored),
                a.distribution().node(i, j), priority);
          }
          if (own.has_row(i) && own.has_wide(j)) co_await update.insert(i, j, d, priority);
        }
      }
    }
    release_column(tasks, a, own, c, factored);
  }
}

/// The same updates without the factorization in between, each column's own included.
Program subtract(TaskStream& tasks, Matrix<double> r, Matrix<double> l, Groups groups) {
  const TileLayout layout = r.layout();
  const OwnPart own(r.distribution(), tasks.node());
  const std::int32_t rows = layout.tile_rows();
  const std::int32_t columns = layout.tile_columns();
  const Version given{0};

  for (TileColumn c{0}; c.value() < columns; ++c) {
    const Update update{tasks, r, l, own, c, given, c};
    for (std::int32_t j = update.first_wide(); j < rows; j = update.next_wide(j)) {
      for (TileColumn d = update.begin(j); d < layout.wide_begin(j + 1); ++d) {
        const std::int32_t priority =
            column_priority(columns, groups[static_cast<std::size_t>(d.value())].value(), 0);
        for (std::int32_t i = update.row_from(j, j, d); i < rows;
             i = update.row_from(i + 1, j, d)) {
          std::array<std::int32_t, 2> sources{};
          const std::int32_t readers = d == update.begin(j) ? update.readers_at(i, j, sources) : 0;
          for (std::int32_t s = 0; s < readers; ++s) {
            co_await tasks.announce(
                read(l(TileRow{sources[static_cast<std::size_t>(s)]}, c), given),
                r.distribution().node(i, j), priority);
          }
          if (own.has_row(i) && own.has_wide(j)) co_await update.insert(i, j, d, priority);
        }
      }
    }
    release_column(tasks, l, own, c, given);
  }
}

void check_square_lower(const Matrix<double>& a) {
  HEDDLE_CHECK(a.rows() == a.columns() && a.storage() == Storage::lower, "{} x {}", a.rows(),
               a.columns());
}

}  // namespace

JobSpec cholesky(const Matrix<double>& a) {
  const std::int64_t inner = a.node().facts().inverse_block;
  std::optional<Matrix<double>> inverses;
  if (inner > 0) inverses = a.node().matrix<double>(inverses_spec(a, inner));
  return cholesky(a, inverses);
}

JobSpec cholesky(const Matrix<double>& a, const std::optional<Matrix<double>>& inverses,
                 std::optional<std::uint64_t> device_memory) {
  check_square_lower(a);
  JobSpec spec;
  spec.name = "cholesky";
  spec.fine = a.layout().fine;
  spec.matrices = {a.id()};
  spec.keep_alive = {a.state()};
  if (inverses.has_value()) {
    HEDDLE_CHECK(inverses->layout().wide_width() == a.layout().wide_width() &&
                     inverses->columns() == a.columns(),
                 "inverse blocks for wide columns of {}, not {}", inverses->layout().wide_width(),
                 a.layout().wide_width());
    spec.matrices.push_back(inverses->id());
    spec.temporaries = {inverses->id()};
    spec.keep_alive.push_back(inverses->state());
  }
  const std::uint64_t memory = device_memory.value_or(device_memory_of(a));
  spec.priority_span = use_of_memory(a, node_of(a), memory).priority_span();
  spec.program = [a, inverses, memory](TaskStream& tasks) {
    return factorize(tasks, a, inverses, use_of_memory(a, tasks.node(), memory).groups);
  };
  return spec;
}

MatrixSpec inverses_spec(const Matrix<double>& a, std::int64_t inner) {
  HEDDLE_CHECK(inner >= 1, "inverse blocks of {} columns", inner);
  const TileLayout& l = a.layout();
  MatrixSpec spec = a.state()->spec;
  spec.storage = Storage::full;
  spec.temporary = true;
  spec.layout.wide = l.wide_width();
  spec.layout.tile = std::min(inner, l.wide_width());
  spec.rows = spec.layout.rows = spec.layout.tile * l.tile_rows();
  return spec;
}

JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l) {
  check_square_lower(r);
  HEDDLE_CHECK(r.layout() == l.layout() && r.distribution() == l.distribution());
  JobSpec spec;
  spec.name = "residual";
  spec.fine = r.layout().fine;
  spec.matrices = {r.id(), l.id()};
  spec.keep_alive = {r.state(), l.state()};
  const MemoryUse use = use_of_memory(r, node_of(r), device_memory_of(r));
  spec.priority_span = use.priority_span();
  spec.program = [r, l, groups = use.groups](TaskStream& tasks) {
    return subtract(tasks, r, l, groups);
  };
  return spec;
}

}  // namespace heddle
