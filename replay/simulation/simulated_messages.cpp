#include <algorithm>

#include "replay/simulation/simulated_node.hpp"

/// Versions on their way between nodes: the receiver's grant, and what answers it.
namespace heddle::replay {

using protocol::GrantAction;
using protocol::SendAction;

void SimulatedNode::grant(const GrantAction& wanted) {
  const SimulatedMachine& machine = world_.machine;
  SimulatedMessage message;
  message.grant = wanted;
  message.to = id_;
  message.granted_ns = world_.now_ns;
  const Way& way = machine.are_neighbours(id_, wanted.from) ? machine.memory : machine.network;
  post(Event::Kind::grant_arrives, progress(machine.message_s) + ns_of(way.latency_s),
       world_.messages.add(message), wanted.from);
}

void SimulatedNode::grant_seen(std::int32_t number) {
  const SimulatedMessage message = world_.messages.at(number);
  const GrantAction& grant = message.grant;
  protocol_.grant_arrived(grant.job, grant.tile, grant.number, message.to,
                          static_cast<std::uint32_t>(number), actions_);
  collect();
}

void SimulatedNode::send(const SendAction& wanted) {
  const auto number = static_cast<std::int32_t>(wanted.tag);
  SimulatedMessage& message = world_.messages.at(number);
  message.send = wanted;
  message.posted_ns = world_.now_ns;
  if (!wanted.empty) message.bytes = world_.job.message_bytes(wanted.tile, wanted.number);
  post(Event::Kind::message_starts, progress(world_.machine.message_s), number, id_);
}

void SimulatedNode::message_starts(std::int32_t number) {
  const SimulatedMachine& machine = world_.machine;
  SimulatedMessage& message = world_.messages.at(number);
  message.start_ns = world_.now_ns;
  if (machine.are_neighbours(id_, message.to)) {
    post(Event::Kind::message_arrives, world_.now_ns + ns_of(machine.memory.latency_s), number,
         message.to);
    return;
  }
  std::deque<std::int32_t>& queue = leaving_[message.to.value()];
  queue.push_back(number);
  if (queue.size() == 1) send_next(message.to);
}

/// One after the other to each node, as on one connection.
void SimulatedNode::send_next(NodeId to) {
  const SimulatedMachine& machine = world_.machine;
  const std::int32_t number = leaving_[to.value()].front();
  const SimulatedMessage& message = world_.messages.at(number);
  // What comes from or goes to a device passes its link too, piece by piece: the slowest counts.
  double slower = 1;
  const auto by = [&](PlaceId place, const Way& way) {
    if (place != host_place) {
      slower = std::max(slower, machine.network.bytes_per_s / way.bytes_per_s);
    }
  };
  by(message.send.place, machine.to_host);
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
    std::deque<std::int32_t>& queue = leaving_[message.to.value()];
    queue.pop_front();
    if (!queue.empty()) send_next(message.to);
    post(Event::Kind::message_arrives, world_.now_ns + ns_of(world_.machine.network.latency_s),
         number, message.to);
  }
  protocol_.send_finished(*sent.record, actions_);
  collect();
}

void SimulatedNode::message_seen(std::int32_t number) {
  const SimulatedMessage message = world_.messages.at(number);
  if (world_.machine.are_neighbours(id_, message.grant.from)) {
    world_.at(message.grant.from).message_sent(number);
  }
  world_.messages.remove(number);
  trace_.received(message.grant, message.bytes, message.granted_ns, message.start_ns,
                  world_.now_ns);
  protocol_.data_arrived(*message.grant.record, message.send.empty, actions_);
  collect();
}

}  // namespace heddle::replay
