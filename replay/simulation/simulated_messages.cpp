#include <algorithm>
#include <utility>

#include "replay/simulation/simulated_node.hpp"

/// Versions in transfer between nodes: the receiver's grant and the answer.
namespace heddle::replay {

using protocol::GrantAction;
using protocol::SendAction;

namespace {

// As in the runtime (transport/mpi_progress.cpp).
constexpr std::int64_t alert_ns = 30'000;            ///< keeps polling after the last event
constexpr std::int64_t shared_pause_ns = 1'000'000;  ///< between polls on a shared core

}  // namespace

// ---- when the progress thread looks -----------------------------------------------------------

/// An idle worker leaves its core to messages.
bool SimulatedNode::progress_is_looking() const {
  if (!idle_.empty()) return true;
  if (world_.machine.shares_cores()) return false;
  return world_.machine.pause_s <= 0 || world_.now_ns < progress_free_ns_ + alert_ns;
}

/// From this node's threads, which wake it.
void SimulatedNode::posted(const ProgressRequest& request) {
  if (world_.machine.shares_cores() && !progress_is_looking()) {
    to_progress_.push_back(request);
    return expect_a_look();
  }
  serve(request);
  serve_all();
}

void SimulatedNode::arrives(const ProgressRequest& request) {
  if (progress_is_looking()) return serve(request);
  to_progress_.push_back(request);
  expect_a_look();
}

/// A poll of its own; without effect if it is woken earlier.
void SimulatedNode::expect_a_look() {
  if (next_look_ns_) return;
  const bool is_shared = world_.machine.shares_cores();
  const std::int64_t pause = is_shared ? shared_pause_ns : ns_of(world_.machine.pause_s);
  const std::int64_t first = progress_free_ns_ + alert_ns;
  const std::int64_t pauses = (std::max(world_.now_ns, first) - first) / pause + 1;
  next_look_ns_ = first + pauses * pause;
  post(Event::Kind::progress_looks, *next_look_ns_, 0, id_);
}

void SimulatedNode::progress_looks() {
  next_look_ns_.reset();
  serve_all();
}

void SimulatedNode::serve(const ProgressRequest& request) {
  trace_.progress_waited(progress_free_ns_, world_.now_ns);
  progress_free_ns_ = std::max(world_.now_ns, progress_free_ns_) + ns_of(request.seconds);
  totals.messages_s += request.seconds + request.reading_s;
  std::int64_t end_ns = progress_free_ns_;
  if (request.reading_s > 0) {
    // On a shared core in pieces, as both ends poll.
    const bool is_shared = world_.machine.shares_cores();
    std::int64_t& free_ns = is_shared ? reading_free_ns_ : progress_free_ns_;
    end_ns = free_ns = std::max(free_ns, progress_free_ns_) + ns_of(request.reading_s);
    if (is_shared && idle_.empty()) reading_on_cores_ns_ += ns_of(request.reading_s);
  }
  const std::int64_t event_ns =
      request.known_ns ? std::max(world_.now_ns, *request.known_ns) : end_ns + request.later_ns;
  world_.events.push(event_ns, request.event);
}

void SimulatedNode::serve_all() {
  for (const ProgressRequest& request : to_progress_) serve(request);
  to_progress_.clear();
}

/// For the progress thread, which keeps the core while it has work, and a little longer.
void SimulatedNode::step_aside(Worker& worker) {
  if (world_.now_ns - worker.stepped_aside_ns < step_aside_ns) return;
  serve_all();
  worker.stepped_aside_ns = world_.now_ns;
  if (worker.task == nullptr) return;
  const std::int64_t look =
      ns_of(world_.machine.look_s) + std::exchange(reading_on_cores_ns_, std::int64_t{0});
  worker.free_ns = std::max(worker.free_ns, std::max(world_.now_ns, progress_free_ns_) + look);
  worker.stepped_aside_ns = worker.free_ns;
}

/// Sends a small message about a version.
void SimulatedNode::tell(Event::Kind kind, NodeId to, const SimulatedMessage& message) {
  const SimulatedMachine& machine = world_.machine;
  posted({{kind, to, world_.messages.add(message)},
          machine.message_s,
          0,
          ns_of(machine.way(id_, to).latency_s)});
}

void SimulatedNode::ask(const protocol::AskAction& wanted) {
  SimulatedMessage message;
  message.grant = {wanted.from, wanted.job, wanted.tile, wanted.number, {}, {}};
  message.to = id_;
  tell(Event::Kind::ask_arrives, wanted.from, message);
}

void SimulatedNode::offer(const protocol::OfferAction& offered) {
  SimulatedMessage message;
  message.grant = {id_, offered.job, offered.tile, offered.number, {}, {}};
  message.to = offered.to;
  tell(Event::Kind::offer_arrives, offered.to, message);
}

/// An ask or an offer.
void SimulatedNode::hint_seen(Event::Kind kind, std::int32_t number) {
  const SimulatedMessage message = world_.messages.at(number);
  world_.messages.remove(number);
  const GrantAction& version = message.grant;
  if (kind == Event::Kind::ask_seen) {
    protocol_.ask_arrived(version.job, version.tile, version.number, message.to, actions_);
  } else {
    protocol_.offer_arrived(version.job, version.tile, version.number, version.from, actions_);
  }
  collect();
}

void SimulatedNode::grant(const GrantAction& wanted) {
  SimulatedMessage message;
  message.grant = wanted;
  message.to = id_;
  message.granted_ns = world_.now_ns;
  tell(Event::Kind::grant_arrives, wanted.from, message);
}

void SimulatedNode::grant_seen(std::int32_t number) {
  world_.messages.at(number).grant_seen_ns = world_.now_ns;
  const SimulatedMessage message = world_.messages.at(number);
  const GrantAction& grant = message.grant;
  protocol_.grant_arrived(grant.job, grant.tile, grant.number, message.to,
                          static_cast<std::uint32_t>(number), grant.asked, actions_);
  collect();
}

void SimulatedNode::send(const SendAction& wanted) {
  const auto number = static_cast<std::int32_t>(wanted.tag);
  SimulatedMessage& message = world_.messages.at(number);
  message.send = wanted;
  message.posted_ns = world_.now_ns;
  // Data that the grant released now was not present before.
  const bool has_waited = message.grant_seen_ns == world_.now_ns;
  message.begin_ns = has_waited ? message.granted_ns : world_.now_ns;
  if (!wanted.empty) message.bytes = world_.job.message_bytes(wanted.tile, wanted.number);
  posted({{Event::Kind::message_starts, id_, number}, world_.machine.message_s});
}

void SimulatedNode::message_starts(std::int32_t number) {
  const SimulatedMachine& machine = world_.machine;
  SimulatedMessage& message = world_.messages.at(number);
  const protocol::SendAction& sent = message.send;
  if (!sent.empty &&
      !reach(sent.place, {sent.block, protocol::AccessMode::read, sent.tile}, message.read_from)) {
    unreached_sends_.push_back(number);
    return;
  }
  message.start_ns = world_.now_ns;
  if (machine.are_neighbours(id_, message.to)) {
    post(Event::Kind::message_arrives, world_.now_ns + ns_of(machine.memory.latency_s), number,
         message.to);
    return;
  }
  message.next = -1;
  if (std::int32_t* const last = leaving_.find(message.to.value())) {
    world_.messages.at(std::exchange(*last, number)).next = number;
    return;
  }
  leaving_[message.to.value()] = number;
  send_next(number);
}

/// Serially to each node, as on one connection.
void SimulatedNode::send_next(std::int32_t number) {
  const SimulatedMachine& machine = world_.machine;
  const SimulatedMessage& message = world_.messages.at(number);
  // Data from or to a device also passes its link, in pieces: the slowest counts.
  double slower = 1;
  const auto by = [&](PlaceId place, const Way& way) {
    if (place != host_place) {
      slower = std::max(slower, machine.network.bytes_per_s / way.bytes_per_s);
    }
  };
  if (message.read_from == SimulatedMemory::Reach::device) by(message.send.place, machine.to_host);
  by(message.grant.place, machine.to_device);
  world_.begin_flow({FlowUser::Kind::message, id_, number},
                    slower * static_cast<double>(message.bytes), network_out,
                    world_.at(message.to).network_in);
}

void SimulatedNode::message_sent(std::int32_t number) {
  const SimulatedMessage& message = world_.messages.at(number);
  const SendAction sent = message.send;
  trace_.sent(sent, message.bytes, message.posted_ns, message.start_ns, world_.now_ns);
  ++world_.result.messages;
  world_.result.message_bytes += message.bytes;
  if (!world_.machine.are_neighbours(id_, message.to)) {
    if (message.next >= 0) {
      send_next(message.next);
    } else {
      leaving_.erase(message.to.value());
    }
    post(Event::Kind::message_arrives, world_.now_ns + ns_of(world_.machine.network.latency_s),
         number, message.to);
  }
  if (!sent.empty) {
    end_reach(sent.place, {sent.block, protocol::AccessMode::read, sent.tile}, message.read_from);
  }
  protocol_.send_finished(*sent.record, actions_);
  collect();
}

void SimulatedNode::message_seen(std::int32_t number) {
  const SimulatedMessage message = world_.messages.at(number);
  const GrantAction& granted = message.grant;
  const BlockUse written{granted.block, protocol::AccessMode::write, granted.tile};
  SimulatedMemory::Reach written_to = SimulatedMemory::Reach::device;
  if (!message.send.empty && !reach(granted.place, written, written_to)) {
    unreached_receives_.push_back(number);
    return;
  }
  if (world_.machine.are_neighbours(id_, message.grant.from)) {
    world_.at(message.grant.from).message_sent(number);
  }
  world_.messages.remove(number);
  trace_.received(message.grant, message.bytes, message.granted_ns, message.start_ns,
                  world_.now_ns);
  if (!message.send.empty) end_reach(granted.place, written, written_to);
  protocol_.data_arrived(*message.grant.record, message.send.empty, actions_);
  collect();
}

}  // namespace heddle::replay
