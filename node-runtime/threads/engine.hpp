#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "node-runtime/threads/engine_link.hpp"
#include "node-runtime/threads/fine_graphs.hpp"
#include "node-runtime/threads/futex.hpp"
#include "node-runtime/threads/job_record.hpp"
#include "node-runtime/threads/kernel_watch.hpp"
#include "node-runtime/threads/lending.hpp"
#include "node-runtime/threads/messenger.hpp"
#include "node-runtime/threads/path_priorities.hpp"
#include "node-runtime/threads/program.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

enum class WaitPolicy : std::uint8_t { adaptive, spin, park };

/// For tests: each message waits a random time, up to `delay_us_max`, before it is posted.
struct MessageFaults {
  std::uint64_t delay_us_max = 0;
  std::uint64_t seed = 0;
};

struct EngineOptions {
  NodeId node;
  std::int32_t node_count = 1;
  std::int32_t cpu_workers = 1;
  /// How far the caches of two CPU workers are from each other, cpu_workers numbers for each;
  /// empty: all alike.
  std::vector<std::uint8_t> worker_distances;
  std::vector<Device*> devices;
  std::int32_t window = 8192;  ///< items of one job
  /// Of a job's pool beyond the planned minimum; by default as many as are of use.
  std::int32_t extra_blocks_max = std::numeric_limits<std::int32_t>::max();
  WaitPolicy wait = WaitPolicy::adaptive;
  /// Fewer usable cores than computing threads on this host: waiting threads go to sleep at once.
  bool oversubscribed = false;
  /// This node's threads have cores that no other node on the host uses: what an idle worker leaves
  /// is free for others.
  bool has_own_cores = false;
  double watchdog_seconds = 60;
  double silence_seconds = 8;  ///< after which another node is lost
  /// What a CPU worker computes in a second, measured when it is asked for: the watchdog's measure
  /// of kernels that do not end (KernelWatch). Empty: it lets them run.
  std::function<double()> flops_per_second;
  /// Compute streams of each device, beside the one for urgent kernels.
  std::int32_t device_streams = 2;
  /// Set: tasks have priorities by the longest way to the job's end (path_priorities.hpp), instead
  /// of those that programs give.
  std::optional<TaskCosts> path_costs;
  /// Set: CPU workers run tasks of devices' places that they would finish first.
  std::optional<LendingOptions> lending;
  MessageFaults faults;
  /// Set: what kernels take on CPU workers, seconds; these sleep for so long, in the mean to a few
  /// microseconds, and compute nothing. 0: that one computes. Any worker.
  std::function<double(const Kernel&, const KernelArguments&)> worker_seconds;
};

/// What a CPU worker does next, or has done: a task as a whole, or a fine task of a divided one.
struct HostWork {
  protocol::Task* task = nullptr;
  DividedTask* place = nullptr;  ///< the task is to be divided, if its shape allows it
  FineWork fine;
  bool is_staged = false;  ///< the task runs on copies of its tiles

  [[nodiscard]] explicit operator bool() const { return task != nullptr || fine; }
};

/// What a runtime thread did with its time, for the report.
struct ThreadReport {
  std::string role;
  double busy_seconds = 0;
  double waiting_seconds = 0;
  std::int64_t tasks = 0;
};

/// What the threads of a node share: the protocol, the queues of ready tasks and the mailboxes,
/// under one lock.
///
/// One lock, held for half a microsecond per event, on many cores for one, serves tasks from some
/// tens of microseconds up on some tens of cores (docs/decisions/003): a finished task, the tasks
/// it fires and the next one to run cost one acquisition. Nothing that takes long is done under it,
/// such as taking or giving back memory. Lock order: a JobRecord's mutex and the engine's lock are
/// never held together.
///
/// Jobs and failures are in jobs.cpp, events and generation in engine.cpp.
/// The threads' loops are in cpu_worker.cpp, generation.cpp, device_manager.cpp, copy_thread.cpp
/// and threads/mpi_progress.cpp.
class Engine {
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

  // ---- for the node -------------------------------------------------------------------------
  protocol::MatrixId add_matrix(TileTable table);
  void remove_matrix(protocol::MatrixId matrix);
  [[nodiscard]] protocol::BlockRef current_block(protocol::TileId tile);

