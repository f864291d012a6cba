#include "replay/simulation/simulated_node.hpp"

/// What the progress thread passes on to the node's protocol; what the node sends is in
/// OutgoingMessages.
namespace heddle::replay {

using protocol::GrantAction;

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

void SimulatedNode::grant_seen(std::int32_t number) {
  world_.messages.at(number).grant_seen_ns = world_.now_ns;
  const SimulatedMessage message = world_.messages.at(number);
  const GrantAction& grant = message.grant;
  protocol_.grant_arrived(grant.job, grant.tile, grant.number, message.to,
                          static_cast<std::uint32_t>(number), grant.asked, actions_);
  collect();
}

void SimulatedNode::message_sent(std::int32_t number) {
  const SimulatedMessage& message = world_.messages.at(number);
  protocol::Send& record = *message.send.record;
  trace_.sent(message.send, message.bytes, message.posted_ns, message.start_ns, world_.now_ns);
  messages_.left(number);
  protocol_.send_finished(record, actions_);
  collect();
}

/// From another host it is there. A neighbour's version is read by the progress thread, or copied
/// by a device.
void SimulatedNode::message_arrives(std::int32_t number) {
  const SimulatedMachine& machine = world_.machine;
  const SimulatedMessage& message = world_.messages.at(number);
  const NodeId from = message.grant.from;
  const protocol::SendAction& sent = message.send;
  ProgressRequest request{{Event::Kind::message_seen, id_, number}, machine.message_s};
  if (!machine.are_neighbours(from, id_)) return progress_.arrives(request);
  const double known_s = world_.job.message_seconds(from, id_, sent.tile, sent.number);
  if (known_s > 0) request.known_ns = message.begin_ns + ns_of(known_s);
  if (!DirectCopies::takes(machine, message)) {
    request.reading_s =
        machine.reading_s(static_cast<double>(message.bytes), sent.place, message.grant.place);
  } else if (known_s <= 0) {
    request.event.kind = Event::Kind::direct_begins;
  }
  progress_.arrives(request);
}

void SimulatedNode::message_seen(std::int32_t number) {
  SimulatedMemory::Reach& written_to = world_.messages.at(number).written_to;
  const GrantAction& granted = world_.messages.at(number).grant;
  const BlockUse written{granted.block, protocol::AccessMode::write, granted.tile};
  const bool is_held = written_to != SimulatedMemory::Reach::nowhere;
  if (!world_.messages.at(number).send.empty && !is_held &&
      !try_reach(memory_.get(), granted.place, written, written_to)) {
    unreached_receives_.push_back(number);
    return;
  }
  const SimulatedMessage message = world_.messages.at(number);
  if (world_.machine.are_neighbours(id_, message.grant.from)) {
    world_.at(message.grant.from).message_sent(number);
  }
  world_.messages.remove(number);
  trace_.received(message.grant, message.bytes, message.granted_ns, message.start_ns,
                  world_.now_ns);
  if (!message.send.empty)
    end_reach(memory_.get(), message.grant.place, written, message.written_to);
  protocol_.data_arrived(*message.grant.record, message.send.empty, actions_);
  collect();
}

}  // namespace heddle::replay
