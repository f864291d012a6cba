#include "replay/simulation/simulation_trace.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "node-runtime/trace/counter_names.hpp"

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
  generation_ = add("generation", 0);
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

trace::TaskRecord SimulationTrace::record_of(const protocol::Task& task, const std::string& kernel,
                                             std::int64_t start_ns, std::int64_t end_ns) {
  const protocol::TileId tile = task.operands[0].tile;
  trace::TaskRecord record;
  record.kernel = name(kernel);
  record.job = task.job->id.value();
  record.place = task.runs_at();
  record.order = task.order;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.tile = {tile.matrix.value(), tile.index};
  record.priority = task.priority;
  return record;
}

/// A trace takes modes by their numbers, as that of a run does (threads/trace_events.hpp).
static_assert(static_cast<int>(trace::AccessMode::read) ==
                  static_cast<int>(protocol::AccessMode::read) &&
              static_cast<int>(trace::AccessMode::write) ==
                  static_cast<int>(protocol::AccessMode::write) &&
              static_cast<int>(trace::AccessMode::read_write) ==
                  static_cast<int>(protocol::AccessMode::read_write));

void SimulationTrace::add_accesses(ThreadRecords& thread, const protocol::Task& task) {
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

void SimulationTrace::ran(ThreadRecords& thread, const protocol::Task& task, const TaskKind& kind,
                          std::int64_t start_ns, std::int64_t end_ns, std::uint8_t stream) {
  trace::TaskRecord record = record_of(task, kind.kernel, start_ns, end_ns);
  record.stream = stream;
  record.access_count = task.operand_count;
  thread.records.push_back(Record::of(record));
  thread.totals.busy_ns += end_ns - start_ns;
  ++thread.totals.tasks;
  add_accesses(thread, task);
}

void SimulationTrace::worker_ran_fine(std::int32_t worker, const FineWork& work,
                                      std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  ThreadRecords& thread = trace_.threads[1 + static_cast<std::size_t>(worker)];
  const std::string kernel(work.task().kernel->name);
  trace::TaskRecord record = record_of(*work.of->task, kernel, start_ns, end_ns);
  record.fine = static_cast<std::uint32_t>(work.number) + 1;
  record.after = static_cast<std::uint32_t>(work.of->last_before(work.number) + 1);
  thread.records.push_back(Record::of(record));
  thread.totals.busy_ns += end_ns - start_ns;
  ++thread.totals.tasks;
}

void SimulationTrace::divided(const protocol::Task& task, const TaskKind& kind,
                              std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  if (divided_ == 0) {
    divided_ = trace_.threads.size();
    ThreadRecords row;
    row.name = std::string(trace::divided_row);
    row.sort_order = trace::divided_row_order;
    trace_.threads.push_back(std::move(row));
  }
  trace::TaskRecord record = record_of(task, kind.kernel, start_ns, end_ns);
  record.access_count = task.operand_count;
  record.is_divided = 1;
  trace_.threads[divided_].records.push_back(Record::of(record));
  add_accesses(trace_.threads[divided_], task);
}

void SimulationTrace::worker_ran(std::int32_t worker, const protocol::Task& task,
                                 const TaskKind& kind, std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  ran(trace_.threads[1 + static_cast<std::size_t>(worker)], task, kind, start_ns, end_ns);
}

void SimulationTrace::ready(std::int32_t worker, std::size_t count, std::int64_t time_ns) {
  if (enabled_) count_ready(1 + static_cast<std::size_t>(worker), host_place, count, time_ns);
}

void SimulationTrace::device_ready(std::int32_t device, std::size_t count, std::int64_t time_ns) {
  if (!enabled_) return;
  count_ready(first_device_ + static_cast<std::size_t>(device), PlaceId{device + 1}, count,
              time_ns);
}

void SimulationTrace::count_ready(std::size_t thread, PlaceId place, std::size_t count,
                                  std::int64_t time_ns) {
  trace::CounterRecord record;
  record.name = name(std::string(trace::ready_tasks_name));
  record.place = place;
  record.time_ns = time_ns;
  record.value = static_cast<std::int64_t>(count);
  trace_.threads[thread].records.push_back(Record::of(record));
}

void SimulationTrace::worker_waited(std::int32_t worker, std::int64_t start_ns,
                                    std::int64_t end_ns) {
  waited(1 + static_cast<std::size_t>(worker), trace::WaitCause::no_task, start_ns, end_ns);
}

void SimulationTrace::device_ran(std::int32_t device, std::int32_t stream,
                                 const protocol::Task& task, const TaskKind& kind,
                                 std::int64_t start_ns, std::int64_t end_ns) {
  if (!enabled_) return;
  ran(trace_.threads[first_device_ + static_cast<std::size_t>(device)], task, kind, start_ns,
      end_ns, static_cast<std::uint8_t>(std::min(stream + 1, 255)));
}

void SimulationTrace::copied(const protocol::CopyAction& copy, trace::CopyReason reason,
                             std::uint64_t bytes, std::int64_t posted_ns, std::int64_t start_ns,
                             std::int64_t end_ns) {
  if (!enabled_) return;
  trace::CopyRecord record;
  record.reason = reason;
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
  record.place = trace::number_of(action.place);
  record.job = action.job.value();
  record.tile = {action.tile.matrix.value(), action.tile.index};
  record.version = action.number;
  record.peer = peer;
  if constexpr (requires { action.passed_on; }) record.is_passed_on = action.passed_on ? 1 : 0;
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

void SimulationTrace::generated(std::int32_t job, std::uint64_t order, std::int64_t time_ns) {
  if (!enabled_) return;
  trace::CounterRecord record;
  record.name = name(trace::generated_name(job));
  record.time_ns = time_ns;
  record.value = static_cast<std::int64_t>(order);
  trace_.threads[generation_].records.push_back(Record::of(record));
}

void SimulationTrace::generation_waited(trace::WaitCause cause, std::int64_t start_ns,
                                        std::int64_t end_ns) {
  waited(generation_, cause, start_ns, end_ns);
}

void SimulationTrace::progress_waited(std::int64_t start_ns, std::int64_t end_ns) {
  if (progress_ > 0) waited(progress_, trace::WaitCause::message, start_ns, end_ns);
}

void SimulationTrace::waited(std::size_t thread, trace::WaitCause cause, std::int64_t start_ns,
                             std::int64_t end_ns) {
  if (!enabled_ || end_ns <= start_ns) return;
  trace::WaitRecord record;
  record.cause = cause;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  trace_.threads[thread].records.push_back(Record::of(record));
  trace_.threads[thread].totals.waiting_ns += end_ns - start_ns;
}

trace::NodeTrace SimulationTrace::take() {
  return std::exchange(trace_, {});
}

}  // namespace heddle::replay
