#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/record.hpp"

/// A run that was recorded, as one thing: all nodes' records by kind, on node 0's clock.
namespace heddle::replay {

/// A thread of a run.
using ThreadId = Index<struct RunThreadTag, std::int32_t>;
/// A task of a run, by the place of its record: those of one thread follow each other.
using TaskId = Index<struct RunTaskTag, std::int32_t>;

/// What threads are for; as the names of their rows say.
enum class Role : std::uint8_t { generation, worker, device, copy, messages, other };
inline constexpr std::size_t role_count = 6;
[[nodiscard]] const char* name(Role role);

struct Interval {
  std::int64_t start_ns = 0;  ///< of node 0's clock
  std::int64_t end_ns = 0;
  [[nodiscard]] std::int64_t ns() const { return end_ns - start_ns; }
};

struct Thread {
  NodeId node;
  std::string name;
  Role role = Role::other;
  int sort_order = 0;
  std::uint64_t dropped = 0;    ///< records that found no room
  bool is_cut = false;          ///< more may have come after its last record: its file was damaged
  TaskId first_task;            ///< its tasks are those from here
  TaskId last_task;             ///< up to this one, without it
  std::int64_t first_wait = 0;  ///< likewise its waits
  std::int64_t last_wait = 0;
  /// From its first record's begin to the end of its last one; nothing where it has none.
  std::optional<Interval> recorded{};
};

/// A task that was divided (000 section 3.2) is there as its fine tasks, which ran at the workers,
/// and as itself: something of no length at the end of the last of them, for whoever waits for it.
struct Task {
  ThreadId thread;
  trace::NameId kernel;  ///< of the run's names; of a fine task "fine gsmm"
  std::int32_t job = -1;
  PlaceId place;
  std::uint64_t order = 0;  ///< in the job's sequential program, as its node walked it
  Interval time;
  trace::Tile tile;  ///< the main output
  std::int32_t priority = 0;
  std::uint32_t fine = 0;  ///< of a fine task: its number in the divided one, from 1
  /// Likewise the one that it waited for last; 0: for none.
  std::uint32_t after = trace::unknown_number;
  std::uint8_t stream = 0;  ///< of the device that ran it, from 1; 0: of none, or not recorded
  std::int64_t first_access = 0;
  std::int32_t access_count = 0;
  std::int64_t divided_ns = not_divided;  ///< when it was divided

  static constexpr std::int64_t not_divided = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] bool is_divided() const { return divided_ns != not_divided; }
};

struct Access {
  trace::Tile tile;
  Version version;  ///< that was read, or replaced
  trace::AccessMode mode = trace::AccessMode::read;
};

struct Wait {
  ThreadId thread;
  trace::WaitCause cause = trace::WaitCause::other;
  Interval time;
};

struct Copy {
  NodeId node;
  std::int32_t job = -1;
  trace::Tile tile;
  Version version;
  PlaceId from;
  PlaceId to;
  trace::CopyReason reason = trace::CopyReason::access;
  std::uint64_t bytes = 0;
  Interval time;
};

/// From the begin of what was sent, where its sender's trace is there (a receive is posted long
/// before as a rule), to its end at the receiver.
struct Message {
  std::int32_t job = -1;
  trace::Tile tile;
  Version version;
  NodeId from;
  NodeId to;
  trace::PathNumber path = 0;
  std::uint64_t bytes = 0;
  Interval time;
  std::int64_t awaited_ns = 0;  ///< since then its receiver had a block for it
};

/// How far a node's generation was with a job: the tasks up to `order` were there.
struct Generated {
  NodeId node;
  std::int32_t job = -1;
  std::uint64_t order = 0;
  std::int64_t time_ns = 0;
};

/// A value that changed.
struct Counter {
  NodeId node;
  trace::NameId name;  ///< of the run's names
  PlaceId place;
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
};

struct RunTrace {
  std::string source;  ///< the folder, or the file
  std::int32_t node_count = 1;
  std::vector<NodeId> nodes;           ///< those whose files are there, by number
  std::string about = "null";          ///< JSON: the run's report, where it has one
  std::string configuration = "null";  ///< JSON: as node 0 was given it, which has the report
  std::string where = "null";          ///< JSON: what the first of the nodes says of its machine
  std::vector<std::string> names;
  std::vector<Thread> threads;  ///< by node and the order of rows
  std::vector<Task> tasks;
  std::vector<Access> accesses;
  std::vector<Wait> waits;  ///< of each thread in order
  std::vector<Copy> copies;
  std::vector<Message> messages;
  std::vector<Counter> counters;                     ///< of each thread in order
  std::vector<Generated> generated;                  ///< of each node in order
  std::vector<trace::MatrixDescription> matrices{};  ///< by number
  std::vector<std::string> damages;  ///< what could not be read, and why; a sentence each

  [[nodiscard]] const Task& at(TaskId task) const {
    return tasks[static_cast<std::size_t>(task.value())];
  }
  [[nodiscard]] const Thread& at(ThreadId thread) const {
    return threads[static_cast<std::size_t>(thread.value())];
  }
  [[nodiscard]] std::span<const Access> accesses_of(const Task& task) const {
    return std::span(accesses).subspan(static_cast<std::size_t>(task.first_access),
                                       static_cast<std::size_t>(task.access_count));
  }
  [[nodiscard]] std::span<const Wait> waits_of(const Thread& thread) const {
    return std::span(waits).subspan(static_cast<std::size_t>(thread.first_wait),
                                    static_cast<std::size_t>(thread.last_wait - thread.first_wait));
  }
  [[nodiscard]] const std::string& kernel_of(const Task& task) const {
    return names[task.kernel.value()];
  }
  /// Kernel, and row and column of the tile that it writes first: "gsmm (5, 3)".
  [[nodiscard]] std::string label_of(const Task& task) const;
  /// From the first task's begin to the last one's end; nothing where there are none.
  [[nodiscard]] std::optional<Interval> makespan() const;
};

/// Reads a run's folder (trace/run_folder.hpp), or one node's file. What is cut, damaged or missing
/// is named in `damages`, and the rest is read. Throws Error(usage) when nothing can be read, or
/// the files are of different runs.
[[nodiscard]] RunTrace load_run(const std::filesystem::path& path);

/// The traces of a run as they are.
struct SalvagedRun {
  std::vector<trace::NodeTrace> traces;  ///< by node
  std::vector<std::string> damages;      ///< as RunTrace's
};
/// Reads what load_run() does; of a single file no other node is missed.
[[nodiscard]] SalvagedRun salvage_run(const std::filesystem::path& path);

/// The same as load_run() from memory. The traces are of different nodes of one run.
[[nodiscard]] RunTrace make_run(const std::string& source,
                                const std::vector<trace::NodeTrace>& traces);

}  // namespace heddle::replay
