#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/trace/recorder.hpp"

/// From what the threads know to what the trace keeps.
namespace heddle {

inline trace::TaskRecord task_record(const protocol::Task& task, trace::NameId kernel,
                                     std::int64_t start_ns, std::int64_t end_ns) {
  const protocol::TileId main = task.operands[0].tile;
  return {.kernel = kernel,
          .job = task.job->id.value(),
          .place = task.runs_at(),
          .order = task.order,
          .start_ns = start_ns,
          .end_ns = end_ns,
          .tile = {main.matrix.value(), main.index},
          .priority = task.priority};
}

/// How a task was run, where not as a whole by the thread itself.
struct TaskRun {
  bool is_divided = false;  ///< fine tasks did its work
  std::uint8_t stream = 0;  ///< of a device, from 1
};

/// A trace takes modes by their numbers.
static_assert(static_cast<int>(trace::AccessMode::read) ==
                  static_cast<int>(protocol::AccessMode::read) &&
              static_cast<int>(trace::AccessMode::write) ==
                  static_cast<int>(protocol::AccessMode::write) &&
              static_cast<int>(trace::AccessMode::read_write) ==
                  static_cast<int>(protocol::AccessMode::read_write));

inline void record_task(trace::ThreadTrace& trace, const protocol::Task& task,
                        std::int64_t start_ns, std::int64_t end_ns, const TaskRun& run = {}) {
  const auto& kernel = *static_cast<const Kernel*>(task.work.kernel);
  trace::TaskRecord record =
      task_record(task, trace.kernel_name(&kernel, kernel.name), start_ns, end_ns);
  record.is_divided = run.is_divided ? 1 : 0;
  record.stream = run.stream;
  trace.task(record, task.operand_count, [&](std::size_t i) {
    const protocol::Operand& operand = task.operands[i];
    trace::TileAccess access;
    access.mode = static_cast<trace::AccessMode>(operand.mode);
    access.tile = {operand.tile.matrix.value(), operand.tile.index};
    access.version = operand.version;
    return access;
  });
}

inline void record_fine_task(trace::ThreadTrace& trace, const FineWork& work, std::int64_t start_ns,
                             std::int64_t end_ns) {
  const Kernel& kernel = *work.task().kernel;
  trace::TaskRecord record =
      task_record(*work.of->task, trace.kernel_name(&kernel, kernel.name), start_ns, end_ns);
  record.fine = static_cast<std::uint32_t>(work.number) + 1;
  record.after = static_cast<std::uint32_t>(work.of->last_before(work.number) + 1);
  trace.task(record, 0, [](std::size_t /*access*/) { return trace::TileAccess{}; });
}

}  // namespace heddle
