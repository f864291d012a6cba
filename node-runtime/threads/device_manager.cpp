#include "node-runtime/threads/device_manager.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>
#include <vector>

#include "base/process_limits.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {
namespace {

/// Relaxed: a kernel that is launched in spite of it runs for nothing, no more.
bool is_cancelled(const protocol::Task& task) {
  return job_of(task).cancelled.load(std::memory_order_relaxed);
}

/// "gsmm on tile 17 of matrix 2".
std::string describe(const protocol::Task& task) {
  const protocol::TileId tile = task.operands[0].tile;
  return fmt::format("{} on tile {} of matrix {}", kernel_of(task).name, tile.index,
                     tile.matrix.value());
}

}  // namespace

DeviceManager::DeviceManager(Engine& engine, std::int32_t device, trace::ThreadTrace& trace)
    : engine_(engine),
      options_(engine.options()),
      store_(engine.store()),
      place_(device + 1),
      device_(*options_.devices[static_cast<std::size_t>(device)]),
      bell_(*engine.bells.devices[static_cast<std::size_t>(device)]),
      notifier_(bell_),
      cache_(store_.cache(place_)),
      trace_(trace),
      streams_(device_, options_.device_streams, &notifier_) {}

DeviceManager::~DeviceManager() {
  if (engine_.failed()) streams_.abandon("the node has failed");
}

void DeviceManager::run() {
  for (;;) {
    const Doorbell::Ticket ticket = bell_.ticket();
    if (turn()) continue;
    if (engine_.stopping() && in_flight() == 0) return;
    const std::int64_t from = trace::now_ns();
    wait(ticket);
    trace_.wait(in_flight() > 0 ? trace::WaitCause::other : trace::WaitCause::no_task, from,
                trace::now_ns());
  }
}

bool DeviceManager::turn() {
  const bool collected = collect();
  const bool launched = launch();
  const bool requested = request_ahead();
  HEDDLE_EXPENSIVE(is_valid());
  return collected || launched || requested;
}

bool DeviceManager::is_valid() const {
  return streams_.is_valid() && tasks_.is_valid() &&
         std::cmp_equal(reported_waiting_, tasks_.count());
}

/// Until there may be something to do. Without notices the events are polled; where threads share
/// cores, with a pause that bounds how late a finished kernel is seen.
void DeviceManager::wait(Doorbell::Ticket ticket) {
  watch_oldest();
  const bool polls = in_flight() > 0 && !device_.info().notifies;
  if (!polls) {
    // A task that is held back may be requested when the work in progress has paused for long.
    bell_.wait(ticket, tasks_.is_held_back() ? WaitingTasks::front_pause_ns / 1000 : 0);
  } else if (options_.oversubscribed || options_.wait == WaitPolicy::park) {
    bell_.wait(ticket, 20);
  } else {
    for (int i = 0; i < 20 && !bell_.rung_since(ticket); ++i) relax_cpu();
  }
}

/// Tells the watchdog which of the kernels in flight was launched first.
void DeviceManager::watch_oldest() {
  const auto runner = static_cast<std::size_t>(options_.cpu_workers + place_.value() - 1);
  KernelWatch& watch = engine_.kernel_watch();
  const LaunchedTask* const oldest = streams_.oldest();
  if (oldest == nullptr) return watch.end(runner);
  const TileShape output = store_.shape(oldest->task->operands[0].tile);
  watch.begin(runner, kernel_of(*oldest->task), {output.rows, output.columns}, oldest->launched_ns);
}

// ---- finished kernels --------------------------------------------------------------------------

/// FIREs the tasks whose kernels have finished.
bool DeviceManager::collect() {
  std::vector<protocol::Task*> finished;
  for (StreamQueue& queue : streams_.all()) {
    while (!queue.is_empty()) {
      LaunchedTask& oldest = queue.oldest();
      const EventState state = oldest.event->query();
      if (state == EventState::pending) break;
      if (state == EventState::failed) {
        throw Error(ErrorCode::internal, fmt::format("{}; its task: {}", oldest.event->failure(),
                                                     describe(*oldest.task)));
      }
      finished.push_back(oldest.task);
      end(queue, oldest);
    }
  }
  if (finished.empty()) return false;
  tasks_.look_again();  // the tiles that they held may be what others wait for
  engine_.finish(finished);
  return true;
}

