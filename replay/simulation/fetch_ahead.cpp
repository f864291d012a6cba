#include <cstddef>
#include <span>

#include "node-runtime/protocol/records.hpp"
#include "replay/simulation/simulated_node.hpp"

/// With thousands of nodes hardly an event finds anything in a cache that it needs, and each thing
/// that it needs names the next. So the events that come next are looked at together, some tens of
/// them: first everything that they name themselves is fetched, then what that names, and so on;
/// of each of these rounds the accesses to memory overlap. Nothing is changed.
namespace heddle::replay {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr int rounds = 6;

void fetch(const void* what, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(what);
  for (std::size_t i = 0; i < bytes; i += line_bytes) __builtin_prefetch(at + i);
}
template <class Record>
void fetch(const Record* record) {
  fetch(record, sizeof(Record));
}

/// What the end of a task needs: the task, the copies that it uses, who waits for what it writes.
void fetch_task(const protocol::Task& task, int round) {
  if (round == 0) return fetch(&task, sizeof(protocol::Task) + 3 * sizeof(protocol::Operand));
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const protocol::LocalVersion* const out = operand.out;
    if (round == 1) {
      fetch(operand.in, sizeof(protocol::Copy));
      fetch(out);
    } else if (out != nullptr && out->first != nullptr) {
      fetch(round == 2 ? static_cast<const void*>(out->first) : out->first->target,
            round == 2 ? sizeof(protocol::Instance) : sizeof(protocol::Task));
    }
  }
}

/// Where the landing's version is counted, its readers hang.
const protocol::Copy* landing_copy(const SimulatedMessage& message) {
  using protocol::Landing;
  const Landing* const landing = message.grant.record;
  if (landing == nullptr || landing->landing_kind != Landing::Kind::version) return nullptr;
  return static_cast<const protocol::RemoteVersion*>(landing);
}

}  // namespace

void SimulatedNode::fetch_named(const Event& event, int round) const {
  switch (event.kind) {
    case Event::Kind::task_ends: {
      const Worker& worker = workers_[static_cast<std::size_t>(event.number)];
      if (round == 1) return fetch(&worker);
      return fetch_task(worker.fine ? *worker.fine.of->task : *worker.task, round - 2);
    }
    case Event::Kind::kernel_noticed: {
      const SimulatedKernel& kernel = kernels_.at(event.number);
      if (round == 1) return fetch(&kernel);
      return fetch_task(*kernel.task, round - 2);
    }
    case Event::Kind::message_seen: {
      const SimulatedMessage& message = world_.messages.at(event.number);
      if (round == 1) return fetch(message.grant.record, sizeof(protocol::RemoteVersion));
      const protocol::Copy* const copy = landing_copy(message);
      if (copy == nullptr || copy->first == nullptr) return;
      if (round == 2) return fetch(copy->first);
      if (round == 3) fetch(copy->first->target, sizeof(protocol::Task));
      return;
    }
    default:
      return;
  }
}

void SimulatedWorld::fetch_ahead(std::span<const EventQueue<Event>::Entry> soon) {
  for (const auto& [time_ns, order, event] : soon) {
    fetch(nodes[static_cast<std::size_t>(event.node.value())].get());
    if (event.kind == Event::Kind::flow_ends) rates.fetch(ResourceId{event.number}, 0);
    if (event.kind >= Event::Kind::ask_arrives && event.kind < Event::Kind::progress_looks) {
      fetch(&messages.at(event.number));
    }
  }
  for (int round = 1; round < rounds; ++round) {
    for (const auto& [time_ns, order, event] : soon) {
      if (event.kind == Event::Kind::flow_ends) {
        rates.fetch(ResourceId{event.number}, round);
      } else {
        at(event.node).fetch_named(event, round);
      }
    }
  }
}

}  // namespace heddle::replay