  /// Plans a job without beginning it: walks its program once.
  std::shared_ptr<JobRecord> prepare(JobSpec spec);
  /// Blocks of that size that a job gets at a place where it needs `minimum`, if memory allows.
  [[nodiscard]] std::int32_t pool_capacity(PlaceId place, std::int32_t minimum,
                                           bool has_temporaries, std::size_t block_bytes) const;
  /// Takes a prepared job's pools, with the pages of what it is going to write on the host, and
  /// finds out what is known of its tasks beforehand (their priorities by the longest path, the
  /// fine-grain forms of those that are divided), before start() does; given back with a job that
  /// is never started. Throws as start() does, and when the job has its memory.
  void reserve(JobRecord& job);
  /// Begins a prepared job; any thread, the same order on all nodes. Throws Error(usage) when it
  /// was started before, with the numbers when its pools do not fit, or when its tasks are too many
  /// for priorities by the longest path.
  void start(const std::shared_ptr<JobRecord>& job);
  /// Gives the pools of a job back that has ended, or will never begin.
  void give_pools_back(JobRecord& job);
  /// A job whose tasks a user's thread inserts; ends with `end_stream`.
  std::shared_ptr<JobRecord> open_stream(JobSpec spec, std::int32_t blocks_minimum);
  void end_stream(JobRecord& job);
  void cancel(JobRecord& job);
  /// Blocks until the job has ended on all nodes; throws what made the node fail. The job was
  /// started.
  void wait(JobRecord& job);
  /// What wait() is to call when tasks run and none has ended for `watchdog_seconds`. Nobody waits.
  void on_quiet(std::function<void(const std::string&)> tell) { tell_quiet_ = std::move(tell); }

  /// Ends all loops; no job may be running unless the node has failed.
  void stop();