/// Reports the result of a stream's oldest kernel, and releases its tiles.
void DeviceManager::end(StreamQueue& queue, LaunchedTask& done) {
  const protocol::Task& task = *done.task;
  if (done.info == Stream::kernel_threw) {
    report_exception(task, Error(ErrorCode::internal, queue.stream().take_kernel_error()));
  }
  if (done.info > 0) report_failure(queue.stream(), task, done.info);
  if (done.is_acquired) cache_.release(TaskUses(store_, task).span());
  const std::int64_t end_ns = done.event->completed_ns();
  record_task(trace_, task, queue.started_ns(), end_ns, {.stream = streams_.number_of(queue)});
  queue.pop(end_ns);
}

void DeviceManager::report_exception(const protocol::Task& task, const Error& error) {
  engine_.kernel_threw(task, error);
}

void DeviceManager::report_failure(Stream& stream, const protocol::Task& task, std::int64_t info) {
  const TaskTiles tiles(store_, task);
  double pivot = 0;
  if (const double* const element = failing_element(task, tiles[0], info)) {
    stream.copy({&pivot, nullptr}, {element, &device_}, sizeof(double));
    stream.synchronize();
  }
  engine_.numerical_failure(job_of(task), task.work.info_base + info, pivot);
}

// ---- next kernels ------------------------------------------------------------------------------

/// Gives ready tasks to the streams: the next by priority to the one with the fewest, and a task
/// that is more urgent than all of them to the stream that overtakes them.
bool DeviceManager::launch() {
  take_arrived();
  bool launched = false;
  while (StreamQueue* const queue = streams_.choose()) {
    const Next next = next_task(streams_.floor_of(*queue));
    if (next.task == nullptr) return launched;
    launched = true;
    if (next.is_acquired && !device_.runs(kernel_of(*next.task))) {
      engine_.stage(*next.task);
    } else {
      start(streams_.queue_for(*next.task, *queue), next);
    }
  }
  return launched;
}

/// The next task above a priority whose tiles are in the device's memory.
DeviceManager::Next DeviceManager::next_task(std::int32_t above) {
  Next next{nullptr, true};  // an arrived task's tiles are acquired
  next.task = tasks_.next(
      above,
      [&](protocol::Task& task) {
        next.is_acquired = !is_cancelled(task);
        return !next.is_acquired || cache_.try_acquire(TaskUses(store_, task).span());
      },
      [&](std::int32_t priority) { return engine_.take_above(place_, priority, ready_left_); });
  report_waiting();
  return next;
}

/// Tasks whose tiles have arrived.
void DeviceManager::take_arrived() {
  for (void* cookie : cache_.take_ready(DeviceCache::Requester::manager)) {
    tasks_.arrive(*static_cast<protocol::Task*>(cookie));
  }
  report_waiting();
}

void DeviceManager::report_waiting() {
  const auto count = static_cast<std::int32_t>(tasks_.count());
  if (count == reported_waiting_) return;
  engine_.counters().wait_for_tiles(count - std::exchange(reported_waiting_, count));
}

/// Requests the tiles of the next tasks while others compute.
bool DeviceManager::request_ahead() {
  tasks_.follow_front(streams_.highest_priority(), trace::now_ns());
  const auto span_of = [](const protocol::Task& task) { return job_of(task).spec.priority_span; };
  bool requested = false;
  while (protocol::Task* const task = tasks_.ask(span_of)) {
    cache_.request(TaskUses(store_, *task).span(), DeviceCache::Requester::manager, task);
    requested = true;
  }
  return requested;
}

/// Launches the task's kernel as the next one of the stream; that of a cancelled job is skipped.
void DeviceManager::start(StreamQueue& queue, const Next& next) {
  HEDDLE_DEBUG(next.task->place == place_, "a task of place {}", next.task->place.value());
  LaunchedTask& launched = queue.push(*next.task, next.is_acquired, trace::now_ns());
  if (next.is_acquired && !is_cancelled(*next.task)) {
    launch_kernel(queue.stream(), *next.task, &launched.info);
  }
  queue.stream().record(*launched.event);
  engine_.record_ready(trace_, place_, launched.launched_ns, ready_left_ + tasks_.count());
}

void DeviceManager::launch_kernel(Stream& stream, const protocol::Task& task, std::int64_t* info) {
  const TaskTiles tiles(store_, task);
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    if (!operand.copy_from.valid()) continue;
    stream.copy({tiles[i].data, &device_}, {store_.address(operand.copy_from), &device_},
                store_.shape(operand.tile).bytes());
  }
  try {
    stream.launch(kernel_of(task), tiles.span(), parameters_of(task), info);
  } catch (const Error&) {
    throw;  // the device's
  } catch (const std::exception& error) {
    report_exception(task, as_error(error));
  }
}

void device_manager_loop(Engine& engine, std::int32_t device, trace::ThreadTrace& trace) {
  DeviceManager(engine, device, trace).run();
}

}  // namespace heddle
