#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/fine/fine_tasks.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/divided_cases.hpp"
#include "node-runtime/threads/engine_link.hpp"
#include "node-runtime/threads/insertion_batch.hpp"
#include "node-runtime/threads/job_result.hpp"
#include "node-runtime/threads/program.hpp"
#include "node-runtime/threads/user_insertion.hpp"
#include "node-runtime/trace/record.hpp"

namespace heddle {

/// One submitted job on this node, shared by the engine and the user's handle. Its pools go back
/// when it ends, or with the record of a job that was never started.
struct JobRecord {
  /// Job::reserve() and Job::start() each advance it once, in this order; `reserved` may be
  /// skipped.
  enum class Step : std::uint8_t { planned, reserved, started };

  explicit JobRecord(std::shared_ptr<EngineLink> link_in) : link(std::move(link_in)) {}
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;
  ~JobRecord();

  std::shared_ptr<EngineLink> link;
  /// Release when it is set, acquire where another thread's handle reads it.
  std::atomic<Step> step{Step::planned};
  std::atomic<bool> is_awaited{false};  ///< wait() was called; relaxed: one exchange
  std::string name;                     ///< of the spec, which goes when the job ends
  JobSpec spec;
  protocol::Job* handle = nullptr;  ///< the engine's lock guards it; null once forgotten
  protocol::JobId id;
  std::optional<InsertionBatch> batch;      ///< of a program, for the generation thread
  std::optional<UserInsertion> insertions;  ///< of a user's thread
  std::optional<TaskStream> stream;         ///< to one of the two
  Program program;
  bool waits_for_window = false;  ///< guarded by the engine's lock
  bool external = false;          ///< a user's thread inserts
  bool stream_ended = false;      ///< and has inserted all; guarded by the engine's lock
  std::optional<trace::NameId> generated_name;  ///< of the trace's counter; generation thread
  std::vector<protocol::PoolOptions> pools;     ///< by place
  std::vector<std::int32_t> blocks_minimum;     ///< by place, from the plan
  /// By place: matrices whose tiles take these blocks.
  std::vector<std::vector<protocol::MatrixId>> takers;
  /// The first tiles that take the host's blocks, from the plan; a user's stream has none.
  std::vector<protocol::TileId> host_takes;
  std::optional<DividedCases> divided_cases;  ///< likewise; of a job with fine tasks
  std::int64_t tasks_planned = 0;
  /// Priorities of this node's tasks in the order of their insertion; they replace the program's.
  /// Empty: the program's priorities count.
  std::vector<std::int16_t> priorities;
  std::size_t tasks_inserted = 0;  ///< own ones, with `priorities`; the generation thread's
  protocol::JobCounters counters;

  /// Kernels are skipped from now on. Relaxed: a task that does not see it yet runs for nothing, no
  /// more.
  std::atomic<bool> cancelled{false};
  std::atomic<std::int64_t> tasks_finished{0};
  std::atomic<std::int64_t> flops_done{0};

  std::mutex mutex;
  std::condition_variable ended;
  bool is_done = false;  ///< on all nodes, result agreed
  JobResult result;
};

/// A task's computation as the protocol carries it.
[[nodiscard]] inline protocol::Work work_of(const Kernel& kernel, const TaskOptions& options) {
  return {&kernel, std::bit_cast<std::array<std::uint64_t, 4>>(options.parameters),
          options.info_base};
}
[[nodiscard]] inline const Kernel& kernel_of(const protocol::Task& task) {
  return *static_cast<const Kernel*>(task.work.kernel);
}
[[nodiscard]] inline KernelParameters parameters_of(const protocol::Task& task) {
  return std::bit_cast<KernelParameters>(task.work.parameters);
}
[[nodiscard]] inline JobRecord& job_of(const protocol::Task& task) {
  return *static_cast<JobRecord*>(task.job->context);
}

/// Rows and columns of the parts that CPU workers divide a task into: its kernel has a fine-grain
/// form, and its job wants it. 0: they run it whole. Whether there is more than one part, the
/// shapes of its tiles say.
[[nodiscard]] inline std::int64_t fine_parts_of(const protocol::Task& task) {
  const bool has_fine_form =
      kernel_of(task).fine != nullptr && task.operand_count <= FineTask::accesses_max;
  return has_fine_form ? job_of(task).spec.fine : 0;
}

}  // namespace heddle