  // ---- for the threads ----------------------------------------------------------------------
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_acquire); }

  /// For a CPU worker: FIREs the task that `finished` completes, if it does (it may be nothing),
  /// then takes what is most urgent on the host; nothing if there is none now. Of equal priorities
  /// fine tasks come first.
  HostWork finish_and_take(const HostWork& finished, std::int32_t worker);
  /// Divides a task that finish_and_take() has given with a place, and takes a fine task, of this
  /// or a more urgent one. What is to be run whole comes back as it was, without its place.
  HostWork divide(const HostWork& work, std::int32_t worker, trace::ThreadTrace& trace);
  /// Takes the next ready task of a device's place if its priority is above `above`; null if there
  /// is none. `left`: tasks that are ready there then.
  protocol::Task* take_above(PlaceId place, std::int32_t above, std::size_t& left);
  /// How many tasks of a place are ready, for the trace.
  void record_ready(trace::ThreadTrace& trace, PlaceId place, std::int64_t time_ns,
                    std::size_t count) const {
    trace.counter(depth_name_, place, time_ns, static_cast<std::int64_t>(count));
  }
  /// Hands a task of a device's place to the CPU workers, because only the host has its kernel: one
  /// of them runs it on copies of its tiles. It stays taken.
  void stage(protocol::Task& task);
  /// The same for several finished tasks; takes none.
  void finish(std::span<protocol::Task* const> finished);
  void copies_finished(std::span<const protocol::CopyAction> copies);

  /// Runs a kernel of a task on the calling thread, a worker, on host memory
  /// (EngineOptions::worker_seconds); its info. What the kernel throws fails its job, and it counts
  /// as done.
  [[nodiscard]] std::int64_t run_kernel(const protocol::Task& task, std::int32_t worker,
                                        const Kernel& kernel, const KernelArguments& arguments);
  /// What each worker and each device runs, for the watchdog.
  [[nodiscard]] KernelWatch& kernel_watch() { return kernel_watch_; }
  /// Runs the task's kernel on the calling thread, a worker, on host memory.
  void execute_on_host(protocol::Task& task, std::int32_t worker, trace::ThreadTrace& trace);
  /// Runs a fine task on the calling thread, a worker.
  void execute_fine(const FineWork& work, std::int32_t worker, trace::ThreadTrace& trace);
  /// A kernel returned `info` > 0.
  void numerical_failure(JobRecord& job, std::int64_t info, double pivot);
  /// A task's kernel threw: fails its job, on all nodes; the node goes on.
  void kernel_threw(const protocol::Task& task, const Error& error);

  /// Walks a program for a while, if there is one that may go on, and records how far it is then.
  /// For the generation thread.
  enum class Walked : std::uint8_t {
    some,
    enough,  ///< some, and there are tasks for all for a while
    no_program,
    window_full,
  };
  Walked generate(trace::ThreadTrace& trace);

  std::vector<protocol::CopyAction> take_copies();
  Outbox take_outbox();
  /// Hands messages' effects to the protocol under one lock: `events` is called with the protocol
  /// and the actions.
  void deliver(const std::function<void(protocol::Protocol&, protocol::Actions&)>& events);
  /// What travels of a version of a tile. For the progress thread, from when it was told of the
  /// message until it has reported its end.
  [[nodiscard]] TilePart part_of(protocol::JobId job, protocol::TileId tile, Version number);
  /// All nodes have drained the job and agree on `verdict`.
  void job_ended(const JobVerdict& verdict);
  /// Another node cancelled the job, or found it failing.
  void cancel_from_elsewhere(const JobVerdict& verdict);

  /// The node cannot go on: remembers the first reason, wakes all waiters.
  void fail(const Error& error);
  /// Node `node` says that it has failed and why, or what it knows of a failure elsewhere.
  void fail_with(int node, const std::string& why, bool elsewhere);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<Error> failure();

  Doorbell cpu_bell;         ///< ready tasks for the CPU workers
  Doorbell generation_bell;  ///< room in a window, or a new job
  Doorbell copy_bell;
  Doorbell message_bell;
  std::vector<std::unique_ptr<Doorbell>> device_bells;

  /// CPU workers that found nothing to do; the progress thread then looks for messages without
  /// rest.
  [[nodiscard]] std::int32_t idle_workers() const {
    return idle_workers_.load(std::memory_order_relaxed);
  }
  /// Tasks of devices' places that CPU workers have run or are about to.
  [[nodiscard]] std::int64_t tasks_lent();
  /// Tasks that CPU workers have divided and not ended.
  [[nodiscard]] std::int32_t tasks_divided();
  /// Fine-grain forms made since the engine was: jobs that were reserved or started find theirs.
  [[nodiscard]] std::size_t fine_graphs() { return fine_graphs_.count(); }
  /// Wakes workers for that many ready tasks, as far as they sleep: two at most, each of which
  /// wakes others for what it leaves (wake_others). Waking takes microseconds for each sleeper,
  /// during which the caller, who has a task that others wait for, would run nothing.
  void wake_workers(std::size_t tasks) {
    if (tasks > 0) cpu_bell.ring(static_cast<int>(std::min(tasks, wakes_at_once)));
  }
  /// For a worker that has waited and found a task. No ready task is left with sleepers and nobody
  /// on the way: whoever makes tasks ready wakes somebody, and who comes and takes one wakes others
  /// as long as there are more. Who comes too late for a task has been preceded by others who do.
  void wake_others() { wake_workers(ready_hint()); }
  void worker_idle(bool idle) { idle_workers_.fetch_add(idle ? 1 : -1, std::memory_order_relaxed); }
  /// Jobs begun and not yet ended on all nodes.
  [[nodiscard]] std::int32_t active_jobs() const {
    return active_jobs_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t ready_hint() const {
    return ready_hint_.load(std::memory_order_relaxed);
  }

  /// Ticks with every event; the watchdog looks at it.
  [[nodiscard]] std::uint64_t event_count() const {
    return event_count_.load(std::memory_order_relaxed);
  }
  /// Kernels running or queued on devices now.
  [[nodiscard]] std::int32_t running_hint() const {
    return running_.load(std::memory_order_relaxed) -
           waiting_for_tiles_.load(std::memory_order_relaxed);
  }
  /// Tasks that a device has taken begin (+) or end (-) to wait for their tiles: the watchdog does
  /// not take them for running.
  void count_waiting(std::int32_t change) {
    waiting_for_tiles_.fetch_add(change, std::memory_order_relaxed);
  }
  [[nodiscard]] std::string blockage();
  [[nodiscard]] std::string blockage_text();  ///< never empty
  [[nodiscard]] std::int64_t renamings();
  void count_copy(std::size_t bytes) {
    event_count_.fetch_add(1, std::memory_order_relaxed);
    copies_made_.fetch_add(1, std::memory_order_relaxed);
    bytes_copied_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_message(std::size_t bytes) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// What has moved so far.
  struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t copies = 0;
    std::uint64_t bytes_copied = 0;
  };
  [[nodiscard]] Traffic traffic() const {
    return {messages_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            copies_made_.load(std::memory_order_relaxed),
            bytes_copied_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] std::size_t protocol_bytes();

 private:
  friend class TaskStream;

  /// What a completed job leaves behind, to be dropped without the lock: pools, and perhaps the
  /// last handles of matrices, whose end takes the lock again.
  struct Remains {
    std::shared_ptr<JobRecord> record;
    JobResult result;
    JobSpec spec;
    Program program;
  };

  /// Who is to be woken, and what dropped, once the lock is free.
  struct Wakes {
    std::vector<Remains> remains;
    std::size_t cpu = 0;
    std::uint64_t devices = 0;
    bool generation = false;
    bool copy = false;
    bool message = false;
    bool all = false;

    void merge(Wakes&& other);
  };

  static constexpr std::size_t wakes_at_once = 2;

  Wakes apply();            ///< carries out `actions_`; with the lock
  void ring(Wakes& wakes);  ///< without the lock; ends completed jobs first
  /// With the lock.
  void update_ready_hint() {
    const std::size_t ready =
        ready_[0]->count() + staged_.count() + static_cast<std::size_t>(fine_.ready_count());
    if (ready != ready_hint()) ready_hint_.store(ready, std::memory_order_relaxed);
  }
  void finished_locked(protocol::Task& task);
  [[nodiscard]] HostWork take_host_work(std::int32_t worker);
  void record_divided(const DividedTask& divided);
  [[nodiscard]] bool is_behind(const JobRecord& job) const;
  JobRecord* next_program();
  [[nodiscard]] std::int32_t useful_blocks(PlaceId place, std::int32_t minimum,
                                           bool has_temporaries, std::size_t block_bytes) const;
  [[nodiscard]] std::vector<std::size_t> bytes_soon(const JobRecord& job, std::size_t block_bytes,
                                                    std::int32_t capacity) const;
  [[nodiscard]] std::int32_t extra_blocks(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                          std::size_t block_bytes);
  /// Whether blocks that are used soon get their pages before it returns.
  enum class Pages : std::uint8_t { now, soon };
  void reserve_pools(JobRecord& job, Pages pages);
  void reserve_or_fail(JobRecord& job);
  void look_ahead(JobRecord& job);
  [[nodiscard]] OperandShape shape_of(protocol::TileId tile) const;
  void add_job(const std::shared_ptr<JobRecord>& job);
  void drained(protocol::Job& handle, Wakes& wakes);
  void complete(const JobRecord& job, const JobResult& result, Wakes& wakes);
  void end(Remains& remains);
  void insert_locked(JobRecord& job, const protocol::Work& work, std::int32_t priority,
                     std::span<const protocol::Access> accesses);
  void wait_for_turn(JobRecord& job);
  [[nodiscard]] bool walk_on(JobRecord& job);
  void fail_job(JobRecord& job, const Error& error);
  void cancel_locked(JobRecord& job);
  [[nodiscard]] std::string failed_jobs();
  [[nodiscard]] std::optional<KernelWatch::Stuck> stuck_kernel(std::int64_t now_ns);
  [[nodiscard]] bool is_urgent(const JobRecord& job) const;

  EngineOptions options_;
  TileStore& store_;
  trace::Recorder& recorder_;
  std::shared_ptr<EngineLink> link_;

  alignas(cache_line) SpinMutex mutex_;
  alignas(cache_line) protocol::Protocol protocol_;
  protocol::Actions actions_;
  std::vector<std::unique_ptr<ReadyQueue>> ready_;  ///< by place
  ReadyQueue staged_;                               ///< of devices' places, for CPU workers
  std::optional<Lending> lending_;                  ///< of devices' tasks to CPU workers
  KernelWatch kernel_watch_;
  std::mutex watch_mutex_;  ///< of the next one, and of who asks the watch
  double flops_per_second_ = 0;
  FineScheduler fine_;
  FineGraphs fine_graphs_;                       ///< has a lock of its own
  std::mutex divided_mutex_;                     ///< of the next one; never taken with `mutex_`
  trace::ThreadTrace* divided_trace_ = nullptr;  ///< from the first divided task on
  std::vector<protocol::CopyAction> copies_;
  trace::NameId depth_name_;
  Outbox outbox_;
  std::deque<std::shared_ptr<JobRecord>> jobs_;  ///< not yet complete, in order of submission
  std::size_t next_generating_ = 0;
  bool generation_waits_ = false;
  std::optional<Error> failure_;
  std::function<void(const std::string&)> tell_quiet_;

  // What waiting threads look at again and again, apart from what changes with every event: a write
  // to a line that all of them hold takes as long as the rest of an event.
  alignas(cache_line) std::atomic<std::size_t> ready_hint_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  alignas(cache_line) std::atomic<std::int32_t> idle_workers_{0};
  alignas(cache_line) std::atomic<std::int32_t> running_{0};
  std::atomic<std::int32_t> waiting_for_tiles_{0};
  std::atomic<std::int32_t> active_jobs_{0};
  std::atomic<std::uint64_t> event_count_{0};
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> copies_made_{0};
  std::atomic<std::uint64_t> bytes_copied_{0};
  Doorbell room_bell_;  ///< for users' threads that insert
};

}  // namespace heddle
