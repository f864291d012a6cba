#include "replay/simulation/simulation_trace.hpp"

#include <fmt/format.h>
#include <utility>

namespace heddle::replay {

using trace::Record;
using trace::ThreadRecords;

SimulationTrace::SimulationTrace(NodeId node, const SimulatedMachine& machine, bool enabled)
    : enabled_(enabled) {
  trace_.node = node;
  trace_.node_count = machine.nodes;
  if (!enabled) return;
  const auto add = [&](std::string name, int order) {
    ThreadRecords thread;
    thread.name = std::move(name);
    thread.sort_order = order;
    trace_.threads.push_back(std::move(thread));
    return trace_.threads.size() - 1;
  };
  add("generation", 0);
  for (std::int32_t w = 0; w < machine.cpu_workers; ++w) add(fmt::format("worker {}", w), 10 + w);
  first_device_ = trace_.threads.size();
  for (std::int32_t d = 0; d < machine.devices; ++d) add(fmt::format("device {}", d), 1000 + d);
  if (machine.devices > 0) copy_ = add("copy", 2000);
  if (machine.nodes > 1) progress_ = add("mpi", 3000);
}

trace::NameId SimulationTrace::name(const std::string& text) {
  const auto next = trace::NameId(static_cast<std::uint32_t>(trace_.names.size()));
  const auto [entry, is_new] = names_.try_emplace(text, next);
  if (is_new) trace_.names.push_back(text);
  return entry->second;
}

void SimulationTrace::describe(std::int32_t matrix, const SimulatedMatrixSpec& spec) {
  trace_.matrices.push_back({matrix, spec.name, spec.tile_rows, spec.tile_columns});
}

void SimulationTrace::ran(ThreadRecords& thread, const protocol::Task& task, const TaskKind& kind,
                          std::int64_t start_ns, std::int64_t end_ns) {
  const protocol::TileId tile = task.operands[0].tile;
  const trace::MatrixDescription& matrix =
      trace_.matrices[static_cast<std::size_t>(tile.matrix.value())];
  trace::TaskRecord record;
  record.access_count = task.operand_count;
  record.kernel = name(kind.kernel);
  record.job = task.job->id.value();
  record.place = task.place;
  record.order = task.order;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.tile = {tile.matrix.value(), tile.index};
  record.row = tile.index % matrix.tile_rows;
  record.column = tile.index / matrix.tile_rows;
  record.priority = task.priority;
  thread.records.push_back(Record::of(record));
  thread.totals.busy_ns += end_ns - start_ns;
  ++thread.totals.tasks;
  for (std::uint8_t first = 0; first < task.operand_count;
       first = static_cast<std::uint8_t>(first + trace::accesses_per_record)) {
    trace::AccessRecord group;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t at = first + i;
      if (at >= task.operand_count) {
        group[i].kind = i == 0 ? trace::RecordKind::access : trace::RecordKind::none;
        continue;
      }
      const protocol::Operand& operand = task.operands[static_cast<std::uint8_t>(at)];
      group[i].mode = static_cast<trace::AccessMode>(operand.mode);
      group[i].tile = {operand.tile.matrix.value(), operand.tile.index};
      group[i].version = operand.version;
    }
    thread.records.push_back(Record::of(group));
  }
}

void SimulationTrace::worker_ran(std::int32_t worker, const protocol::Task& task,
                                 const TaskKind& kind, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  ran(trace_.threads[1 + static_cast<std::size_t>(worker)], task, kind, start_ns, end_ns);
}

void SimulationTrace::device_ran(std::int32_t device, const protocol::Task& task,
                                 const TaskKind& kind, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  ran(trace_.threads[first_device_ + static_cast<std::size_t>(device)], task, kind, start_ns,
      end_ns);
}

void SimulationTrace::copied(const protocol::CopyAction& copy, std::uint64_t bytes,
                             std::int64_t posted_ns, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  trace::CopyRecord record;
  record.job = copy.job.value();
  record.tile = {copy.tile.matrix.value(), copy.tile.index};
  record.version = copy.number;
  record.from = copy.from_place;
  record.to = copy.to_place;
  record.bytes = bytes;
  record.posted_ns = posted_ns;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  trace_.threads[copy_].records.push_back(Record::of(record));
}

namespace {

template <class Action>
trace::MessageRecord message(trace::RecordKind kind, const Action& action, NodeId peer,
                             std::uint64_t bytes, std::int64_t posted_ns, std::int64_t start_ns,
                             std::int64_t end_ns) {
  trace::MessageRecord record;
  record.kind = kind;
  record.job = action.job.value();
  record.tile = {action.tile.matrix.value(), action.tile.index};
  record.version = action.number;
  record.peer = peer;
  record.bytes = bytes;
  record.posted_ns = posted_ns;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  return record;
}

}  // namespace

void SimulationTrace::sent(const protocol::SendAction& send, std::uint64_t bytes,
                           std::int64_t posted_ns, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  trace_.threads[progress_].records.push_back(Record::of(
      message(trace::RecordKind::send, send, send.to, bytes, posted_ns, start_ns, end_ns)));
}

void SimulationTrace::received(const protocol::GrantAction& grant, std::uint64_t bytes,
                               std::int64_t posted_ns, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  trace_.threads[progress_].records.push_back(Record::of(
      message(trace::RecordKind::receive, grant, grant.from, bytes, posted_ns, start_ns, end_ns)));
}

trace::NodeTrace SimulationTrace::take() {
  return std::exchange(trace_, {});
}

}  // namespace heddle::replay
