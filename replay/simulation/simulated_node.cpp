#include "replay/simulation/simulated_node.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/residency/least_memory.hpp"
#include "node-runtime/scheduling/pool_size.hpp"
#include "replay/simulation/mixed.hpp"

namespace heddle::replay {

using protocol::CopyAction;

namespace {

/// Items per turn of the generation thread; the first turns are shorter, so that the first ready
/// tasks do not wait.
constexpr std::int32_t turn_max = 16;

/// Plans as the runtime does before a job.
class PlanSink final : public WalkSink {
 public:
  PlanSink(protocol::PoolPlan& plan, MemoryNeeds* needs) : plan_(plan), needs_(needs) {}
  void append(TaskKindId /*kind*/, std::int32_t /*priority*/,
              std::span<const protocol::Access> accesses) override {
    plan_.append(accesses);
    if (needs_ != nullptr) needs_->meet(accesses);
  }
  void announce(const protocol::Access& access, NodeId reader, std::int32_t /*priority*/) override {
    plan_.append_alien_reader(access, reader);
  }
  void release(const protocol::Access& access) override { plan_.release(access); }
  [[nodiscard]] bool has_room() const override { return true; }

 private:
  protocol::PoolPlan& plan_;
  MemoryNeeds* needs_;
};

}  // namespace

SimulatedNode::SimulatedNode(SimulatedWorld& world, NodeId id)
    : network_out(world.rates.add_resource(world.machine.network.bytes_per_s)),
      network_in(world.rates.add_resource(world.machine.network.bytes_per_s)),
      world_(world),
      id_(id),
      protocol_({id, world.machine.devices + 1}),
      workers_(static_cast<std::size_t>(world.machine.cpu_workers)),
      trace_(id, world.machine, world.options.traces) {
  for (std::int32_t p = 0; p <= world.machine.devices; ++p) {
    ready_.push_back(std::make_unique<ReadyQueue>());
  }
  lanes_.resize(2 * static_cast<std::size_t>(world.machine.devices));
  for (std::int32_t w = world.machine.cpu_workers; w-- > 0;) idle_.push_back(w);
  for (std::int32_t d = 0; d < world.machine.devices; ++d) {
    Device device;
    device.streams.resize(static_cast<std::size_t>(world.machine.device_streams));
    device.rate = world.rates.add_resource(1);
    devices_.push_back(std::move(device));
  }
  add_matrices();
}

void SimulatedNode::add_matrices() {
  const std::int32_t places = world_.machine.devices + 1;
  std::int32_t number = 0;
  for (const SimulatedMatrixSpec& spec : world_.job.matrices()) {
    protocol::MatrixOptions options;
    options.tile_count = spec.tile_rows * spec.tile_columns;
    options.temporary = spec.temporary;
    options.spare_count = spec.temporary ? 0 : spec.spare_count;
    options.classes = spec.classes;
    options.class_count = spec.class_count;
    for (std::int32_t p = 0; p < places && !spec.temporary; ++p) {
      options.pools.push_back(number * places + p);
    }
    protocol_.add_matrix(std::move(options));
    trace_.describe(number++, spec);
  }
}

// ---- generation ------------------------------------------------------------------------------

SimulatedNode::Needs SimulatedNode::plan() {
  Needs needs;
  protocol::PoolPlan plan(id_, world_.machine.devices + 1);
  std::int32_t number = 0;
  for (const SimulatedMatrixSpec& spec : world_.job.matrices()) {
    const protocol::MatrixId matrix{number++};
    if (spec.temporary) plan.set_temporary(matrix);
    needs.has_temporaries |= spec.temporary;
  }
  if (world_.machine.device_memory_bytes > 0 && world_.machine.devices > 0) {
    needs.memory = std::make_unique<MemoryNeeds>(world_.job, id_, world_.machine.devices + 1);
  }
  PlanSink sink(plan, needs.memory.get());
  const auto walk = world_.job.walk(id_, sink);
  while (walk->advance()) {
  }
  needs.blocks = plan.minimum();
  for (PlaceId place{0}; place.value() <= world_.machine.devices; ++place) {
    std::uint64_t& bytes = needs.block_bytes.emplace_back(0);
    // A matrix's first tile is its largest.
    for (const protocol::MatrixId matrix : plan.takers(place)) {
      bytes = std::max(bytes, world_.job.tile_bytes({matrix, 0}));
    }
  }
  if (needs.memory) compare_with_memory(needs);
  return needs;
}

/// Blocks of a job's pool beyond its minimum; as Engine::extra_blocks.
std::int32_t SimulatedNode::extra_blocks(PlaceId place, const Needs& needs) const {
  const std::int32_t minimum = needs.blocks[static_cast<std::size_t>(place.value())];
  const SimulatedMachine& machine = world_.machine;
  const bool hands_on = needs.has_temporaries && machine.devices == 0;
  const std::uint64_t bytes = needs.block_bytes[static_cast<std::size_t>(place.value())];
  const std::int32_t useful = useful_blocks(place, minimum, machine.cpu_workers, hands_on, bytes);
  if (!needs.memory || place == host_place) return useful;
  const std::uint64_t memory = machine.device_memory_bytes;
  const std::uint64_t left = memory - std::min(memory, needs.memory->bytes(place));
  const std::uint64_t block = std::max<std::uint64_t>(1, bytes);
  return affordable_blocks(useful, static_cast<std::int64_t>(left / block) - minimum);
}

/// Checks whether all blocks fit; if not, tasks must still be able to advance, as in a run.
void SimulatedNode::compare_with_memory(Needs& needs) const {
  const std::uint64_t memory = world_.machine.device_memory_bytes;
  for (PlaceId place{1}; place.value() <= world_.machine.devices; ++place) {
    const auto p = static_cast<std::size_t>(place.value());
    const auto blocks = static_cast<std::uint64_t>(needs.blocks[p]);
    needs.fit &= needs.memory->bytes(place) + blocks * needs.block_bytes[p] <= memory;
  }
  const auto devices = static_cast<std::size_t>(world_.machine.devices);
  const std::uint64_t least = least_device_bytes(needs.memory->largest_tile_bytes(), devices);
  if (needs.fit || least <= memory) return;
  throw Error(ErrorCode::usage,
              fmt::format("node {}: each device has {} (machine.device_memory), and the tiles of "
                          "one task and of copies under way may take {}: give more, or take "
                          "smaller tiles",
                          id_.value(), format_bytes(memory), format_bytes(least)));
}

void SimulatedNode::begin() {
  protocol::JobOptions options;
  options.window = world_.options.window;
  const Needs needs = plan();
  for (std::size_t p = 0; p < needs.blocks.size(); ++p) {
    const PlaceId place{static_cast<std::int32_t>(p)};
    const std::int32_t capacity = needs.blocks[p] + extra_blocks(place, needs);
    options.pools.push_back({job_pool_base + place.value(), capacity, needs.blocks[p]});
  }
  job_ = &protocol_.begin_job(options);
  if (world_.machine.devices > 0) begin_memory(needs);
  walk_ = world_.job.walk(id_, *this);
  is_generating_ = true;
  post(Event::Kind::generate, 0, 0, id_);
}

void SimulatedNode::generate() {
  is_generating_ = false;
  if (walk_ended_ || job_->window_is_full()) return;
  trace_.generation_waited(trace::WaitCause::window_full, generation_free_ns_, world_.now_ns);
  budget_ = turn_;
  turn_ = std::min(2 * turn_, turn_max);
  appended_ = 0;
  walk_ended_ = !walk_->advance();
  trace_.generated(job_->id.value(), job_->next_order, world_.now_ns);
  if (walk_ended_) protocol_.end_generation(*job_, actions_);
  const double seconds = world_.machine.append_s * appended_;
  totals.generation_s += seconds;
  generation_free_ns_ = world_.now_ns + ns_of(seconds);
  if (!walk_ended_) {
    is_generating_ = true;
    post(Event::Kind::generate, generation_free_ns_, 0, id_);
  }
  collect();
}

void SimulatedNode::end_waits(std::int64_t time_ns) {
  trace_.generation_waited(trace::WaitCause::no_task, generation_free_ns_, time_ns);
  trace_.progress_waited(progress_free_ns_, time_ns);
}

void SimulatedNode::append(TaskKindId kind, std::int32_t priority,
                           std::span<const protocol::Access> accesses) {
  protocol::Work work;
  work.parameters[0] = static_cast<std::uint64_t>(kind.value());
  protocol_.append(*job_, work, priority, accesses, actions_);
  --budget_;
  ++appended_;
}

void SimulatedNode::announce(const protocol::Access& access, NodeId reader, std::int32_t priority) {
  protocol_.append_alien_reader(*job_, access, reader, priority, actions_);
  --budget_;
  ++appended_;
}

void SimulatedNode::release(const protocol::Access& access) {
  protocol_.release(*job_, access, actions_);
}

bool SimulatedNode::has_room() const {
  return budget_ > 0 && !job_->window_is_full();
}

// ---- what the protocol wants -----------------------------------------------------------------

void SimulatedNode::post(Event::Kind kind, std::int64_t time_ns, std::int32_t number, NodeId node) {
  world_.events.push(time_ns, {kind, node, number});
}

/// Before ready tasks are taken: one may write the same block again.
void SimulatedNode::discard_freed() {
  if (memory_) {
    for (const protocol::BlockRef block : actions_.freed) {
      if (const PlaceId place = place_of(block); place != host_place) memory_->freed(place, block);
    }
  }
  actions_.freed.clear();
}

void SimulatedNode::push_ready() {
  for (protocol::Task* task : actions_.ready) {
    if (ReadyQueue* const own = own_queue(*task)) {
      own->push(*task);
      continue;
    }
    ready_[static_cast<std::size_t>(task->place.value())]->push(*task);
    if (!lending_) continue;
    if (lending_->choice().became_ready(*task, ready_)) {
      ask_for_tiles(*task);
    } else {
      device_has_more_ |= task->place != host_place;
    }
  }
  actions_.ready.clear();
}

/// Handles all consequences of the last event.
void SimulatedNode::collect() {
  discard_freed();
  push_ready();
  for (const CopyAction& copy : actions_.copies) post_copy(copy);
  for (const protocol::AskAction& wanted : actions_.asks) ask(wanted);
  for (const protocol::GrantAction& wanted : actions_.grants) grant(wanted);
  for (const protocol::OfferAction& offered : actions_.offers) offer(offered);
  for (const protocol::SendAction& wanted : actions_.sends) send(wanted);
  const bool drained = !actions_.drained.empty();
  actions_.clear();
  // Workers that look for work find out whether they would be sooner than a device.
  const bool device_has_more = std::exchange(device_has_more_, false);
  const bool lends = lending_ && !idle_.empty() && (device_has_more || ready_[0]->count() > 0);
  const auto start_all = [this] {
    start_workers();
    for (std::int32_t d = 0; d < world_.machine.devices; ++d) launch(d);
  };
  start_all();
  if (lends && lend()) start_all();
  while (serve_memory()) start_all();
  if (drained) {
    is_drained_ = true;
    walk_ = nullptr;
    protocol_.forget(*std::exchange(job_, nullptr));
    return;
  }
  if (!is_generating_ && !walk_ended_ && job_->window_reopens()) {
    is_generating_ = true;
    const auto order = static_cast<std::int64_t>(job_->next_order);
    const double seconds = world_.job.refill_seconds(id_, order).value_or(world_.machine.refill_s);
    post(Event::Kind::generate, world_.now_ns + ns_of(seconds), 0, id_);
  }
}

// ---- workers ---------------------------------------------------------------------------------

/// Queue of a task that is bound to a worker; null: any worker or a device may take it.
ReadyQueue* SimulatedNode::own_queue(const protocol::Task& task) {
  if (lending_ || task.place != host_place || world_.kind_of(task).fine != nullptr) return nullptr;
  const auto worker = world_.job.worker_of(id_, static_cast<std::int64_t>(task.order));
  if (!worker || *worker >= world_.machine.cpu_workers) return nullptr;
  own_ready_.resize(workers_.size());
  std::unique_ptr<ReadyQueue>& queue = own_ready_[static_cast<std::size_t>(*worker)];
  if (queue == nullptr) queue = std::make_unique<ReadyQueue>();
  return queue.get();
}

/// Null: no tasks are bound to that worker.
ReadyQueue* SimulatedNode::own_queue_of(std::int32_t worker) const {
  if (own_ready_.empty()) return nullptr;
  ReadyQueue* const queue = own_ready_[static_cast<std::size_t>(worker)].get();
  return queue != nullptr && queue->count() > 0 ? queue : nullptr;
}

/// On the host.
std::size_t SimulatedNode::ready_count() const {
  std::size_t count = ready_[0]->count();
  for (const auto& queue : own_ready_) count += queue == nullptr ? 0 : queue->count();
  return count + static_cast<std::size_t>(fine_ ? fine_->ready_count() : 0);
}

bool SimulatedNode::has_work() const {
  return ready_[0]->count() > 0 || (fine_ && fine_->ready_count() > 0);
}

/// A worker's next work, as Engine::take_host_work(). False if there is none.
bool SimulatedNode::take_work(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  ReadyQueue& queue = *ready_[0];
  if (ReadyQueue* const own = own_queue_of(number); own != nullptr && own->top() >= queue.top()) {
    worker.task = own->pop();
    return true;
  }
  for (;;) {
    const protocol::Task* const first = queue.front();
    const bool divides = first != nullptr && world_.kind_of(*first).fine != nullptr;
    const bool has_no_place = divides && fine_ && !fine_->may_begin();
    const bool has_fine = fine_ && fine_->ready_count() > 0;
    if (has_fine && (has_no_place || fine_->top() >= queue.top())) {
      worker.fine = fine_->take(number);
      return true;
    }
    if (first == nullptr) return false;
    protocol::Task* const task = queue.pop();
    if (!divides) {
      worker.task = task;
      return true;
    }
    divide(*task, number);
  }
}

void SimulatedNode::divide(protocol::Task& task, std::int32_t number) {
  if (!fine_) fine_.emplace(world_.machine.cpu_workers, std::vector<std::uint8_t>());
  DividedTask& divided = fine_->begin();
  FineScheduler::prepare(divided, task, task.priority, world_.kind_of(task).fine->graph, {});
  divided.start_ns = world_.now_ns;
  fine_->open(divided, number);
}

/// Removes one of the idle workers.
std::int32_t SimulatedNode::draw_idle() {
  if (!world_.machine.worker_paces.empty()) {
    const std::uint64_t drawn = mixed(world_.options.seed, id_, drawn_workers_++);
    std::swap(idle_[drawn % idle_.size()], idle_.back());
  }
  const std::int32_t number = idle_.back();
  idle_.pop_back();
  return number;
}

/// An idle worker for which there is work; removes it from the idle ones.
std::optional<std::int32_t> SimulatedNode::next_idle() {
  // As if all took from one queue: the most urgent task first, then first-in-first-out.
  auto own = idle_.end();
  for (auto worker = idle_.begin(); worker != idle_.end() && !own_ready_.empty(); ++worker) {
    const ReadyQueue* const queue = own_queue_of(*worker);
    if (queue == nullptr) continue;
    const ReadyQueue* const best = own == idle_.end() ? nullptr : own_queue_of(*own);
    const bool is_better =
        best == nullptr || queue->top() > best->top() ||
        (queue->top() == best->top() && queue->front()->order < best->front()->order);
    if (is_better) own = worker;
  }
  if (own != idle_.end()) {
    const std::int32_t number = *own;
    idle_.erase(own);
    return number;
  }
  if (idle_.empty() || !has_work()) return std::nullopt;
  return draw_idle();
}

/// Wake-up time of a worker that waited until now and has taken work.
std::int64_t SimulatedNode::waking_ns(const Worker& worker) {
  if (worker.task != nullptr) {
    const auto order = static_cast<std::int64_t>(worker.task->order);
    if (const auto known = world_.job.waking_seconds(id_, order)) return ns_of(*known);
  }
  if (world_.machine.wakings.empty()) return ns_of(world_.machine.wake_s);
  const bool is_first = worker.free_ns == 0;
  const double waited_s = is_first ? std::numeric_limits<double>::infinity()
                                   : static_cast<double>(world_.now_ns - worker.free_ns) * 1e-9;
  const std::uint64_t drawn = mixed(~world_.options.seed, id_, drawn_wakings_++);
  return ns_of(world_.machine.waking_s(waited_s, drawn));
}

void SimulatedNode::start_workers() {
  while (const auto next = next_idle()) {
    const std::int32_t number = *next;
    Worker& worker = workers_[static_cast<std::size_t>(number)];
    // A worker that just ended a task is still between tasks; free_ns is 0 before the first.
    const bool waits = worker.free_ns == 0 || worker.free_ns < world_.now_ns;
    trace_.worker_waited(number, worker.free_ns, world_.now_ns);
    const bool has_taken = take_work(number);
    HEDDLE_CHECK(has_taken, "no work for worker {}", number);
    start(number, world_.now_ns + (waits ? waking_ns(worker) : 0));
  }
}

/// Starts the worker's work when it is free.
void SimulatedNode::start(std::int32_t number, std::int64_t earliest_ns) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const protocol::Task& task = worker.fine ? *worker.fine.of->task : *worker.task;
  worker.start_ns = std::max(earliest_ns, worker.free_ns);
  const auto order = static_cast<std::int64_t>(task.order);
  if (!worker.fine && world_.job.worker_of(id_, order) == number) {
    const auto known = world_.job.waking_seconds(id_, order);
    if (known) worker.start_ns = std::max(world_.now_ns, worker.end_ns) + ns_of(*known);
  }
  const TaskKind& kind = world_.kind_of(task);
  const double whole = worker.fine
                           ? kind.fine->seconds[static_cast<std::size_t>(worker.fine.number)]
                           : kind.seconds_host;
  if (whole <= 0) {
    throw Error(ErrorCode::usage,
                fmt::format("machine '{}' has no time for kernel '{}' on {} x {} tiles on the host",
                            world_.machine.name, kind.kernel, kind.rows, kind.columns));
  }
  const double pace = world_.machine.pace(id_, number) * world_.machine.start_pace(worker.begun++);
  const double seconds = whole * world_.share_of(task, id_) * pace;
  post(Event::Kind::task_ends, worker.start_ns + std::max<std::int64_t>(1, ns_of(seconds)), number,
       id_);
}

