#include "replay/simulation/simulated_node.hpp"

#include <algorithm>
#include <utility>

#include "replay/simulation/node_needs.hpp"

namespace heddle::replay {

namespace {

/// Items per turn of the generation thread; the first turns are shorter, so that the first ready
/// tasks do not wait.
constexpr std::int32_t turn_max = 16;

}  // namespace

SimulatedNode::SimulatedNode(SimulatedWorld& world, NodeId id)
    : world_(world),
      id_(id),
      trace_(id, world.machine, world.options.traces),
      protocol_({id, world.machine.devices + 1}),
      workers_(static_cast<std::size_t>(world.machine.cpu_workers)),
      copies_(world, id, waits_),
      progress_(world, id, idle_, trace_, totals),
      messages_(world, id, progress_),
      direct_copies_(world, id, progress_) {
  for (std::int32_t p = 0; p <= world.machine.devices; ++p) {
    ready_.push_back(std::make_unique<ReadyQueue>());
  }
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

void SimulatedNode::begin() {
  protocol::JobOptions options;
  options.window = world_.options.window;
  const NodeNeeds needs(world_.machine, world_.job, id_);
  for (PlaceId place = host_place; place.value() <= world_.machine.devices; ++place) {
    options.pools.push_back(
        {job_pool_base + place.value(), needs.capacity(place), needs.minimum(place)});
  }
  options.readers = world_.job.readers();
  if (options.readers) {
    options.route = [this](std::span<const protocol::Reader> readers, NodeId home) {
      return world_.reader_tree.route(readers, home, id_);
    };
  }
  job_ = &protocol_.begin_job(options);
  if (world_.machine.devices > 0) begin_memory(needs);
  walk_ = world_.job.walk(id_, *this);
  is_generating_ = true;
  world_.post(Event::Kind::generate, 0, 0, id_);
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
    world_.post(Event::Kind::generate, generation_free_ns_, 0, id_);
  }
  collect();
}

void SimulatedNode::end_waits(std::int64_t time_ns) {
  trace_.generation_waited(trace::WaitCause::no_task, generation_free_ns_, time_ns);
  progress_.end_wait(time_ns);
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

void SimulatedNode::publish(const protocol::Access& access,
                            std::span<const protocol::Reader> readers) {
  protocol_.publish(*job_, access, readers, actions_);
}

void SimulatedNode::release(const protocol::Access& access) {
  protocol_.release(*job_, access, actions_);
}

bool SimulatedNode::has_room() const {
  return budget_ > 0 && !job_->window_is_full();
}

// ---- what the protocol wants -----------------------------------------------------------------

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
  for (const protocol::CopyAction& copy : actions_.copies) copies_.post(copy);
  for (const protocol::AskAction& wanted : actions_.asks) messages_.ask(wanted);
  for (const protocol::GrantAction& wanted : actions_.grants) messages_.grant(wanted);
  for (const protocol::OfferAction& offered : actions_.offers) messages_.offer(offered);
  for (const protocol::SendAction& wanted : actions_.sends) messages_.send(wanted);
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
    world_.post(Event::Kind::generate, world_.now_ns + ns_of(seconds), 0, id_);
  }
}

}  // namespace heddle::replay
