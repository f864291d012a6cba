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

void SimulatedNode::message_seen(std::int32_t number) {
  const SimulatedMessage message = world_.messages.at(number);
  const GrantAction& granted = message.grant;
  const BlockUse written{granted.block, protocol::AccessMode::write, granted.tile};
  SimulatedMemory::Reach written_to = SimulatedMemory::Reach::device;
  if (!message.send.empty && !try_reach(memory_.get(), granted.place, written, written_to)) {
    unreached_receives_.push_back(number);
    return;
  }
  if (world_.machine.are_neighbours(id_, message.grant.from)) {
    world_.at(message.grant.from).message_sent(number);
  }
  world_.messages.remove(number);
  trace_.received(message.grant, message.bytes, message.granted_ns, message.start_ns,
                  world_.now_ns);
  if (!message.send.empty) end_reach(memory_.get(), granted.place, written, written_to);
  protocol_.data_arrived(*message.grant.record, message.send.empty, actions_);
  collect();
}

}  // namespace heddle::replay
