#include <algorithm>
#include <array>
#include <bit>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/process_limits.hpp"
#include "node-runtime/residency/waiting_tasks.hpp"
#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {
namespace {

/// Kernels that one stream holds at a time: one runs, the others are behind it, so that the device
/// does not wait for the manager. More would only take the freedom to choose by priority.
constexpr std::size_t in_flight_each = 3;

/// A task on its way through a stream.
struct InFlight {
  protocol::Task* task = nullptr;
  bool is_acquired = false;  ///< its tiles are
  std::unique_ptr<Event> event;
  std::int64_t info = 0;
  std::int64_t launched_ns = 0;
};

/// One compute stream and what it holds, oldest first: a stream works in order.
struct StreamQueue {
  std::unique_ptr<Stream> stream;
  std::array<InFlight, in_flight_each> flights;
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t free_since_ns = 0;  ///< end of the last finished kernel

  [[nodiscard]] InFlight& oldest() { return flights.at(first); }
  [[nodiscard]] InFlight& next() { return flights.at((first + count) % flights.size()); }
  [[nodiscard]] bool is_full() const { return count == flights.size(); }

  /// The highest priority in it.
  [[nodiscard]] std::int32_t priority() const {
    std::int32_t highest = WaitingTasks::nothing;
    for (std::size_t i = 0; i < count; ++i) {
      highest = std::max(highest, flights.at((first + i) % flights.size()).task->priority);
    }
    return highest;
  }
};

/// The management thread of one device: several compute streams for what comes next by priority,
/// and one, which the device prefers, for what is more urgent than all that these hold.
class DeviceManager {
 public:
  DeviceManager(Engine& engine, std::int32_t index, trace::ThreadTrace& trace)
      : engine_(engine),
        device_(*engine.options().devices[static_cast<std::size_t>(index)]),
        place_(index + 1),
        bell_(*engine.bells.devices[static_cast<std::size_t>(index)]),
        notifier_(bell_),
        cache_(engine.store().cache(place_)),
        trace_(trace),
        queues_(static_cast<std::size_t>(engine.options().device_streams) + 1) {
    for (StreamQueue& queue : queues_) {
      queue.stream = device_.create_stream(
          &queue == &urgent() ? StreamPriority::high : StreamPriority::normal, &notifier_);
      queue.stream->prepare_kernels();
      for (InFlight& flight : queue.flights) flight.event = device_.create_event();
    }
  }

  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;
  ~DeviceManager() {
    if (engine_.failed()) {
      for (StreamQueue& queue : queues_) queue.stream->abandon("the node has failed");
    }
  }

  void run() {
    for (;;) {
      const Doorbell::Ticket ticket = bell_.ticket();
      const bool collected = collect();
      const bool launched = launch();
      const bool asked = ask_ahead();
      if (collected || launched || asked) continue;
      if (engine_.stopping() && in_flight_ == 0) return;
      const std::int64_t from = trace::now_ns();
      wait(ticket);
      trace_.wait(in_flight_ > 0 ? trace::WaitCause::other : trace::WaitCause::no_task, from,
                  trace::now_ns());
    }
  }

 private:
  [[nodiscard]] StreamQueue& urgent() { return queues_.back(); }
  /// From 1 on, as traces name it; all that no byte can tell apart have the last number.
  [[nodiscard]] std::uint8_t number_of(const StreamQueue& queue) const {
    return static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(&queue - queues_.data() + 1, 255));
  }

  /// Until there may be something to do. Without notices the events are polled; where threads share
  /// cores, with a pause that bounds how late a finished kernel is seen.
  void wait(Doorbell::Ticket ticket) {
    watch_oldest();
    const bool polls = in_flight_ > 0 && !device_.info().notifies;
    if (!polls) {
      // Tasks that were held back for what is under way may go when that has paused for long.
      bell_.wait(ticket, tasks_.is_held_back() ? WaitingTasks::front_pause_ns / 1000 : 0);
    } else if (engine_.options().oversubscribed || engine_.options().wait == WaitPolicy::park) {
      bell_.wait(ticket, 20);
    } else {
      for (int i = 0; i < 20 && !bell_.rung_since(ticket); ++i) relax_cpu();
    }
  }

