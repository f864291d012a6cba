#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/record.hpp"

/// A recorded run: all nodes' records by kind, on node 0's clock.
namespace heddle::replay {

/// A thread of a run.
using ThreadId = Index<struct RunThreadTag, std::int32_t>;
/// A task of a run, by position of its record; tasks of a thread are consecutive.
using TaskId = Index<struct RunTaskTag, std::int32_t>;

/// Purpose of a thread, from the name of its row.
enum class Role : std::uint8_t { generation, worker, device, copy, messages, other };
inline constexpr std::size_t role_count = 6;
[[nodiscard]] const char* name(Role role);

struct Interval {
  std::int64_t start_ns = 0;  ///< on node 0's clock
  std::int64_t end_ns = 0;
  [[nodiscard]] std::int64_t ns() const { return end_ns - start_ns; }
};

struct Thread {
  NodeId node;
  std::string name;
  Role role = Role::other;
  int sort_order = 0;
  std::uint64_t dropped = 0;    ///< records that did not fit
  bool is_cut = false;          ///< its file was damaged: records may be missing after the last
  TaskId first_task;            ///< first of its tasks
  TaskId last_task;             ///< end of its tasks
  std::int64_t first_wait = 0;  ///< first of its waits
  std::int64_t last_wait = 0;
  /// From the start of its first record to the end of its last; nothing without records.
  std::optional<Interval> recorded{};
};

/// A divided task (000 section 3.2) appears as its fine tasks, which ran at the workers, and as
/// itself: an empty interval at the end of the last of them.
struct Task {
  ThreadId thread;
  trace::NameId kernel;  ///< id of the run's names; for a fine task "fine gsmm"
  std::int32_t job = -1;
  PlaceId place;
  std::uint64_t order = 0;  ///< in the job's sequential program, as its node walked it
  Interval time;
  trace::Tile tile;  ///< the main output
  std::int32_t priority = 0;
  std::uint32_t fine = 0;  ///< fine task: its number in the divided one, from 1
  /// Likewise of its last predecessor; 0: none.
  std::uint32_t after = trace::unknown_number;
  std::uint8_t stream = 0;  ///< stream of the device that ran it, from 1; 0: none or unknown
  std::int64_t first_access = 0;
  std::int32_t access_count = 0;
  std::int64_t divided_ns = not_divided;  ///< time of the division

  static constexpr std::int64_t not_divided = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] bool is_divided() const { return divided_ns != not_divided; }
};

struct Access {
  trace::Tile tile;
  Version version;  ///< read or replaced
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

/// From the start of the send, if its trace is present (receives are usually posted long before),
/// to the end at the receiver.
struct Message {
  std::int32_t job = -1;
  trace::Tile tile;
  Version version;
  NodeId from;
  NodeId to;
  trace::PathNumber path = 0;
  std::uint64_t bytes = 0;
  Interval time;
  std::int64_t awaited_ns = 0;  ///< since when the receiver had a block
  /// Of its nodes, where the traces tell them.
  std::optional<PlaceId> from_place{};
  std::optional<PlaceId> to_place{};
  bool is_passed_on = false;  ///< the sender had received it itself, and is not its home
};

/// Progress of a node's generation in a job: tasks up to `order` exist.
struct Generated {
  NodeId node;
  std::int32_t job = -1;
  std::uint64_t order = 0;
  std::int64_t time_ns = 0;
};

/// An operation of a group on one of its members. `group` and `number` are the same on all.
struct Collective {
  NodeId node;
  trace::NameId operation;  ///< ids of the run's names
  trace::NameId algorithm;
  std::int32_t group = -1;
  std::int64_t number = 0;
  std::int32_t ranks = 0;
  std::uint64_t bytes = 0;  ///< of the member's own elements
  bool is_on_stream = false;
  Interval time;
};

/// A change of a value.
struct Counter {
  NodeId node;
  trace::NameId name;  ///< id of the run's names
  PlaceId place;
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
};

struct RunTrace {
  std::string source;  ///< folder or file
  std::int32_t node_count = 1;
  std::vector<NodeId> nodes;              ///< nodes whose files are present, ascending
  std::string about = "null";             ///< JSON: the run's report, if any
  std::string configuration = "null";     ///< JSON: configuration of node 0
  std::string where = "null";             ///< JSON: machine description of the first node
  std::map<NodeId, std::string> hosts{};  ///< name of each node's host, where its file says it
  std::vector<std::string> names;
  std::vector<Thread> threads;  ///< by node and order of rows
  std::vector<Task> tasks;
  std::vector<Access> accesses;
  std::vector<Wait> waits;  ///< by thread in order
  std::vector<Copy> copies;
  std::vector<Message> messages;
  std::vector<Collective> collectives{};
  std::vector<Counter> counters;                     ///< by thread in order
  std::vector<Generated> generated;                  ///< by node in order
  std::vector<trace::MatrixDescription> matrices{};  ///< by number
  std::vector<std::string> damages;  ///< what could not be read and why; a sentence each

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
  /// Kernel with row and column of its main output: "gsmm (5, 3)".
  [[nodiscard]] std::string label_of(const Task& task) const;
  /// From the first task's start to the last one's end; nothing without tasks.
  [[nodiscard]] std::optional<Interval> makespan() const;
};

/// Reads a run's folder (trace/run_folder.hpp), or one node's file. Truncated, damaged or missing
/// parts are described in `damages`. Throws Error(usage) if nothing can be read, or the files are
/// of different runs.
[[nodiscard]] RunTrace load_run(const std::filesystem::path& path);

/// The traces of a run.
struct SalvagedRun {
  std::vector<trace::NodeTrace> traces;  ///< by node
  std::vector<std::string> damages;      ///< as in RunTrace
};
/// Reads the same as load_run(); for a single file no other node counts as missing.
[[nodiscard]] SalvagedRun salvage_run(const std::filesystem::path& path);

/// As load_run() for traces in memory, of different nodes of one run.
[[nodiscard]] RunTrace make_run(const std::string& source,
                                const std::vector<trace::NodeTrace>& traces);

}  // namespace heddle::replay