/// The last fine task FIREs the divided task.
void SimulatedNode::end_fine(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const FineWork work = std::exchange(worker.fine, {});
  protocol::Task& task = *work.of->task;
  const TaskKind& kind = world_.kind_of(task);
  trace_.worker_ran_fine(number, work, worker.start_ns, world_.now_ns);
  if (!fine_->finish(work).completes_task) return;
  trace_.divided(task, kind, work.of->start_ns, world_.now_ns);
  world_.result.flops += kind.flops;
  fine_->close(*work.of);
  finished(task);
}

void SimulatedNode::finished(protocol::Task& task) {
  release_tiles(task);
  if (lending_) {
    lending_->choice().finished(task);
    const auto kind = static_cast<std::size_t>(task.work.parameters[0]);
    if (totals.tasks_by_kind.size() <= kind) totals.tasks_by_kind.resize(kind + 1);
    totals.tasks_by_kind[kind] += world_.share_of(task, id_);
  }
  protocol_.task_finished(task, actions_);
}

void SimulatedNode::task_ends(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  totals.busy_workers_s += static_cast<double>(world_.now_ns - worker.start_ns) * 1e-9;
  ++totals.tasks;
  worker.end_ns = world_.now_ns;
  worker.free_ns = world_.now_ns + ns_of(world_.machine.task_s);
  if (worker.fine) {
    end_fine(number);
  } else {
    protocol::Task& task = *std::exchange(worker.task, nullptr);
    const TaskKind& kind = world_.kind_of(task);
    trace_.worker_ran(number, task, kind, worker.start_ns, world_.now_ns);
    world_.result.flops += kind.flops;
    finished(task);
  }
  trace_.ready(number, ready_count(), world_.now_ns);
  // As in a worker: the tasks made ready are queued before it takes the next one.
  discard_freed();
  push_ready();
  if (lending_) static_cast<void>(lend());  // collect() starts what this has brought
  const bool goes_on = take_work(number);
  if (!goes_on) idle_.push_back(number);
  collect();
  if (world_.machine.shares_cores()) step_aside(worker);
  if (!goes_on) return serve_all();  // its core is free for messages
  start(number, world_.now_ns);
}

}  // namespace heddle::replay
