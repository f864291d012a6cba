#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Lower bounds on the duration of any schedule of a job's tasks. A worker runs one task at a time.
/// Tasks that overlap on a device share its time equally: 1/k at each moment with k tasks; the
/// shares add up to the device's busy time.
struct Bounds {
  /// All workers and devices always busy, each kernel where it is best: tasks of a kernel that ran
  /// on both kinds may run on either, with its mean time there (area_bound()).
  double area_s = 0;
  /// Busiest team if tasks stay on their node's workers or their device.
  double placed_s = 0;
  /// Longest chain of dependent tasks with their durations.
  double critical_path_s = 0;
  /// Combines `placed_s` and dependencies; at least as large as each of the others.
  double mixed_s = 0;

  [[nodiscard]] double seconds() const { return mixed_s; }
};

/// `path`, `heads` and `tails`: of the graph.
[[nodiscard]] Bounds bounds_of(const RunTrace& run, const Graph& graph,
                               std::span<const TaskId> path, std::span<const std::int64_t> heads,
                               std::span<const std::int64_t> tails);

/// Tasks of a kernel and their mean time on each kind of thread; empty: may not run there. At least
/// one is set.
struct KernelWork {
  double tasks = 0;
  std::optional<double> worker_s{};
  std::optional<double> device_s{};
};

/// The least time in which this many workers and devices, always busy, complete divisible tasks.
/// Each kernel needs a kind that may run it and exists.
[[nodiscard]] double area_bound(std::span<const KernelWork> kernels, std::int64_t workers,
                                std::int64_t devices);

}  // namespace heddle::replay
