#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Why a thread that runs tasks ran none. Of the time before a task, each part goes to what was
/// missing last: first the tasks before it, then the task itself, as far as it was not generated
/// when these were over, then its data, then tasks of its node that used what it was to write over,
/// then nothing that the trace knows.
enum class IdleCause : std::uint8_t {
  task_here,   ///< a task before it, on the same node, was not over, or used what it writes over
  task_there,  ///< likewise, on another node
  window,      ///< it was not generated: the window was full
  generation,  ///< it was not generated: generation had not come to it
  message,     ///< its data was on the way from another node
  copy,        ///< its data was on the way from another place of the node, or back to this one
  runtime,     ///< all was there: scheduling, or the choice of another task
  end,         ///< it ran no task any more
  unknown      ///< nothing more of it was recorded, or could be read, though there may have been
};
inline constexpr std::size_t idle_cause_count = 9;
/// "task here", ...
[[nodiscard]] const char* name(IdleCause cause);

/// A task that others waited for.
struct WaitedFor {
  TaskId task;
  std::int64_t ns = 0;  ///< of idle time, added up
};

/// Where the time of one thread went, or of a stream; adds up to the span.
struct ThreadTime {
  ThreadId thread;
  std::int32_t stream = -1;  ///< of a device; -1: the thread itself
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;  ///< at least one task ran, of whichever job
  std::array<std::int64_t, idle_cause_count> idle_ns{};
  std::vector<WaitedFor> waited_for{};  ///< all of task_here and task_there, the longest first

  [[nodiscard]] std::int64_t idle() const;
};

struct Idleness {
  std::vector<ThreadTime> threads;  ///< those that run tasks: workers, devices
  /// Of devices, those that ran a task. Where it is not recorded which, in older traces: as few
  /// as can have run them, each task on the one that was free last.
  std::vector<ThreadTime> streams;
};

/// A part of a thread's idle time; never empty.
struct IdlePart {
  ThreadId thread;
  IdleCause cause = IdleCause::runtime;
  Interval time;
};

/// Within `span`: what they waited for follows from the graph's tasks, from when these were
/// generated, and from messages and copies. `parts`, if not null, gets what the idle times of
/// threads are made of, thread by thread in order.
[[nodiscard]] Idleness idleness_of(const RunTrace& run, const Graph& graph, Interval span,
                                   std::vector<IdlePart>* parts = nullptr);

/// The same task's times added up, the longest first.
[[nodiscard]] std::vector<WaitedFor> added_up(std::vector<WaitedFor> waits);

/// Where the time of a thread went that runs no tasks; adds up to the span.
struct ServiceTime {
  ThreadId thread;
  std::int64_t busy_ns = 0;  ///< between its waits
  std::array<std::int64_t, trace::wait_cause_count> waiting_ns{};
  /// Before its first record and behind its last one, and all of it where it keeps no waits.
  std::int64_t unknown_ns = 0;
};
/// Of generation, copy and mpi.
[[nodiscard]] std::vector<ServiceTime> service_times(const RunTrace& run, Interval span);

/// How much of the time in which data was on the way the workers of its node (and devices) ran
/// tasks: 1: all of it is hidden. Nothing travelled: 1.
struct Overlap {
  double messages = 1;
  double copies = 1;
};
[[nodiscard]] Overlap overlap_of(const RunTrace& run, Interval span);

}  // namespace heddle::replay
