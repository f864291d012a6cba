#include <cstddef>
#include <span>
#include <vector>

#include "node-runtime/protocol/records.hpp"
#include "replay/simulation/simulated_node.hpp"

/// With thousands of nodes hardly any event finds its data in a cache, and its records are a chain
/// of pointers. So the next tens of events are prefetched together: first the records that they
/// name, then those that these name, and so on, so that the accesses of a round overlap. Then all
/// lists of readers that they will walk are walked side by side. Nothing is changed.
namespace heddle::replay {
namespace {

constexpr std::size_t line_bytes = 64;
// Steps from an event to the copies whose readers it will find.
constexpr int rounds = 5;
// Readers per list; they must stay in the cache until they are used.
constexpr int readers_max = 32;

void fetch(const void* what, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(what);
  for (std::size_t i = 0; i < bytes; i += line_bytes) __builtin_prefetch(at + i);
}
template <class Record>
void fetch(const Record* record) {
  fetch(record, sizeof(Record));
}
/// With its operands; most tasks have three.
void fetch_whole(const protocol::Task* task) {
  fetch(task, sizeof(protocol::Task) + 3 * sizeof(protocol::Operand));
}

/// For the end of a task: the task, and the copies that it uses.
void fetch_task(const protocol::Task& task, int round) {
  if (round == 0) return fetch_whole(&task);
  if (round > 1) return;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    fetch(task.operands[i].in, sizeof(protocol::Copy));
    fetch(task.operands[i].out);
  }
}

/// The copy that counts the landing's version and lists its readers.
const protocol::Copy* landing_copy(const SimulatedMessage& message) {
  using protocol::Landing;
  const Landing* const landing = message.grant.record;
  if (landing == nullptr || landing->landing_kind != Landing::Kind::version) return nullptr;
  return static_cast<const protocol::RemoteVersion*>(landing);
}

/// The replica whose readers a copy between places makes ready.
const protocol::Replica* replica_of(const protocol::CopyAction& copy) {
  if (copy.kind != protocol::CopyAction::Kind::replica) return nullptr;
  return static_cast<const protocol::Replica*>(copy.record);
}

}  // namespace

/// Lists that are walked side by side, and their tasks that lack nothing else.
class ReaderWalk {
 public:
  void add(const protocol::Copy* copy) {
    if (copy == nullptr || copy->first == nullptr) return;
    fetch(copy->first);
    lists_.push_back(copy->first);
  }
  void add_outputs(const protocol::Task& task) {
    for (std::uint8_t i = 0; i < task.operand_count; ++i) add(task.operands[i].out);
  }

  void fetch_all() {
    for (int i = 0; i < readers_max && !lists_.empty(); ++i) {
      next_of_tasks();
      next_of_lists();
    }
    for (int stage = 0; stage < stages && !tasks_.empty(); ++stage) next_of_tasks();
    lists_.clear();
    tasks_.clear();
  }

 private:
  static constexpr int stages = 3;
  /// Possibly ready with this input; inspected a round after the prefetch.
  struct Reader {
    const protocol::Task* task;
    int stage;
  };

  void next_of_lists() {
    std::size_t kept = 0;
    for (const protocol::Instance* const reader : lists_) {
      const protocol::Instance* const next = reader->next;
      fetch_target(*reader);
      if (next == nullptr) continue;
      fetch(next);
      lists_[kept++] = next;
    }
    lists_.resize(kept);
  }

  void fetch_target(const protocol::Instance& reader) {
    using Target = protocol::Instance::Target;
    switch (reader.target_kind) {
      case Target::task: {
        const auto* const task = static_cast<const protocol::Task*>(reader.target);
        fetch(task);
        tasks_.push_back({task, 0});
        return;
      }
      case Target::replica:
        return fetch(static_cast<const protocol::Replica*>(reader.target));
      case Target::send:
        return fetch(static_cast<const protocol::Send*>(reader.target));
    }
  }

  /// A ready task requests blocks for its outputs.
  void next_of_tasks() {
    std::size_t kept = 0;
    for (const auto& [task, stage] : tasks_) {
      if (stage == 0 && task->missing != 1) continue;
      if (stage == 0) fetch_whole(task);
      if (stage > 0) fetch_outputs(*task, stage);
      if (stage + 1 < stages) tasks_[kept++] = {task, stage + 1};
    }
    tasks_.resize(kept);
  }

  static void fetch_outputs(const protocol::Task& task, int stage) {
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const protocol::LocalVersion* const out = task.operands[i].out;
      if (out != nullptr) fetch(stage == 1 ? out : out->previous);
    }
  }

  std::vector<const protocol::Instance*> lists_;
  std::vector<Reader> tasks_;
};

const protocol::Task* SimulatedNode::ending_task(const Event& event) const {
  if (event.kind == Event::Kind::kernel_noticed) return kernels_.at(event.number).task;
  const Worker& worker = workers_[static_cast<std::size_t>(event.number)];
  return worker.fine ? worker.fine.of->task : worker.task;
}

void SimulatedNode::fetch_named(const Event& event, int round) const {
  switch (event.kind) {
    case Event::Kind::task_ends:
      if (round == 1) return fetch(&workers_[static_cast<std::size_t>(event.number)]);
      return fetch_task(*ending_task(event), round - 2);
    case Event::Kind::kernel_noticed:
      if (round == 1) return fetch(&kernels_.at(event.number));
      return fetch_task(*ending_task(event), round - 2);
    case Event::Kind::copy_ends: {
      const SimulatedCopy& copy = copies_.at(event.number);
      if (round == 1) return fetch(&copy);
      const protocol::Replica* const replica = replica_of(copy.action);
      if (copy.is_transfer || replica == nullptr) return;
      if (round == 2) fetch(replica);
      if (round == 3) fetch(replica->source);
      return;
    }
    case Event::Kind::message_seen:
      if (round == 1) {
        fetch(world_.messages.at(event.number).grant.record, sizeof(protocol::RemoteVersion));
      }
      return;
    default:
      return;
  }
}

void SimulatedNode::add_readers(const Event& event, ReaderWalk& walk) const {
  switch (event.kind) {
    case Event::Kind::task_ends:
    case Event::Kind::kernel_noticed:
      return walk.add_outputs(*ending_task(event));
    case Event::Kind::copy_ends: {
      const SimulatedCopy& copy = copies_.at(event.number);
      if (!copy.is_transfer) walk.add(replica_of(copy.action));
      return;
    }
    case Event::Kind::message_seen:
      return walk.add(landing_copy(world_.messages.at(event.number)));
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
  ReaderWalk walk;
  for (const auto& [time_ns, order, event] : soon) at(event.node).add_readers(event, walk);
  walk.fetch_all();
}

}  // namespace heddle::replay
