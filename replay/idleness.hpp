#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Why a thread that runs tasks was idle. Each part of the time before a task is assigned to what
/// was missing last, in the order: its predecessors, its generation, its data, users of the tile
/// that it overwrites, the runtime.
enum class IdleCause : std::uint8_t {
  task_here,   ///< a predecessor on the same node was running, or used what it overwrites
  task_there,  ///< a predecessor on another node was running
  window,      ///< not generated: the window was full
  generation,  ///< not generated yet
  message,     ///< its data was in transfer from another node
  copy,        ///< its data was in transfer from another place of the node, or back
  runtime,     ///< all was present: scheduling, or another task was chosen
  end,         ///< after its last task
  unknown      ///< no records, or not readable
};
inline constexpr std::size_t idle_cause_count = 9;
/// "task here", ...
[[nodiscard]] const char* name(IdleCause cause);

/// A task that others waited for.
struct WaitedFor {
  TaskId task;
  std::int64_t ns = 0;  ///< total idle time
};

/// The time of one thread or stream by use; adds up to the span.
struct ThreadTime {
  ThreadId thread;
  std::int32_t stream = -1;  ///< of a device; -1: the thread itself
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;  ///< at least one task of any job ran
  std::array<std::int64_t, idle_cause_count> idle_ns{};
  std::vector<WaitedFor> waited_for{};  ///< task_here and task_there, longest first

  [[nodiscard]] std::int64_t idle() const;
};

struct Idleness {
  std::vector<ThreadTime> threads;  ///< those that run tasks: workers, devices
  /// Streams of devices that ran a task. In older traces without stream numbers: a minimal number
  /// of streams, each task on the one that was free last.
  std::vector<ThreadTime> streams;
};

/// A part of a thread's idle time; not empty.
struct IdlePart {
  ThreadId thread;
  IdleCause cause = IdleCause::runtime;
  Interval time;
};

/// Idle time within `span`, from the graph's dependencies, the generation, and messages and copies.
/// `parts` (or null) receives the idle parts of threads, thread by thread in order.
[[nodiscard]] Idleness idleness_of(const RunTrace& run, const Graph& graph, Interval span,
                                   std::vector<IdlePart>* parts = nullptr);

/// Sums the times of each task, longest first.
[[nodiscard]] std::vector<WaitedFor> added_up(std::vector<WaitedFor> waits);

/// The time of a thread that runs no tasks; adds up to the span.
struct ServiceTime {
  ThreadId thread;
  std::int64_t busy_ns = 0;  ///< between its waits
  std::array<std::int64_t, trace::wait_cause_count> waiting_ns{};
  /// Before its first record and after its last; everything if it records no waits.
  std::int64_t unknown_ns = 0;
};
/// Generation, copy and MPI threads.
[[nodiscard]] std::vector<ServiceTime> service_times(const RunTrace& run, Interval span);

/// Fraction of the transfer time during which the node's workers and devices computed; 1: all
/// hidden, or no transfers.
struct Overlap {
  double messages = 1;
  double copies = 1;
};
[[nodiscard]] Overlap overlap_of(const RunTrace& run, Interval span);

}  // namespace heddle::replay
