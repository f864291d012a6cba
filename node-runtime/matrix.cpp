#include "node-runtime/matrix.hpp"

#include <algorithm>
#include <exception>
#include <fmt/core.h>
#include <mutex>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/local_array.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/program.hpp"
#include "node-runtime/visits.hpp"

namespace heddle {

/// What the tasks of one for_each_tile, set_columns or read_columns share; one of the three visits.
struct TileVisit {
  Matrix<double>::Visitor visit;
  Matrix<double>::ColumnsVisitor set;
  Matrix<double>::ColumnsReader look;
  Matrix<double>::Choice chosen;  ///< empty: all tiles
  std::mutex mutex;
  std::exception_ptr error;  ///< the first; guarded by the mutex
};

namespace {

/// An exception is kept for the caller, and fails the job, so that visits that have not begun are
/// skipped on all nodes.
template <class Call>
std::int64_t run_guarded(TileVisit& visit, const Call& call) {
  try {
    call();
  } catch (...) {
    const std::lock_guard lock(visit.mutex);
    if (!visit.error) visit.error = std::current_exception();
    throw;
  }
  return 0;
}

struct VisitParameters {
  TileVisit* visit;
  std::int32_t row;
  std::int32_t column;
};

std::int64_t run_visit(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<VisitParameters>();
  return run_guarded(
      *p.visit, [&] { p.visit->visit(TileRow{p.row}, TileColumn{p.column}, arguments.tiles[0]); });
}

struct SetParameters {
  TileVisit* visit;
  std::int64_t row;  ///< of the tile's first element
  std::int64_t column;
};

std::int64_t run_set(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<SetParameters>();
  return run_guarded(*p.visit, [&] {
    p.visit->set(GlobalRow{p.row}, GlobalColumn{p.column + arguments.first_column},
                 arguments.tiles[0]);
  });
}

std::int64_t run_look(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<VisitParameters>();
  return run_guarded(*p.visit, [&] {
    p.visit->look(TileRow{p.row}, TileColumn{p.column}, arguments.first_column, arguments.tiles[0]);
  });
}

constexpr Kernel visit_kernel{.name = "visit", .host = run_visit};
constexpr Kernel set_kernel{.name = "set", .host = run_set, .is_by_columns = true};
constexpr Kernel look_kernel{
    .name = "look", .host = run_look, .is_by_columns = true, .leaves_tile = true};

Program visit_program(TaskStream& tasks, Matrix<double> matrix, TileVisit* visit) {
  const TileLayout layout = matrix.layout();
  for (TileColumn c{0}; c.value() < layout.tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < layout.tile_rows(); ++i) {
      if (!matrix.stores(i, c) || matrix.home(i, c).node != tasks.node()) continue;
      if (visit->chosen && !visit->chosen(i, c)) continue;
      TaskOptions options;
      options.priority = 1023;  // somebody waits for it
      if (visit->set) {
        options.parameters =
            KernelParameters(SetParameters{visit, layout.row_begin(i), layout.column_begin(c)});
        co_await tasks.insert(set_kernel, {write(matrix(i, c))}, options);
        continue;
      }
      options.parameters = KernelParameters(VisitParameters{visit, i.value(), c.value()});
      // A task has an output, if only by name.
      const Kernel& kernel = visit->look ? look_kernel : visit_kernel;
      co_await tasks.insert(kernel, {read_write(matrix(i, c))}, options);
    }
  }
}

}  // namespace

MatrixState::~MatrixState() {
  if (link == nullptr) return;
  if (const auto engine = link->try_use()) engine->remove_matrix(id);
}

Matrix<double>::Matrix(std::shared_ptr<MatrixState> state)
    : state_(std::move(state)),
      spec_(&state_->spec),
      id_(&state_->id),
      tile_rows_(spec_->layout.tile_rows()),
      tile_columns_(spec_->layout.tile_columns()) {}

Node& Matrix<double>::node() const {
  require(state_->node != nullptr, "matrix {} belongs to no node", id().value());
  // Without a link it is only planned, by the node's own thread.
  if (state_->link != nullptr) {
    const auto use = state_->link->use(fmt::format("matrix {}", id().value()));
  }
  return *state_->node;
}

void Matrix<double>::refuse_tile(TileRow i, TileColumn c) const {
  const char* const kept = storage() == Storage::full    ? ""
                           : storage() == Storage::lower ? ", of which it keeps the lower triangle"
                                                         : ", of which it keeps the upper triangle";
  throw Error(
      ErrorCode::usage,
      fmt::format("matrix {} has no tile ({}, {}): it has {} x {} tiles{}", id().value(), i.value(),
                  c.value(), layout().tile_rows(), layout().tile_columns(), kept));
}

Location Matrix<double>::home(TileRow i, TileColumn c) const {
  const TileLayout& layout = spec_->layout;
  const Distribution& d = spec_->distribution;
  const WideColumn mirrored = layout.diagonal_wide(i);
  switch (spec_->dealing) {
    case Dealing::cyclic:
      break;
    case Dealing::transposed:
      return {d.node(layout.diagonal_row(c), mirrored), d.place(mirrored)};
    case Dealing::diagonal:
      return {d.node(i, mirrored), d.place(mirrored)};
  }
  return d.home(layout, i, c);
}

