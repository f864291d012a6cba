#include "node-runtime/matrix.hpp"

#include <exception>
#include <fmt/core.h>
#include <mutex>

#include "base/require.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/engine_link.hpp"

namespace heddle {
namespace {

/// What the tasks of one for_each_tile share.
struct Visit {
  Matrix<double>::Visitor visit;
  std::mutex mutex;
  std::exception_ptr error;  ///< the first; guarded by the mutex
};

struct VisitParameters {
  Visit* visit;
  std::int32_t row;
  std::int32_t column;
};

/// An exception is kept for the caller, and fails the job, so that visits that have not begun are
/// skipped on all nodes.
std::int64_t run_visit(const KernelArguments& arguments) {
  const auto p = arguments.parameters.as<VisitParameters>();
  try {
    p.visit->visit(TileRow{p.row}, TileColumn{p.column}, arguments.tiles[0]);
  } catch (...) {
    const std::lock_guard lock(p.visit->mutex);
    if (!p.visit->error) p.visit->error = std::current_exception();
    throw;
  }
  return 0;
}

constexpr Kernel visit_kernel{.name = "visit", .host = run_visit};

Program visit_program(TaskStream& tasks, Matrix<double> matrix, Visit* visit) {
  const TileLayout layout = matrix.layout();
  for (TileColumn c{0}; c.value() < layout.tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < layout.tile_rows(); ++i) {
      if (!matrix.stores(i, c) || matrix.home(i, c).node != tasks.node()) continue;
      TaskOptions options;
      options.priority = 1023;  // somebody waits for it
      options.parameters = KernelParameters(VisitParameters{visit, i.value(), c.value()});
      co_await tasks.insert(visit_kernel, options, read_write(matrix(i, c)));
    }
  }
}

}  // namespace

MatrixState::~MatrixState() {
  if (link == nullptr) return;
  if (const auto engine = link->try_use()) engine->remove_matrix(id);
}

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
  const MatrixSpec& spec = state_->spec;
  switch (spec.dealing) {
    case Dealing::cyclic:
      break;
    case Dealing::transposed:
      return {spec.distribution.node(spec.layout.diagonal_row(c), spec.layout.diagonal_wide(i)),
              host_place};
    case Dealing::diagonal:
      return {spec.distribution.node(i, spec.layout.diagonal_wide(i)), host_place};
  }
  return spec.distribution.home(spec.layout, i, c);
}

Matrix<double>& Matrix<double>::for_each_tile(const Visitor& visitor) {
  // The job's own: after a failure of the node, workers may go on while the caller has left.
  const auto visit = std::make_shared<Visit>();
  visit->visit = visitor;
  JobSpec spec;
  spec.name = "visit";
  spec.matrices = {id()};
  spec.keep_alive = {state_, visit};
  spec.program = [matrix = *this, visit = visit.get()](TaskStream& tasks) {
    return visit_program(tasks, matrix, visit);
  };
  const JobResult result = node().submit(std::move(spec)).wait();
  // The job has ended: nobody else reads or writes `error` any more.
  if (visit->error) std::rethrow_exception(visit->error);
  if (result.status == JobResult::Status::failed) throw Error(result.code, result.error);
  return *this;
}

}  // namespace heddle
