#include "replay/simulation/direct_copies.hpp"

#include <utility>

#include "replay/simulation/simulated_node.hpp"

namespace heddle::replay {

using Reach = SimulatedMemory::Reach;

DirectCopies::DirectCopies(SimulatedWorld& world, NodeId node, ProgressThread& thread)
    : world_(world), node_(node), thread_(thread) {
  const double rate = world.machine.to_peer.bytes_per_s;
  for (std::int32_t d = 0; d < world.machine.devices; ++d) {
    links_.push_back({world.rates.add_resource(rate), world.rates.add_resource(rate)});
  }
}

bool DirectCopies::takes(const SimulatedMachine& machine, const SimulatedMessage& message) {
  return message.bytes > 0 && message.send.place != host_place &&
         message.grant.place != host_place &&
         machine.are_neighbours(message.grant.from, message.to);
}

bool DirectCopies::is_read_on_device(const SimulatedMessage& message) {
  return message.read_from == Reach::device;
}

/// Without a memory blocks stay on their devices.
bool DirectCopies::is_written_on_device(const SimulatedMessage& message) const {
  return memory_ == nullptr || message.written_to == Reach::device;
}

const Way& DirectCopies::way(const SimulatedMessage& message) const {
  if (!is_read_on_device(message)) return world_.machine.to_device;
  return is_written_on_device(message) ? world_.machine.to_peer : world_.machine.to_host;
}

void DirectCopies::begins(std::int32_t number) {
  SimulatedMessage& message = world_.messages.at(number);
  const BlockUse written{message.grant.block, protocol::AccessMode::write, message.grant.tile};
  if (!try_reach(memory_, message.grant.place, written, message.written_to)) {
    unreached_.push_back(number);
    return;
  }
  const bool from_device = is_read_on_device(message);
  const bool to_device = is_written_on_device(message);
  const auto bytes = static_cast<double>(message.bytes);
  if (!from_device && !to_device) {  // between host memories, which the thread reads
    const Event seen{Event::Kind::message_seen, node_, number};
    return thread_.posted({seen, 0, world_.machine.reading_s(bytes)});
  }
  const ResourceId out = world_.at(message.grant.from).direct_copies().link(message.send.place).out;
  const ResourceId in = link(message.grant.place).in;
  // A link counts by its rate between devices.
  const double slower = world_.machine.to_peer.bytes_per_s / way(message).bytes_per_s;
  world_.begin_flow({FlowUser::Kind::direct, node_, number}, slower * bytes, from_device ? out : in,
                    to_device ? in : out);
}

void DirectCopies::retry() {
  for (const std::int32_t number : std::exchange(unreached_, {})) begins(number);
}

void DirectCopies::copied(std::int32_t number) {
  const Way& by = way(world_.messages.at(number));
  world_.post(Event::Kind::direct_ends, world_.now_ns + ns_of(by.latency_s), number, node_);
}

/// The device wakes the thread.
void DirectCopies::ends(std::int32_t number) {
  thread_.posted({{Event::Kind::message_seen, node_, number}, world_.machine.message_s});
}

}  // namespace heddle::replay