  /// Tells the watchdog of the kernel that was launched first of those that have not ended.
  void watch_oldest() {
    const InFlight* oldest = nullptr;
    for (StreamQueue& queue : queues_) {
      if (queue.count == 0) continue;
      const InFlight& flight = queue.oldest();
      if (oldest == nullptr || flight.launched_ns < oldest->launched_ns) oldest = &flight;
    }
    const std::size_t runner =
        static_cast<std::size_t>(engine_.options().cpu_workers + place_.value() - 1);
    if (oldest == nullptr) return engine_.kernel_watch().end(runner);
    const TileShape output = engine_.store().shape(oldest->task->operands[0].tile);
    engine_.kernel_watch().begin(runner, kernel_of(*oldest->task), {output.rows, output.columns},
                                 oldest->launched_ns);
  }

  /// FIREs what has finished.
  bool collect() {
    std::vector<protocol::Task*> finished;
    for (StreamQueue& queue : queues_) {
      for (; queue.count > 0; --queue.count, --in_flight_) {
        InFlight& flight = queue.oldest();
        const EventState state = flight.event->query();
        if (state == EventState::pending) break;
        if (state == EventState::failed) {
          throw Error(ErrorCode::internal, fmt::format("{}; its task: {}", flight.event->failure(),
                                                       describe(*flight.task)));
        }
        if (flight.info == Stream::kernel_threw) {
          engine_.kernel_threw(*flight.task,
                               Error(ErrorCode::internal, queue.stream->take_kernel_error()));
        }
        if (flight.info > 0) report_failure(*queue.stream, *flight.task, flight.info);
        if (flight.is_acquired) cache_.release(TaskUses(engine_.store(), *flight.task).span());
        const std::int64_t end = flight.event->completed_ns();
        record_task(trace_, *flight.task, std::max(flight.launched_ns, queue.free_since_ns), end,
                    {.stream = number_of(queue)});
        queue.free_since_ns = end;
        finished.push_back(flight.task);
        queue.first = (queue.first + 1) % queue.flights.size();
      }
    }
    if (finished.empty()) return false;
    tasks_.look_again();  // what they held may be what others wait for
    engine_.finish(finished);
    return true;
  }

  /// Gives ready tasks to the streams: the next by priority to the one with the least to do, and
  /// what is more urgent than everything there to the stream that overtakes them.
  bool launch() {
    take_arrived();
    bool launched = false;
    while (StreamQueue* queue = choose()) {
      const auto [task, is_acquired] =
          next_task(queue == &urgent() ? held_priority() : WaitingTasks::nothing);
      if (task == nullptr) return launched;
      launched = true;
      if (is_acquired && !device_.runs(kernel_of(*task))) {
        engine_.stage(*task);
        continue;
      }
      // What waits behind a full stream's kernels need not be urgent; what overtakes them must be.
      if (queue != &urgent() && !urgent().is_full() && in_flight_ > 0 &&
          task->priority > held_priority()) {
        queue = &urgent();
      }
      queue->next().is_acquired = is_acquired;
      start(*queue, *task);
    }
    return launched;
  }

  [[nodiscard]] static bool is_cancelled(const protocol::Task& task) {
    return job_of(task).cancelled.load(std::memory_order_relaxed);
  }

  /// A task to go on with, and whether its tiles are acquired: not where its job was cancelled
  /// before. Once they are, they stay so to its end, whatever becomes of the job. Null: none.
  struct Next {
    protocol::Task* task = nullptr;
    bool is_acquired = false;
  };

  /// The next task above a priority whose tiles are in the device's memory.
  Next next_task(std::int32_t above) {
    Next next{nullptr, true};  // what has arrived is acquired
    next.task = tasks_.next(
        above,
        [&](protocol::Task& task) {
          next.is_acquired = !is_cancelled(task);
          return !next.is_acquired || cache_.try_acquire(TaskUses(engine_.store(), task).span());
        },
        [&](std::int32_t priority) { return engine_.take_above(place_, priority, ready_left_); });
    say_how_many_wait();
    return next;
  }

  /// Tasks whose tiles have come.
  void take_arrived() {
    for (void* cookie : cache_.take_ready(DeviceCache::Requester::manager)) {
      tasks_.arrive(*static_cast<protocol::Task*>(cookie));
    }
    say_how_many_wait();
  }

