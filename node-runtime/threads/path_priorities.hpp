#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "node-runtime/scheduling/planned_graph.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// What tasks are weighed by.
struct TaskCosts {
  /// Seconds of a kernel on a worker, or on a device.
  std::function<double(const KernelCase& what, bool on_device)> kernel;
  /// Seconds to transfer `bytes` from one place or node to another; empty: transfers take no time.
  std::function<double(Location from, Location to, std::uint64_t bytes)> transfer;
};

/// Tasks of a job whose graph is kept to find their priorities: some hundred megabytes.
inline constexpr std::int64_t path_tasks_max = 4'000'000;

/// Priorities by the measured critical path: of `node`'s tasks in the order in which it inserts
/// them, the longest way to the job's end, by kernels' times and transfers (HEFT's upward rank), as
/// a rank from 0 to levels - 1. Walks the program of every node, so all that it needs is known
/// beforehand and no node asks another one. Throws Error(usage) for a job of more than
/// path_tasks_max tasks. Pure but for the program; any thread.
[[nodiscard]] std::vector<std::int16_t> path_priorities(
    const std::function<Program(TaskStream&)>& program, NodeId node, std::int32_t nodes,
    const std::function<OperandShape(protocol::TileId)>& shape_of, const TaskCosts& costs,
    std::int32_t levels);

}  // namespace heddle
