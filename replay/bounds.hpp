#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// What no schedule of a job's tasks is shorter than. A worker runs one task at a time. A device
/// runs several, so a task there counts with its share of the device's time: of each moment in
/// which k tasks ran, one k-th. The shares add up to the time in which the device was busy at all.
struct Bounds {
  /// All workers and devices always busy, and each kernel where it is best: the tasks of one that
  /// ran on both kinds may go to either, and take there what they took on average (area_bound()).
  double area_s = 0;
  /// Tasks stay on their node, with its workers or on their device: the busiest of these.
  double placed_s = 0;
  /// Tasks that wait for each other, each as long as it was.
  double critical_path_s = 0;
  /// Both: tasks stay where they were, as in `placed_s`, and wait for each other. At least as much
  /// as each of the others.
  double mixed_s = 0;

  [[nodiscard]] double seconds() const { return mixed_s; }
};

/// `path`, `heads` and `tails` are the graph's.
[[nodiscard]] Bounds bounds_of(const RunTrace& run, const Graph& graph,
                               std::span<const TaskId> path, std::span<const std::int64_t> heads,
                               std::span<const std::int64_t> tails);

/// The tasks of a kernel, and what one takes on average where it ran; nothing: it did not run
/// there, and may not. One of both is there.
struct KernelWork {
  double tasks = 0;
  std::optional<double> worker_s{};
  std::optional<double> device_s{};
};

/// The least time in which so many workers and devices, always busy, get through these tasks, which
/// may be cut into parts. What is there has a kind that may run it: there are workers or no kernels
/// for them, likewise devices.
[[nodiscard]] double area_bound(std::span<const KernelWork> kernels, std::int64_t workers,
                                std::int64_t devices);

}  // namespace heddle::replay
