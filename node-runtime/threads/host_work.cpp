#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <sys/prctl.h>
#include <thread>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

/// What CPU workers run: tasks as a whole, or divided (000 section 3.2).
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

HostWork Engine::finish_and_take(const HostWork& finished, std::int32_t worker) {
  Wakes wakes;
  HostWork next;
  if (finished.task != nullptr) protocol::Protocol::expect_finished(*finished.task);
  {
    std::unique_lock lock(mutex_);
    Task* completed = finished.task;
    if (finished.fine) {
      DividedTask& divided = *finished.fine.of;
      const FineScheduler::Finished result = fine_.finish(finished.fine);
      wakes.cpu += static_cast<std::size_t>(result.ready);
      if (result.completes_task) {
        completed = divided.task;
        if (recorder_.enabled()) {
          lock.unlock();  // recording may allocate; nobody else has to do with the task any more
          record_divided(divided);
          lock.lock();
        }
        fine_.close(divided);
      }
    }
    if (completed != nullptr) {
      finished_locked(*completed);
      wakes.merge(apply());
    }
    if (lending_) {
      while (lending_->lend(ready_)) {
      }
      wakes.cpu += lending_->take_arrived(*ready_[0]);
    }
    next = take_host_work(worker);
    if (next && wakes.cpu > 0) --wakes.cpu;  // the caller takes one itself
    update_ready_hint();
  }
  ring(wakes);
  return next;
}

/// With the lock. A device waits for what is staged. Among the others an urgent task overtakes the
/// fine tasks of less urgent ones, unless very many are divided already; it never runs whole for
/// want of a place, which would change its bits.
HostWork Engine::take_host_work(std::int32_t worker) {
  HostWork next;
  next.task = staged_.pop();
  next.is_staged = next.task != nullptr;
  if (next.is_staged) return next;  // it was counted as running when its device took it
  ReadyQueue& ready = *ready_[0];
  const Task* const first = ready.front();
  const bool divides = first != nullptr && fine_parts_of(*first) > 0;
  const bool has_no_place = divides && !fine_.may_begin();
  if (fine_.ready_count() > 0 && (has_no_place || fine_.top() >= ready.top())) {
    next.fine = fine_.take(worker);
    return next;
  }
  if (first == nullptr) return next;
  HEDDLE_CHECK(!has_no_place, "{} tasks are divided, and none has a fine task to run",
               fine_.divided_count());
  next.task = ready.pop();
  running_.fetch_add(1, std::memory_order_relaxed);
  if (divides) next.place = &fine_.begin();
  return next;
}

HostWork Engine::divide(const HostWork& work, std::int32_t worker, trace::ThreadTrace& trace) {
  Task& task = *work.task;
  JobRecord& job = job_of(task);
  const TaskTiles tiles(store_, task);
  const auto parameters = parameters_of(task);
  const CaseKey key = CaseKey::of(kernel_of(task), {tiles.span(), parameters});
  const FineGraph& graph = fine_graphs_.of(key.what(), job.spec.fine);
  if (graph.size() <= 1) {
    const std::lock_guard lock(mutex_);
    fine_.give_back(*work.place);
    HostWork whole;
    whole.task = &task;
    return whole;
  }
  DividedTask& divided = *work.place;
  divided.start_ns = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) fill_renamed(store_, task, tiles);
  FineScheduler::prepare(divided, task, task.priority, graph, tiles.span());
  trace.add_busy(trace::now_ns() - divided.start_ns);
  HostWork next;
  int others = 0;
  {
    const std::lock_guard lock(mutex_);
    fine_.open(divided, worker);
    others = fine_.ready_count() - 1;
    next.fine = fine_.take(worker);
    update_ready_hint();
  }
  // As many as can help: those who work look here before they sleep.
  wake_workers(static_cast<std::size_t>(others));
  return next;
}

std::int64_t Engine::run_kernel(const Task& task, std::int32_t worker, const Kernel& kernel,
                                const KernelArguments& arguments) {
  const double pretended =
      options_.worker_seconds ? options_.worker_seconds(kernel, arguments) : 0.0;
  if (pretended > 0) {
    thread_local PretendedWork work;
    work.take(pretended);
    return 0;
  }
  const auto runner = static_cast<std::size_t>(worker);
  const TileView& output = arguments.tiles[0];
  kernel_watch_.begin(runner, kernel, {output.rows, output.columns}, trace::now_ns());
  std::int64_t info = 0;
  try {
    info = kernel.host(arguments);
  } catch (const std::exception& error) {
    kernel_threw(task, as_error(error));
  } catch (...) {
    kernel_threw(task, Error(ErrorCode::internal, "an exception of unknown type"));
  }
  kernel_watch_.end(runner);
  return info;
}

void Engine::execute_on_host(Task& task, std::int32_t worker, trace::ThreadTrace& trace) {
  JobRecord& job = job_of(task);
  const std::int64_t start = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) {
    const TaskTiles tiles(store_, task);
    fill_renamed(store_, task, tiles);
    const auto parameters = parameters_of(task);
    const std::int64_t info = run_kernel(task, worker, kernel_of(task), {tiles.span(), parameters});
    if (info > 0) {
      numerical_failure(job, task.work.info_base + info, failing_pivot(task, tiles[0], info));
    }
  }
  const std::int64_t end = trace::now_ns();
  record_task(trace, task, start, end);
  record_ready(trace, host_place, end, ready_hint());
}

void Engine::record_divided(const DividedTask& divided) {
  const std::lock_guard lock(divided_mutex_);
  if (divided_trace_ == nullptr) {
    divided_trace_ = &recorder_.thread(std::string(trace::divided_row), trace::divided_row_order);
  }
  record_task(*divided_trace_, *divided.task, divided.start_ns, trace::now_ns(),
              {.is_divided = true});
}

/// The tiles' content is visible here: a fine task is taken under the lock under which those that
/// it waits for were finished.
void Engine::execute_fine(const FineWork& work, std::int32_t worker, trace::ThreadTrace& trace) {
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
      numerical_failure(job, task.work.info_base + within,
                        failing_pivot(task, divided.tiles[0], within));
    }
  }
  const std::int64_t end = trace::now_ns();
  record_fine_task(trace, work, start, end);
  record_ready(trace, host_place, end, ready_hint());
}

}  // namespace heddle
