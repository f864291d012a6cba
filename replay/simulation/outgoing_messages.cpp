#include "replay/simulation/outgoing_messages.hpp"

#include <algorithm>
#include <utility>

#include "replay/simulation/simulated_node.hpp"

namespace heddle::replay {

using protocol::SendAction;

namespace {

BlockUse block_of(const SendAction& sent) {
  return {sent.block, protocol::AccessMode::read, sent.tile};
}

}  // namespace

/// Sends a small message about a version.
void OutgoingMessages::tell(Event::Kind kind, NodeId to, const SimulatedMessage& message) {
  const SimulatedMachine& machine = world_.machine;
  thread_.posted({{kind, to, world_.messages.add(message)},
                  machine.message_s,
                  0,
                  ns_of(machine.way(node_, to).latency_s)});
}

void OutgoingMessages::ask(const protocol::AskAction& wanted) {
  SimulatedMessage message;
  message.grant = {wanted.from, wanted.job, wanted.tile, wanted.number, {}, {}};
  message.to = node_;
  tell(Event::Kind::ask_arrives, wanted.from, message);
}

void OutgoingMessages::offer(const protocol::OfferAction& offered) {
  SimulatedMessage message;
  message.grant = {node_, offered.job, offered.tile, offered.number, {}, {}};
  message.to = offered.to;
  tell(Event::Kind::offer_arrives, offered.to, message);
}

void OutgoingMessages::grant(const protocol::GrantAction& wanted) {
  SimulatedMessage message;
  message.grant = wanted;
  message.to = node_;
  message.granted_ns = world_.now_ns;
  tell(Event::Kind::grant_arrives, wanted.from, message);
}

void OutgoingMessages::send(const SendAction& wanted) {
  const auto number = static_cast<std::int32_t>(wanted.tag);
  SimulatedMessage& message = world_.messages.at(number);
  message.send = wanted;
  message.posted_ns = world_.now_ns;
  // Data that the grant released now was not present before.
  const bool has_waited = message.grant_seen_ns == world_.now_ns;
  message.begin_ns = has_waited ? message.granted_ns : world_.now_ns;
  if (!wanted.empty) message.bytes = world_.job.message_bytes(wanted.tile, wanted.number);
  thread_.posted({{Event::Kind::message_starts, node_, number}, world_.machine.message_s});
}

void OutgoingMessages::starts(std::int32_t number) {
  const SimulatedMachine& machine = world_.machine;
  SimulatedMessage& message = world_.messages.at(number);
  const SendAction& sent = message.send;
  if (!sent.empty && !try_reach(memory_, sent.place, block_of(sent), message.read_from)) {
    unreached_.push_back(number);
    return;
  }
  message.start_ns = world_.now_ns;
  if (machine.are_neighbours(node_, message.to)) {
    world_.post(Event::Kind::message_arrives, world_.now_ns + ns_of(machine.memory.latency_s),
                number, message.to);
    return;
  }
  message.next = -1;
  if (std::int32_t* const last = leaving_.find(message.to.value())) {
    world_.messages.at(std::exchange(*last, number)).next = number;
    return;
  }
  leaving_[message.to.value()] = number;
  begin_flow(number);
}

void OutgoingMessages::retry() {
  for (const std::int32_t number : std::exchange(unreached_, {})) starts(number);
}

void OutgoingMessages::begin_flow(std::int32_t number) {
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
  world_.begin_flow({FlowUser::Kind::message, node_, number},
                    slower * static_cast<double>(message.bytes), world_.interface_of(node_).out,
                    world_.interface_of(message.to).in);
}

void OutgoingMessages::left(std::int32_t number) {
  const SimulatedMessage& message = world_.messages.at(number);
  ++world_.result.messages;
  world_.result.message_bytes += message.bytes;
  if (!world_.machine.are_neighbours(node_, message.to)) {
    if (message.next >= 0) {
      begin_flow(message.next);
    } else {
      leaving_.erase(message.to.value());
    }
    world_.post(Event::Kind::message_arrives,
                world_.now_ns + ns_of(world_.machine.network.latency_s), number, message.to);
  }
  const SendAction& sent = message.send;
  if (!sent.empty) end_reach(memory_, sent.place, block_of(sent), message.read_from);
}

}  // namespace heddle::replay
