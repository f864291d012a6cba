#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/futex.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/counters.hpp"
#include "node-runtime/threads/engine_link.hpp"
#include "node-runtime/threads/engine_options.hpp"
#include "node-runtime/threads/failure.hpp"
#include "node-runtime/threads/fine_graphs.hpp"
#include "node-runtime/threads/host_executor.hpp"
#include "node-runtime/threads/job_table.hpp"
#include "node-runtime/threads/jobs.hpp"
#include "node-runtime/threads/kernel_watch.hpp"
#include "node-runtime/threads/messenger.hpp"
#include "node-runtime/threads/scheduler.hpp"
#include "node-runtime/threads/staged_ranges.hpp"
#include "node-runtime/threads/wakes.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// What the threads of a node share: the protocol, the scheduler, the jobs and the mailboxes, under
/// one lock.
///
/// One lock, held for half a microsecond per event, on many cores for one, serves tasks from some
/// tens of microseconds up on some tens of cores (docs/decisions/003): a finished task, the tasks
/// it fires and the next one to run cost one acquisition. What follows from an event (Effects) is
/// carried out when the lock is free; docs/architecture.md lists what is still done under it. Lock
/// order: a JobRecord's mutex and the engine's lock are never held together.
///
/// The class has about 50 member functions: each is an event of one thread, takes the lock once and
/// passes the event on to Protocol, Scheduler or JobTable in a few lines. Parts of a split engine
/// would share the lock and what it guards. Events of jobs are in engine_jobs.cpp, all others in
/// engine.cpp. The threads' loops are in cpu_worker.cpp, generation.cpp, device_manager.cpp,
/// copy_thread.cpp and mpi_progress.cpp.
class Engine final : private KernelReports {
 public:
  Engine(const EngineOptions& options, TileStore& store, trace::Recorder& recorder);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] TileStore& store() { return store_; }
  [[nodiscard]] trace::Recorder& recorder() { return recorder_; }
  /// For handles, which may outlive the engine.
  [[nodiscard]] const std::shared_ptr<EngineLink>& link() const { return link_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  /// What each worker and each device runs, for the watchdog.
  [[nodiscard]] KernelWatch& kernel_watch() { return kernel_watch_; }
  [[nodiscard]] HostExecutor& executor() { return executor_; }
  [[nodiscard]] Jobs& jobs() { return jobs_; }

  Bells bells;
  StagedRanges staged_ranges;

  // ---- matrices; one thread at a time -------------------------------------------------------
  protocol::MatrixId add_matrix(TileTable table);
  /// The id of the next add_matrix call; passes over it, where this node cannot make the matrix.
  [[nodiscard]] protocol::MatrixId next_matrix();
  void skip_matrix();
  void remove_matrix(protocol::MatrixId matrix);
  [[nodiscard]] protocol::BlockRef current_block(protocol::TileId tile);

  // ---- jobs ---------------------------------------------------------------------------------
  /// Makes the fine-grain forms of a job's tasks that are divided, as far as they are new.
  void prepare_divided(const DividedCases& cases, std::int64_t fine);
  /// A job that has its memory and its program; the same order on all nodes. `fingerprint`: equal
  /// for the same job on other nodes. Throws what made the node fail, and Error(usage) when it was
  /// stopped.
  void begin(const std::shared_ptr<JobRecord>& job, std::uint64_t fingerprint);
  /// The program whose turn it is to walk on; for the generation thread.
  [[nodiscard]] JobTable::Turn next_turn();
  struct HandedOver {
    JobTable::Turn next;
    bool is_urgent = true;        ///< the workers need more of the job's tasks soon
    std::uint64_t generated = 0;  ///< statements of the program so far
  };
  /// Appends what the program of a turn has inserted in its batch, and says whether it goes on, or
  /// what it threw. Afterwards the job may have ended.
  HandedOver hand_over(JobRecord& job, bool goes_on, const std::optional<Error>& error);
  /// After hand_over(): lets threads that wait for the lock have it.
  void let_others_in() const { mutex_.let_others_in(); }
  /// Blocks a user's thread until its stream may insert: there is room, and the jobs before it are
  /// walked. Throws as begin() does.
  void wait_for_turn(JobRecord& job);
  /// A user's thread has inserted all.
  void end_stream(JobRecord& job);
  /// Whether a user's thread may still insert.
  [[nodiscard]] bool is_stream_open(const JobRecord& job);
  /// Jobs that have begun and not ended on all nodes, in the order of submission.
  [[nodiscard]] std::vector<std::shared_ptr<JobRecord>> jobs_in_flight();
  void cancel(JobRecord& job);
  /// All nodes have drained the job and agree on `verdict`.
  void job_ended(const JobVerdict& verdict);
  /// Another node cancelled the job, or found it failing.
  void cancel_from_elsewhere(const JobVerdict& verdict);
  /// What travels of a version of a tile. For the progress thread, from when it was told of the
  /// message until it has reported its end.
  [[nodiscard]] TilePart part_of(protocol::JobId job, protocol::TileId tile, Version number);
  void numerical_failure(JobRecord& job, std::int64_t info, double pivot) override;
  void kernel_threw(const protocol::Task& task, const Error& error) override;

  // ---- tasks --------------------------------------------------------------------------------
  /// For a CPU worker: FIREs the task that `finished` completes, if it does (it may be nothing),
  /// then takes what it is to do next (Scheduler::take_for_host).
  [[nodiscard]] HostWork finish_and_take(const HostWork& finished, std::int32_t worker);
  /// Divides a task that finish_and_take() has given with a place, and takes a fine task, of this
  /// or a more urgent one. What is to be run whole comes back as it was, without its place.
  [[nodiscard]] HostWork divide(const HostWork& work, std::int32_t worker,
                                trace::ThreadTrace& trace);
  /// For a device's manager: Scheduler::take_for_device.
  [[nodiscard]] protocol::Task* take_above(PlaceId place, std::int32_t above, std::size_t& left);
  /// Hands a task of a device's place to the CPU workers, because only the host has its kernel: one
  /// of them runs it on copies of its tiles. It stays taken.
  void stage(protocol::Task& task);
  /// FIREs tasks that a device has finished.
  void finish(std::span<protocol::Task* const> finished);
  void copies_finished(std::span<const protocol::CopyAction> copies);
  /// How many tasks of a place are ready, for the trace.
  void record_ready(trace::ThreadTrace& trace, PlaceId place, std::int64_t time_ns,
                    std::size_t count) const {
    trace.counter(depth_name_, place, time_ns, static_cast<std::int64_t>(count));
  }
  [[nodiscard]] std::size_t ready_hint() const { return scheduler_.ready_hint(); }
  /// For a worker that has waited and found a task. No ready task is left with sleepers and nobody
  /// on the way: a thread that makes tasks ready wakes a worker, and a worker that comes and takes
  /// one wakes others as long as there are more. A worker that comes too late for a task was
  /// preceded by others, which do.
  void wake_others() { bells.wake_workers(ready_hint()); }

  // ---- mail ---------------------------------------------------------------------------------
  [[nodiscard]] std::vector<protocol::CopyAction> take_copies();
  Outbox take_outbox();
  /// Hands events to the protocol under one lock: `events(protocol, actions)`.
  template <class Events>
  void deliver(Events&& events) {
    Effects effects;
    {
      const std::lock_guard lock(mutex_);
      events(protocol_, actions_);
      apply(effects);
      scheduler_.publish();
    }
    carry_out(effects);
  }

  // ---- the end ------------------------------------------------------------------------------
  /// The node cannot go on: remembers the first reason, wakes all waiters.
  void fail(const Error& error);
  /// Node `node` says that it has failed and why, or what it knows of a failure elsewhere.
  void fail_with(int node, const std::string& why, bool elsewhere);
  [[nodiscard]] bool failed() const { return failure_.failed(); }
  [[nodiscard]] std::optional<Error> failure() const { return failure_.reason(); }
  /// Ends all loops; no job may be running unless the node has failed.
  void stop();
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_acquire); }

  // ---- for diagnosis and tests --------------------------------------------------------------
  /// What the oldest unfinished item waits for; never empty.
  [[nodiscard]] std::string blockage_text();
  [[nodiscard]] std::string failed_jobs();  ///< JobTable::failures
  /// Tasks of devices' places that CPU workers have run or are about to.
  [[nodiscard]] std::int64_t tasks_lent();
  /// Tasks that CPU workers have divided and not ended.
  [[nodiscard]] std::int32_t tasks_divided();
  /// Fine-grain forms made since the engine was: jobs that were reserved or started find theirs.
  [[nodiscard]] std::size_t fine_graphs() { return fine_graphs_.count(); }
  /// The invariants of what the lock guards.
  [[nodiscard]] bool is_valid();

 private:
  /// What a completed job leaves behind, to be dropped without the lock: pools, and perhaps the
  /// last handles of matrices, whose end takes the lock again.
  struct Remains {
    std::shared_ptr<JobRecord> record;
    JobResult result;
    JobSpec spec;
    Program program;
  };
  /// What follows from an event, for when the lock is free.
  struct Effects {
    Wakes wakes;
    std::vector<Remains> remains;
  };

  // With the lock.
  void apply(Effects& effects);  ///< what the protocol wants done
  void finished_locked(protocol::Task& task);
  [[nodiscard]] bool is_urgent(const JobRecord& job) const;
  void cancel_locked(JobRecord& job);
  void fail_job(JobRecord& job, const Error& error);
  void drained(protocol::Job& handle, Effects& effects);
  void complete(const JobRecord& job, const JobResult& result, Effects& effects);

  // Without the lock.
  void carry_out(Effects& effects);  ///< ends completed jobs first
  void end(Remains& remains);
  [[nodiscard]] std::unique_ptr<Lending> make_lending();
  [[noreturn]] void throw_over(const std::string& what);

  EngineOptions options_;
  TileStore& store_;
  trace::Recorder& recorder_;
  std::shared_ptr<EngineLink> link_;
  trace::NameId depth_name_;
  Counters counters_;
  Failure failure_;
  FineGraphs fine_graphs_;  ///< has a lock of its own
  KernelWatch kernel_watch_;
  HostExecutor executor_;
  Jobs jobs_;
  std::atomic<bool> stopping_{false};

  alignas(cache_line) SpinMutex mutex_;
  // It guards these.
  alignas(cache_line) protocol::Protocol protocol_;
  protocol::Actions actions_;
  ReaderTree reader_tree_;
  Scheduler scheduler_;
  JobTable table_;
  std::vector<protocol::CopyAction> copies_;
  Outbox outbox_;
};

}  // namespace heddle
