#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/trace/recorder.hpp"

/// From what the threads know to what the trace keeps.
namespace heddle {

inline void record_task(trace::ThreadTrace& trace, const protocol::Task& task,
                        std::int64_t start_ns, std::int64_t end_ns) {
  const auto& kernel = *static_cast<const Kernel*>(task.work.kernel);
  const protocol::TileId main = task.operands[0].tile;
  trace.task({.kernel = trace.kernel_name(&kernel, kernel.name),
              .job = task.job->id.value(),
              .place = task.place,
              .order = task.order,
              .start_ns = start_ns,
              .end_ns = end_ns,
              .tile = {main.matrix.value(), main.index},
              .priority = task.priority},
             task.operand_count, [&](std::size_t i) {
               const protocol::Operand& operand = task.operands[i];
               trace::TileAccess access;
               access.mode = static_cast<trace::AccessMode>(operand.mode);
               access.tile = {operand.tile.matrix.value(), operand.tile.index};
               access.version = operand.version;
               return access;
             });
}

}  // namespace heddle
