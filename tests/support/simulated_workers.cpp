#include <fmt/core.h>
#include <tuple>
#include <utility>

#include "kernels/kernels.hpp"
#include "tests/support/simulated_cluster_state.hpp"

/// The CPU workers of simulated nodes where tasks are divided into fine ones.
namespace heddle::simulation {
namespace {

/// The graphs of all kernels with a fine-grain form, on tiles of 30 in parts of 8. What a simulated
/// task computes is nothing, so that any of them may be any task's.
const std::vector<FineGraph>& graphs() {
  static const std::vector<FineGraph> all = [] {
    constexpr OperandShape tile{30, 30};
    constexpr OperandShape t{6, 30};
    const KernelParameters piece(kernel::PieceParameters{});
    const KernelParameters panel(kernel::PanelParameters{0, 0, 6});
    const KernelParameters rows(kernel::PanelParameters{0, 0, 30});
    const std::vector<std::tuple<const Kernel*, KernelParameters, std::vector<OperandShape>>> cases{
        {&kernel::potrf, piece, {tile}},
        {&kernel::potrf, piece, {tile, t}},
        {&kernel::trsm, piece, {tile, tile}},
        {&kernel::gsmm, piece, {tile, tile, tile}},
        {&kernel::syrk, piece, {tile, tile}},
        {&kernel::geqrt, panel, {tile, tile, t}},
        {&kernel::unmqr, panel, {tile, tile, tile, t}},
        {&kernel::unmqr_back, panel, {tile, tile, tile, t}},
        {&kernel::tsqrt, panel, {tile, tile, t, tile}},
        {&kernel::tsmqr, panel, {tile, tile, tile, t, tile}},
        {&kernel::tsmqr_back, panel, {tile, tile, tile, t}},
        {&kernel::ttqrt, panel, {tile, tile, t, tile, tile}},
        {&kernel::ttmqr, panel, {tile, tile, tile, t, tile, tile}},
        {&kernel::ttmqr_back, panel, {tile, tile, tile, t, tile, tile}},
        {&kernel::copy_rows, rows, {tile, tile}},
        {&kernel::copy_triangle, rows, {tile, tile}},
    };
    std::vector<FineGraph> graphs;
    graphs.reserve(cases.size());
    for (const auto& [kernel, parameters, shapes] : cases) {
      graphs.emplace_back(fine_form({kernel, parameters, shapes}, 8));
    }
    return graphs;
  }();
  return all;
}

/// Both touch some element, and one of them writes there.
bool collide(const FineTask& a, const FineTask& b) {
  for (const FineAccess& x : a.accesses()) {
    for (const FineAccess& y : b.accesses()) {
      if ((x.writes || y.writes) && !x.area.is_empty() && !y.area.is_empty() &&
          x.area.meets(y.area)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

/// Pairs of workers share a cache.
std::vector<std::uint8_t> SimulatedCluster::distances_of_workers() const {
  std::vector<std::uint8_t> distances;
  for (std::int32_t a = 0; a < options_.fine_workers; ++a) {
    for (std::int32_t b = 0; b < options_.fine_workers; ++b) {
      distances.push_back(a == b ? 0 : a / 2 == b / 2 ? 1 : 2);
    }
  }
  return distances;
}

/// The task that was begun last, if it has fine ones, the scheduler has room and chance wants it.
bool SimulatedCluster::divide_task(Node& node) {
  if (options_.fine_workers == 0 || random_() % 4 == 0) return false;
  if (!node.fine) node.fine.emplace(options_.fine_workers, distances_of_workers());
  if (!node.fine->may_begin()) return false;
  const ReadyTask& task = node.running.back().of;
  const Statement& statement = jobs_[task.job]->program.statements[task.statement];
  const FineGraph* const graph =
      statement.fine ? *statement.fine : &graphs()[random_() % graphs().size()];
  if (graph == nullptr || graph->size() <= 1) return false;
  if (!statement.kernel.empty()) outcome_.kernels_divided.insert(statement.kernel);
  DividedTask& divided = node.fine->begin();
  Node::Running running = std::move(node.running.back());
  node.running.pop_back();
  FineScheduler::prepare(divided, *running.of.task, running.of.task->priority, *graph, {});
  node.fine->open(divided, static_cast<std::int32_t>(
                               random_() % static_cast<std::uint64_t>(options_.fine_workers)));
  node.divided[&divided] = {std::move(running),
                            std::vector<std::int32_t>(static_cast<std::size_t>(graph->size()), 0)};
  return true;
}

void SimulatedCluster::start_fine_task(Node& node) {
  const std::int32_t urgent = node.fine->top();
  const FineWork work = node.fine->take(
      static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(options_.fine_workers)));
  if (!work) return fail(Check::fine_tasks, "a fine task is ready, and there is none");
  if (work.of->priority != urgent) {
    fail(Check::fine_tasks,
         fmt::format("a fine task of priority {} overtakes one of {}", work.of->priority, urgent));
  }
  begin_fine_task(node, work);
  const auto next = work.of->graph->successors(work.number);
  if (!next.empty() && inject(Fault::fine_task_early)) begin_fine_task(node, {work.of, next[0]});
}

void SimulatedCluster::begin_fine_task(Node& node, const FineWork& work) {
  Node::Divided& divided = node.divided.at(work.of);
  ++outcome_.fine_tasks;
  if (++divided.begun[static_cast<std::size_t>(work.number)] != 1) {
    fail(Check::fine_tasks, fmt::format("fine task {} runs twice", work.number));
  }
  for (const FineWork& other : node.fine_running) {
    if (other.of == work.of && collide(other.task(), work.task())) {
      fail(Check::fine_tasks,
           fmt::format("fine tasks {} and {} of a task run together", other.number, work.number));
    }
  }
  node.fine_running.push_back(work);
}

void SimulatedCluster::finish_fine_task(Node& node, std::size_t index) {
  const FineWork work = node.fine_running[index];
  node.fine_running.erase(node.fine_running.begin() + static_cast<std::ptrdiff_t>(index));
  if (inject(Fault::fine_task_lost)) return;
  if (!node.fine->finish(work).completes_task) return;
  Node::Divided divided = std::move(node.divided.at(work.of));
  node.divided.erase(work.of);
  for (std::size_t i = 0; i < divided.begun.size(); ++i) {
    if (divided.begun[i] != 1) {
      fail(Check::fine_tasks, fmt::format("a task is over without its fine task {}", i));
    }
  }
  node.fine->close(*work.of);
  node.running.push_back(std::move(divided.running));
}

}  // namespace heddle::simulation