  void say_how_many_wait() {
    const auto count = static_cast<std::int32_t>(tasks_.count());
    if (count != said_waiting_)
      engine_.counters().wait_for_tiles(count - std::exchange(said_waiting_, count));
  }

  /// Asks for the tiles of those that are to come while others compute.
  bool ask_ahead() {
    tasks_.follow_front(std::max(held_priority(), urgent().priority()), trace::now_ns());
    const auto span_of = [](const protocol::Task& task) { return job_of(task).spec.priority_span; };
    bool asked = false;
    while (protocol::Task* const task = tasks_.ask(span_of)) {
      cache_.request(TaskUses(engine_.store(), *task).span(), DeviceCache::Requester::manager,
                     task);
      asked = true;
    }
    return asked;
  }

  /// The stream with the least to do; the urgent one when the others are full; null when all are.
  [[nodiscard]] StreamQueue* choose() {
    const auto least = std::min_element(
        queues_.begin(), queues_.end() - 1,
        [](const StreamQueue& a, const StreamQueue& b) { return a.count < b.count; });
    if (!least->is_full()) return &*least;
    return urgent().is_full() ? nullptr : &urgent();
  }

  /// The highest priority that the other streams hold.
  [[nodiscard]] std::int32_t held_priority() const {
    std::int32_t highest = WaitingTasks::nothing;
    for (auto queue = queues_.begin(); queue + 1 != queues_.end(); ++queue) {
      highest = std::max(highest, queue->priority());
    }
    return highest;
  }

  /// As the next one of the stream; what it says of the task is known.
  void start(StreamQueue& queue, protocol::Task& task) {
    InFlight& flight = queue.next();
    flight.task = &task;
    flight.info = 0;
    flight.launched_ns = trace::now_ns();
    if (flight.is_acquired && !is_cancelled(task)) {
      launch_kernel(*queue.stream, task, &flight.info);
    }
    queue.stream->record(*flight.event);
    ++queue.count;
    ++in_flight_;
    engine_.record_ready(trace_, place_, flight.launched_ns, ready_left_ + tasks_.count());
  }

  void launch_kernel(Stream& stream, const protocol::Task& task, std::int64_t* info) {
    const TaskTiles tiles(engine_.store(), task);
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const protocol::Operand& operand = task.operands[i];
      if (!operand.copy_from.valid()) continue;
      stream.copy({tiles[i].data, &device_}, {engine_.store().address(operand.copy_from), &device_},
                  engine_.store().shape(operand.tile).bytes());
    }
    try {
      stream.launch(kernel_of(task), tiles.span(), parameters_of(task), info);
    } catch (const Error&) {
      throw;  // the device's
    } catch (const std::exception& error) {
      engine_.kernel_threw(task, as_error(error));
    }
  }

  /// "gsmm on tile 17 of matrix 2".
  [[nodiscard]] static std::string describe(const protocol::Task& task) {
    const protocol::TileId tile = task.operands[0].tile;
    return fmt::format("{} on tile {} of matrix {}",
                       static_cast<const Kernel*>(task.work.kernel)->name, tile.index,
                       tile.matrix.value());
  }

  void report_failure(Stream& stream, const protocol::Task& task, std::int64_t info) {
    const TaskTiles tiles(engine_.store(), task);
    double pivot = 0;
    if (const double* const element = failing_element(task, tiles[0], info)) {
      stream.copy({&pivot, nullptr}, {element, &device_}, sizeof(double));
      stream.synchronize();
    }
    engine_.numerical_failure(job_of(task), task.work.info_base + info, pivot);
  }

  Engine& engine_;
  Device& device_;
  PlaceId place_;
  Doorbell& bell_;
  BellNotifier notifier_;
  DeviceCache& cache_;
  trace::ThreadTrace& trace_;
  std::vector<StreamQueue> queues_;  ///< the urgent one last
  std::size_t in_flight_ = 0;
  WaitingTasks tasks_;
  std::size_t ready_left_ = 0;     ///< that nobody has taken, when this last looked
  std::int32_t said_waiting_ = 0;  ///< to the engine
};

}  // namespace

void device_manager_loop(Engine& engine, std::int32_t device, trace::ThreadTrace& trace) {
  DeviceManager(engine, device, trace).run();
}

}  // namespace heddle
