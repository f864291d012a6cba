#include "algorithms/cholesky/cholesky.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/cholesky/column_groups.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/cholesky/readers.hpp"
#include "algorithms/walk/job.hpp"
#include "algorithms/walk/tile_walk.hpp"
#include "base/require.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

TaskOptions piece_options(const Matrix<double>& a, TileColumn c, int step) {
  TaskOptions options;
  options.priority = column_priority(a.layout().tile_columns(), c, step);
  options.parameters = KernelParameters(kernel::PieceParameters{a.layout().offset_in_wide(c)});
  return options;
}

/// r(i, d) -= l(i, c) l(j, c)^T with column c of l, where j is the row of d's diagonal tile.
class Update {
 public:
  Update(const Matrix<double>& r, const Matrix<double>& l, TileColumn c, const ColumnGroups& groups)
      : r_(r), l_(l), c_(c), groups_(groups) {}

  [[nodiscard]] TaskStream::Room insert(const TileWalk::Task& task) {
    const TileRow i = task.row;
    if (task.column != d_) begin_column(task.column);
    if (i == j_) {
      options_.parameters = KernelParameters(kernel::PieceParameters{offset_});
      return task.insert(kernel::syrk, {read_write(r_(i, d_)), read(l_(i, c_))}, options_);
    }
    options_.parameters = KernelParameters(kernel::UpdateParameters{offset_});
    return task.insert(kernel::gsmm, {read_write(r_(i, d_)), read(l_(i, c_)), read(l_(j_, c_))},
                       options_);
  }

 private:
  void begin_column(TileColumn d) {
    d_ = d;
    j_ = r_.layout().diagonal_row(d);
    offset_ = r_.layout().offset_in_wide(d);
    options_.priority = column_priority(r_.layout().tile_columns(),
                                        groups_[static_cast<std::size_t>(d.value())], 0);
  }

  const Matrix<double>& r_;
  const Matrix<double>& l_;
  TileColumn c_;
  const ColumnGroups& groups_;
  TileColumn d_{-1};
  TileRow j_;
  std::int64_t offset_ = 0;
  TaskOptions options_;
};

/// 001 section 3.1. `inverses`: inverse blocks of the remainders' diagonal tiles, which devices
/// factorize, turn the divisions into products.
Program factorize(TaskStream& tasks, Matrix<double> a, std::optional<Matrix<double>> inverses,
                  ColumnGroups groups) {
  const TileLayout layout = a.layout();
  TileWalk walk(tasks, a);

  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    const TileRow k = layout.diagonal_row(c);
    const TileRange panel = walk.column(c, k + 1);
    const TileRange trailing = walk.trailing(k, c + 1);
    const bool inverts = inverses.has_value() && layout.is_remainder(c);

    for (const auto task : walk.over(walk.tile(k, c))) {
      TaskOptions first = piece_options(a, c, 2);
      first.info_base = layout.column_begin(c);
      if (inverts) {
        co_await task.insert(kernel::potrf, {read_write(a(k, c)), write((*inverses)(k, c))}, first);
      } else {
        co_await task.insert(kernel::potrf, {read_write(a(k, c))}, first);
      }
    }
    walk.broadcast(a(k, c), {panel, walk.row_of(trailing, k), walk.column_of(trailing, k)});
    if (inverts) walk.broadcast(read((*inverses)(k, c), Version{1}), {panel});
    const TaskOptions options = piece_options(a, c, 1);
    for (const auto task : walk.over(panel)) {
      if (inverts) {
        co_await task.insert(kernel::trsm,
                             {read_write(a(task.row, c)), read(a(k, c)), read((*inverses)(k, c))},
                             options);
      } else {
        co_await task.insert(kernel::trsm, {read_write(a(task.row, c)), read(a(k, c))}, options);
      }
    }
    walk.broadcast_column(a, c, k + 1, trailing);
    Update update(a, a, c, groups);
    for (const auto task : walk.over(trailing)) co_await update.insert(task);
  }
}

