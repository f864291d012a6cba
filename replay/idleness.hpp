#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::replay {

/// Why a thread that runs tasks ran none. Of the time before a task, each part goes to what was
/// missing last: first the tasks before it, then its data, then nothing that the trace knows.
enum class IdleCause : std::uint8_t {
  task_here,   ///< a task before it, on the same node, was not over
  task_there,  ///< likewise, on another node
  message,     ///< its data was on the way from another node
  copy,        ///< its data was on the way from another place of the node
  runtime,     ///< all was there: generation, scheduling, or the choice of another task
  end          ///< it ran no task any more
};
inline constexpr std::size_t idle_cause_count = 6;
/// "task here", ...
[[nodiscard]] const char* name(IdleCause cause);

/// Where the time of one thread went; adds up to the span.
struct ThreadTime {
  ThreadId thread;
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;  ///< at least one task ran, of whichever job
  std::array<std::int64_t, idle_cause_count> idle_ns{};

  [[nodiscard]] std::int64_t idle() const;
};

/// Of the threads that run tasks (workers, devices), within `span`: what they waited for follows
/// from the graph's tasks, the messages and the copies.
[[nodiscard]] std::vector<ThreadTime> thread_times(const RunTrace& run, const Graph& graph,
                                                   Interval span);

/// How much of the time in which data was on the way the workers of its node (and devices) ran
/// tasks: 1: all of it is hidden. Nothing travelled: 1.
struct Overlap {
  double messages = 1;
  double copies = 1;
};
[[nodiscard]] Overlap overlap_of(const RunTrace& run, Interval span);

}  // namespace heddle::replay
