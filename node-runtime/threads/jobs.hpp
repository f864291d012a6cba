#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "node-runtime/threads/job_memory.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {

class Engine;

/// The way of a job from its program to its result, for the node and the handles: planned, given
/// memory, begun, waited for. What happens to it meanwhile is the engine's.
///
/// Thread: one at a time makes and begins jobs, in the same order on all nodes; any thread waits.
class Jobs {
 public:
  explicit Jobs(Engine& engine);

  /// Plans a job without beginning it: walks its program once.
  [[nodiscard]] std::shared_ptr<JobRecord> prepare(JobSpec spec);
  /// Takes a prepared job's pools, with the pages of what it is going to write on the host, and
  /// finds out what is known of its tasks beforehand (their priorities by the longest path, the
  /// fine-grain forms of those that are divided), before start() does; given back with a job that
  /// is never started. Throws as start() does, and when the job has its memory.
  void reserve(JobRecord& job);
  /// Begins a prepared job. Throws Error(usage) when it was started before, with the numbers when
  /// its pools do not fit, or when its tasks are too many for priorities by the longest path.
  void start(const std::shared_ptr<JobRecord>& job);
  /// A job whose tasks a user's thread inserts; ends with Engine::end_stream.
  [[nodiscard]] std::shared_ptr<JobRecord> open_stream(JobSpec spec, std::int32_t blocks_minimum);
  /// Blocks until the job has ended on all nodes; throws what made the node fail. The job was
  /// started. This thread is the node's watchdog meanwhile.
  void wait(JobRecord& job);
  /// Blocks until all jobs that have begun have ended, those that nobody waits for too. Throws as
  /// wait() does, and Error(usage) when a stream may still insert tasks.
  void wait_for_all();
  /// What wait() is to call when tasks run and none has ended for `watchdog_seconds`. Nobody waits.
  void on_quiet(std::function<void(const std::string&)> tell) { tell_quiet_ = std::move(tell); }

  [[nodiscard]] JobMemory& memory() { return memory_; }

 private:
  void look_ahead(JobRecord& job);
  void reserve_or_fail(JobRecord& job);
  void begin(const std::shared_ptr<JobRecord>& job);
  [[nodiscard]] bool fail_stuck_kernel(std::int64_t now_ns);
  void tell_that_quiet();
  void fail_standing();

  Engine& engine_;
  JobMemory memory_;
  std::function<void(const std::string&)> tell_quiet_;
  std::mutex watch_mutex_;  ///< of the kernel watch and the next one
  double flops_per_second_ = 0;
};

}  // namespace heddle
