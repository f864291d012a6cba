#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/bounds.hpp"
#include "replay/graph.hpp"
#include "replay/idleness.hpp"
#include "replay/reader_figures.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Durations of the tasks of one kernel on one kind of thread.
struct KernelFigures {
  std::string kernel;
  Role role = Role::worker;
  std::int64_t count = 0;
  double total_s = 0;
  double median_us = 0;
  double low_us = 0;   ///< 5th percentile
  double high_us = 0;  ///< 95th percentile
  double most_us = 0;
  /// Longer than the third quartile by more than 3 interquartile ranges.
  std::int64_t outliers = 0;
};

/// A part of a path through the run.
struct PathPart {
  std::string what;  ///< a kernel, or the cause of a gap
  std::int64_t count = 0;
  double seconds = 0;
};

/// Number of awaited tasks kept per thread, and in all.
inline constexpr std::size_t waited_for_thread_max = 5;
inline constexpr std::size_t waited_for_max = 20;

struct TransferFigures {
  std::int64_t count = 0;
  double bytes = 0;
  double seconds = 0;  ///< total
  double hidden = 1;   ///< fraction during which the node computed (Overlap)
};

/// What limited one job of a run.
struct Analysis {
  std::int32_t job = -1;
  Interval span;
  std::int64_t tasks = 0;
  std::int64_t dependencies = 0;
  std::vector<ThreadTime> threads;     ///< threads that run tasks, each with its longest waits
  std::vector<ThreadTime> streams;     ///< of devices
  std::vector<ServiceTime> services;   ///< the other threads
  std::vector<WaitedFor> waited_for;   ///< longest waits of all threads
  std::vector<KernelFigures> kernels;  ///< longest total first
  TransferFigures messages;
  TransferFigures copies;
  ReaderFigures readers;
  Bounds bounds;
  std::vector<PathPart> critical_path;  ///< by kernel, longest first
  std::vector<TaskId> path;             ///< its tasks in order
  /// The chain of tasks that led to the last task: each preceded by the one that ended last among
  /// its predecessors and the previous task of its thread. Gaps by cause.
  std::vector<PathPart> chain;

  [[nodiscard]] double seconds() const { return static_cast<double>(span.ns()) * 1e-9; }
  /// Fraction over all threads that run tasks.
  [[nodiscard]] double busy_share() const;
};

/// The job that the run's report is about, otherwise the job with the most busy time; nothing
/// without tasks.
[[nodiscard]] std::optional<std::int32_t> main_job(const RunTrace& run);

/// Throws Error(usage) if the run has no tasks of that job.
[[nodiscard]] Analysis analyze(const RunTrace& run, std::int32_t job);

}  // namespace heddle::replay
