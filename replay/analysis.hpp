#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/bounds.hpp"
#include "replay/graph.hpp"
#include "replay/idleness.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// What tasks of one kernel took, where one kind of thread ran them.
struct KernelFigures {
  std::string kernel;
  Role role = Role::worker;
  std::int64_t count = 0;
  double total_s = 0;
  double median_us = 0;
  double low_us = 0;   ///< 5 of 100 were shorter
  double high_us = 0;  ///< 5 of 100 were longer
  double most_us = 0;
  /// Longer than the third quartile by more than three times the distance between the quartiles.
  std::int64_t outliers = 0;
};

/// Part of a path through the run.
struct PathPart {
  std::string what;  ///< a kernel, or why nothing of the path ran
  std::int64_t count = 0;
  double seconds = 0;
};

/// How many tasks that others waited for are kept of a thread, and of all.
inline constexpr std::size_t waited_for_thread_max = 5;
inline constexpr std::size_t waited_for_max = 20;

struct TransferFigures {
  std::int64_t count = 0;
  double bytes = 0;
  double seconds = 0;  ///< added up
  double hidden = 1;   ///< share of that time in which its node computed (Overlap)
};

/// What bounded one job of a run.
struct Analysis {
  std::int32_t job = -1;
  Interval span;
  std::int64_t tasks = 0;
  std::int64_t dependencies = 0;
  std::vector<ThreadTime> threads;     ///< those that run tasks; each with its longest waits alone
  std::vector<ThreadTime> streams;     ///< of devices, likewise
  std::vector<ServiceTime> services;   ///< the other threads
  std::vector<WaitedFor> waited_for;   ///< what all threads waited for, the longest alone
  std::vector<KernelFigures> kernels;  ///< the longest in all first
  TransferFigures messages;
  TransferFigures copies;
  Bounds bounds;
  std::vector<PathPart> critical_path;  ///< by kernel, the longest first
  std::vector<TaskId> path;             ///< the same, task by task in order
  /// The chain that led to the last task: each time to what was over last before, a task that it
  /// waited for or the one before it on its thread; with the time in between by its cause.
  std::vector<PathPart> chain;

  [[nodiscard]] double seconds() const { return static_cast<double>(span.ns()) * 1e-9; }
  /// Of all threads that run tasks.
  [[nodiscard]] double busy_share() const;
};

/// The one that the run says it was about, otherwise the job that kept it busy for longest; nothing
/// where no task ran.
[[nodiscard]] std::optional<std::int32_t> main_job(const RunTrace& run);

/// Throws Error(usage) when the run has no tasks of that job.
[[nodiscard]] Analysis analyze(const RunTrace& run, std::int32_t job);

}  // namespace heddle::replay