/// r -= l l^T: the same updates without the factorization in between.
Program subtract(TaskStream& tasks, Matrix<double> r, Matrix<double> l, ColumnGroups groups) {
  const TileLayout layout = r.layout();
  TileWalk walk(tasks, r);

  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    const TileRow k = layout.diagonal_row(c);
    const TileRange updated = walk.trailing(k, c);
    walk.broadcast_column(l, c, k, updated, Version{0});
    Update update(r, l, c, groups);
    for (const auto task : walk.over(updated)) co_await update.insert(task);
  }
}

void require_square_lower(const char* function, const Matrix<double>& a) {
  require(a.rows() == a.columns() && a.storage() == Storage::lower,
          "{}: the matrix is {} x {}{}; it must be square with Storage::lower", function, a.rows(),
          a.columns(), a.storage() == Storage::lower ? "" : " and stored otherwise");
}

/// The node whose priorities are planned; the first one for a matrix without a node.
NodeId node_of(const Matrix<double>& a) {
  return NodeId{a.state()->node == nullptr ? 0 : a.node().facts().rank};
}

/// Bytes of each device of the matrix's node; 0 when there are none, or no node.
std::uint64_t device_memory_of(const Matrix<double>& a) {
  if (a.distribution().devices == 0 || a.state()->node == nullptr) return 0;
  const NodeFacts& facts = a.node().facts();
  return facts.devices == 0 ? 0 : facts.device_memory_bytes;
}

}  // namespace

JobSpec cholesky(const Matrix<double>& a) {
  require_square_lower("cholesky", a);
  const std::int64_t inner = a.node().facts().inverse_block;
  std::optional<Matrix<double>> inverses;
  if (inner > 0) inverses = a.node().matrix<double>(inverses_spec(a, inner));
  return cholesky(a, inverses);
}

JobSpec cholesky(const Matrix<double>& a, const std::optional<Matrix<double>>& inverses,
                 std::optional<std::uint64_t> device_memory) {
  require_square_lower("cholesky", a);
  std::vector<Matrix<double>> matrices{a};
  if (inverses.has_value()) {
    require(inverses->layout().wide_width() == a.layout().wide_width() &&
                inverses->columns() == a.columns(),
            "cholesky: inverse blocks for {} columns in wide columns of {}, but the matrix has {} "
            "columns in wide columns of {}",
            inverses->columns(), inverses->layout().wide_width(), a.columns(),
            a.layout().wide_width());
    matrices.push_back(*inverses);
  }
  const std::uint64_t memory = device_memory.value_or(device_memory_of(a));
  JobSpec spec = job_of("cholesky", matrices, [a, inverses, memory](TaskStream& tasks) {
    return factorize(tasks, a, inverses, use_of_memory(a, tasks.node(), memory).groups);
  });
  spec.fine = a.layout().fine;
  spec.priority_span = use_of_memory(a, node_of(a), memory).priority_span();
  spec.readers = [a, inverses](protocol::TileId tile, Version version) {
    return cholesky_readers(a, inverses, tile, version);
  };
  return spec;
}

MatrixSpec inverses_spec(const Matrix<double>& a, std::int64_t inner) {
  require(inner >= 1, "inverses_spec: blocks of {} columns; at least 1 is needed", inner);
  const TileLayout& l = a.layout();
  MatrixSpec spec = a.spec();
  spec.storage = Storage::full;
  spec.temporary = true;
  spec.layout.wide = l.wide_width();
  spec.layout.tile = std::min(inner, l.wide_width());
  spec.layout.rows = spec.layout.tile * l.tile_rows();
  return spec;
}

JobSpec subtract_product(const Matrix<double>& r, const Matrix<double>& l) {
  require_square_lower("subtract_product", r);
  require(
      l.storage() == Storage::lower && r.layout() == l.layout() &&
          r.distribution() == l.distribution(),
      "subtract_product: r is {} x {} in tiles of {}, l is {} x {} in tiles of {}; both must be "
      "lower and alike in layout and distribution",
      r.rows(), r.columns(), r.layout().tile, l.rows(), l.columns(), l.layout().tile);
  const MemoryUse use = use_of_memory(r, node_of(r), device_memory_of(r));
  JobSpec spec = job_of("residual", {r, l}, [r, l, groups = use.groups](TaskStream& tasks) {
    return subtract(tasks, r, l, groups);
  });
  spec.fine = r.layout().fine;
  spec.priority_span = use.priority_span();
  return spec;
}

}  // namespace heddle
