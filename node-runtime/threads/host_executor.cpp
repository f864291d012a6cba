#include "node-runtime/threads/host_executor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {

using protocol::Task;

namespace {

/// Outputs that were renamed go on from the old content.
void fill_renamed(const TileStore& store, const Task& task, const TaskTiles& tiles) {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    if (operand.copy_from.valid()) {
      copy_tile(view_of(store, task, operand.tile, operand.copy_from), tiles[i]);
    }
  }
}

/// Passes time by sleeping. Who sleeps wakes late, and sleeps the less the next time.
class PretendedWork {
 public:
  PretendedWork() {
    // The system would let all sleepers of 50 us wake together.
    static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL));
  }

  void take(double seconds) {
    const std::int64_t begin = trace::now_ns();
    const auto asked = static_cast<std::int64_t>(seconds * 1e9);
    if (asked > late_ns_) std::this_thread::sleep_for(std::chrono::nanoseconds(asked - late_ns_));
    late_ns_ = std::min(late_ns_max, late_ns_ + trace::now_ns() - begin - asked);
  }

 private:
  static constexpr std::int64_t late_ns_max = 1'000'000;
  std::int64_t late_ns_ = 0;
};

}  // namespace

HostExecutor::HostExecutor(TileStore& store, trace::Recorder& recorder, KernelWatch& watch,
                           KernelReports& reports, WorkerSeconds worker_seconds)
    : store_(store),
      recorder_(recorder),
      watch_(watch),
      reports_(reports),
      worker_seconds_(std::move(worker_seconds)) {}

void HostExecutor::divide(DividedTask& divided, Task& task, const FineGraph& graph,
                          trace::ThreadTrace& trace) {
  const TaskTiles tiles(store_, task);
  divided.start_ns = trace::now_ns();
  if (!job_of(task).cancelled.load(std::memory_order_relaxed)) fill_renamed(store_, task, tiles);
  FineScheduler::prepare(divided, task, task.priority, graph, tiles.span());
  trace.add_busy(trace::now_ns() - divided.start_ns);
}

std::int64_t HostExecutor::run_kernel(const Task& task, std::int32_t worker, const Kernel& kernel,
                                      const KernelArguments& arguments) {
  const double pretended = worker_seconds_ ? worker_seconds_(kernel, arguments) : 0.0;
  if (pretended > 0) {
    thread_local PretendedWork work;
    work.take(pretended);
    return 0;
  }
  HEDDLE_DEBUG(kernel.host != nullptr && !arguments.tiles.empty(), "{}", kernel.name);
  const auto runner = static_cast<std::size_t>(worker);
  const TileView& output = arguments.tiles[0];
  watch_.begin(runner, kernel, {output.rows, output.columns}, trace::now_ns());
  std::int64_t info = 0;
  try {
    info = kernel.host(arguments);
  } catch (const std::exception& error) {
    reports_.kernel_threw(task, as_error(error));
  } catch (...) {
    reports_.kernel_threw(task, Error(ErrorCode::internal, "an exception of unknown type"));
  }
  watch_.end(runner);
  return info;
}

std::int64_t HostExecutor::execute(const Task& task, std::int32_t worker,
                                   trace::ThreadTrace& trace) {
  JobRecord& job = job_of(task);
  const std::int64_t start = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) {
    const TaskTiles tiles(store_, task);
    fill_renamed(store_, task, tiles);
    const auto parameters = parameters_of(task);
    const std::int64_t info = run_kernel(task, worker, kernel_of(task), {tiles.span(), parameters});
    if (info > 0) {
      reports_.numerical_failure(job, task.work.info_base + info,
                                 failing_pivot(task, tiles[0], info));
    }
  }
  const std::int64_t end = trace::now_ns();
  record_task(trace, task, start, end);
  return end;
}

void HostExecutor::record_divided(const DividedTask& divided) {
  const std::lock_guard lock(divided_mutex_);
  if (divided_trace_ == nullptr) {
    divided_trace_ = &recorder_.thread(std::string(trace::divided_row), trace::divided_row_order);
  }
  record_task(*divided_trace_, *divided.task, divided.start_ns, trace::now_ns(),
              {.is_divided = true});
}

/// The tiles' content is visible here: a fine task is taken under the lock under which those that
/// it waits for were finished.
std::int64_t HostExecutor::execute_fine(const FineWork& work, std::int32_t worker,
                                        trace::ThreadTrace& trace) {
  const DividedTask& divided = *work.of;
  const Task& task = *divided.task;
  JobRecord& job = job_of(task);
  const FineTask& fine = work.task();
  const std::int64_t start = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) {
    std::array<TileView, FineTask::accesses_max> views;
    for (std::uint8_t i = 0; i < fine.operand_count; ++i) {
      const TileArea& area = fine.operands[i].area;
      views[i] = divided.tiles[area.tile].block(area.row, area.column, area.rows, area.columns);
    }
    const std::int64_t info = run_kernel(task, worker, *fine.kernel,
                                         {{views.data(), fine.operand_count}, fine.parameters});
    if (info > 0) {
      const std::int64_t within = fine.info_base + info;
      reports_.numerical_failure(job, task.work.info_base + within,
                                 failing_pivot(task, divided.tiles[0], within));
    }
  }
  const std::int64_t end = trace::now_ns();
  record_fine_task(trace, work, start, end);
  return end;
}

}  // namespace heddle