namespace {

/// Submits the visits as a job. They are the job's own: after a failure of the node, workers may go
/// on while the caller has left.
Visits begin_visits(const Matrix<double>& matrix, const std::shared_ptr<TileVisit>& visit) {
  JobSpec spec;
  spec.name = "visit";
  spec.matrices = {matrix.id()};
  spec.keep_alive = {matrix.state(), visit};
  spec.program = [matrix, visit = visit.get()](TaskStream& tasks) {
    return visit_program(tasks, matrix, visit);
  };
  return {visit, matrix.node().submit(std::move(spec))};
}

}  // namespace

Visits::Visits(std::shared_ptr<TileVisit> visit, Job job)
    : visit_(std::move(visit)), job_(std::move(job)) {}

void Visits::wait() {
  const JobResult result = job_.wait();
  // The job has ended: nobody else reads or writes `error` any more.
  if (visit_->error) std::rethrow_exception(visit_->error);
  if (result.status == JobResult::Status::failed) throw Error(result.code, result.error);
}

Visits begin_set_columns(const Matrix<double>& matrix, Matrix<double>::ColumnsVisitor visit) {
  const auto shared = std::make_shared<TileVisit>();
  shared->set = std::move(visit);
  return begin_visits(matrix, shared);
}

Matrix<double>& Matrix<double>::for_each_tile(const Visitor& visitor, const Choice& chosen) {
  const auto visit = std::make_shared<TileVisit>();
  visit->visit = visitor;
  visit->chosen = chosen;
  begin_visits(*this, visit).wait();
  return *this;
}

Matrix<double>& Matrix<double>::set_columns(const ColumnsVisitor& visitor) {
  begin_set_columns(*this, visitor).wait();
  return *this;
}

void Matrix<double>::read_columns(const ColumnsReader& visitor, const Choice& chosen) const {
  const auto visit = std::make_shared<TileVisit>();
  visit->look = visitor;
  visit->chosen = chosen;
  begin_visits(*this, visit).wait();
}

std::int64_t Matrix<double>::local_rows() const {
  return LocalArray(*spec_, NodeId{node().rank()}).rows();
}

std::int64_t Matrix<double>::local_columns() const {
  return LocalArray(*spec_, NodeId{node().rank()}).columns();
}

namespace {

/// A copy between the tiles of a node and its local array.
class LocalCopy {
 public:
  /// `function`: its name in messages.
  LocalCopy(const Matrix<double>& matrix, const char* function, const double* local,
            std::int64_t leading)
      : matrix_(matrix),
        array_(matrix.spec(), NodeId{matrix.node().rank()}),
        function_(function),
        is_null_(local == nullptr),
        leading_(leading) {}

  /// Where tile (i, c) begins in the array. Throws for what the caller gave: in a visit, so that
  /// the other nodes throw too.
  [[nodiscard]] std::int64_t offset(TileRow i, TileColumn c) const {
    require(!is_null_, "{}: no memory was given for {} x {} elements", function_, array_.rows(),
            array_.columns());
    require(leading_ >= array_.rows(),
            "{}: a distance of {} between columns; this node has {} rows of the matrix", function_,
            leading_, array_.rows());
    return array_.offset(i, c, leading_);
  }
  /// Rows of column j of tile (i, c) that are no part of the matrix: of lower storage those above
  /// the diagonal.
  [[nodiscard]] std::int64_t rows_above(TileRow i, TileColumn c, std::int64_t j,
                                        std::int64_t rows) const {
    if (matrix_.storage() != Storage::lower) return 0;
    const TileLayout& l = matrix_.layout();
    return std::clamp<std::int64_t>(l.column_begin(c) + j - l.row_begin(i), 0, rows);
  }

 private:
  Matrix<double> matrix_;
  LocalArray array_;
  const char* function_;
  bool is_null_;
  std::int64_t leading_;
};

}  // namespace

void Matrix<double>::copy_to(double* local, std::int64_t leading) const {
  const LocalCopy copy(*this, "Matrix::copy_to", local, leading);
  read_columns(
      [copy, local, leading](TileRow i, TileColumn c, std::int64_t first, TileView columns) {
        double* const to = local + copy.offset(i, c) + first * leading;
        for (std::int64_t j = 0; j < columns.columns; ++j) {
          const std::int64_t above = copy.rows_above(i, c, first + j, columns.rows);
          std::copy_n(columns.data + above + j * columns.leading, columns.rows - above,
                      to + above + j * leading);
        }
      });
}

Matrix<double>& Matrix<double>::copy_from(const double* local, std::int64_t leading) {
  const LocalCopy copy(*this, "Matrix::copy_from", local, leading);
  return for_each_tile([copy, local, leading](TileRow i, TileColumn c, TileView tile) {
    const double* const from = local + copy.offset(i, c);
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      const std::int64_t above = copy.rows_above(i, c, j, tile.rows);
      double* const column = tile.data + j * tile.leading;
      std::fill_n(column, above, 0.0);
      std::copy_n(from + above + j * leading, tile.rows - above, column + above);
    }
  });
}

}  // namespace heddle
