#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.hpp"
#include "base/index.hpp"
#include "base/paged_array.hpp"
#include "node-runtime/protocol/actions.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/protocol/slab.hpp"
#include "node-runtime/protocol/task_records.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

/// The protocol's view of a matrix.
struct MatrixOptions {
  std::int32_t tile_count = 0;
  /// A temporary matrix has no memory of its own: a tile takes a block of the job's pool with its
  /// first write and returns it after `release`. Other matrices have a block for each tile that
  /// lives on the node.
  bool temporary = false;
  /// For each place of the node: the pool of the matrix's own blocks. Initially block t belongs to
  /// tile t; blocks from tile_count on are spares for renaming, `spare_count` per class.
  std::vector<std::int32_t> pools;
  /// The class of each tile: blocks of a class have equal size, and renaming stays within a class.
  /// Null: one class.
  ClassTable classes;
  std::int32_t class_count = 1;
  /// Renamed tiles per class and place at most; without a spare block a write waits for the readers
  /// of the version it replaces.
  std::int32_t spare_count = 0;
};

/// A job's pool at one place.
struct PoolOptions {
  std::int32_t id = BlockRef::none;  ///< value of BlockRef::pool
  std::int32_t capacity = 0;         ///< blocks
  std::int32_t minimum = 0;          ///< blocks that the plan computed (pool_plan.hpp) <= capacity
};

struct JobOptions {
  std::int32_t window = 1;         ///< generated, unfinished items of this job on this node at most
  std::vector<PoolOptions> pools;  ///< one per place
};

struct JobCounters {
  std::int64_t tasks = 0;     ///< appended here
  std::int64_t finished = 0;  ///< finished tasks
  std::int64_t skipped = 0;   ///< tasks without an access on this node
  std::int64_t sends = 0;
  std::int64_t receives = 0;
  std::int64_t copies = 0;
};

/// One submitted program on this node. Owned by the protocol until forget().
struct Job {
  JobId id;
  void* context = nullptr;  ///< for the caller
  std::int32_t window = 1;
  std::int32_t unfinished = 0;  ///< items
  std::uint64_t next_order = 0;
  bool generation_ended = false;
  bool cancelled = false;
  bool drained = false;
  Links items;  ///< unfinished, in program order
  Links open_replicas;
  Links open_remotes;
  Links open_sends;
  Links orphan_slots;       ///< extra slots whose first user finished without a successor
  std::vector<Pool> pools;  ///< one per place
  JobCounters counters;

  [[nodiscard]] bool window_is_full() const { return unfinished >= window; }
  /// True once an eighth of a full window is free again: avoids waking the generator for every
  /// finished item. An empty window always qualifies, and until then the oldest item can advance.
  [[nodiscard]] bool window_reopens() const {
    return unfinished <= window - (window < 8 ? 1 : window / 8);
  }
};

/// Diagnosis of a job that does not advance (D9).
struct Blockage {
  bool any = false;
  std::uint64_t order = 0;  ///< of the oldest unfinished item
  std::string text;
};

/// The protocol of one node: 001 section 6 as a state machine, with refinements D2 and D3.
///
/// Every method is an event and appends to `actions`. Not thread-safe: the caller serialises
/// events. Events of different tiles may come in any order.
///
/// Errors in the program (a tile accessed twice by one task, an unknown matrix) are contract
/// violations.
class Protocol {
 public:
  struct Options {
    NodeId node;
    std::int32_t places = 1;  ///< host and devices
  };

  explicit Protocol(Options options);
  ~Protocol();
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  /// Registers a matrix; ids follow the order of calls, which is the same on all nodes.
  MatrixId add_matrix(MatrixOptions options);
  /// The id of the next add_matrix call.
  [[nodiscard]] MatrixId next_matrix() const {
    return MatrixId{static_cast<std::int32_t>(matrices_.size())};
  }
  /// Removes a matrix that no job uses.
  void remove_matrix(MatrixId id);

  /// Begins a job; ids follow the order of calls, which is the same on all nodes.
  Job& begin_job(const JobOptions& options);
  /// APPEND: the next task of the job's sequential program; `accesses[0]` is the main output.
  /// Creates the instances that concern this node. The window must not be full. Returns the task's
  /// record, or null if another node runs it.
  Task* append(Job& job, const Work& work, std::int32_t priority, std::span<const Access> accesses,
               Actions& actions);
  /// For a pruned walk: some task on node `reader` reads `access`, which lives here. May be
  /// repeated; the version is sent once.
  void append_alien_reader(Job& job, const Access& access, NodeId reader, std::int32_t priority,
                           Actions& actions);
  /// Release marker: no later task of this job reads this version of the tile away from its home.
  /// Its copies elsewhere, and for temporary matrices the version itself, are freed after their
  /// last visit.
  void release(Job& job, const Access& access, Actions& actions);
  /// Ends the job's program and releases everything. The job appears in Actions::drained when all
  /// is done.
  void end_generation(Job& job, Actions& actions);
  /// Runs the job's remaining tasks without kernels and sends messages without data; the data flow
  /// continues so that all counts balance.
  void cancel(Job& job) { job.cancelled = true; }
  /// Deletes a drained job.
  void forget(Job& job);

  /// Prefetches the records that task_finished() will change. The only function that may run
  /// concurrently with others: it reads only what a running task keeps fixed.
  static void expect_finished(const Task& task);
  /// The task's kernel has run (or was skipped): FIRE.
  void task_finished(Task& task, Actions& actions);
  void copy_finished(const CopyAction& copy, Actions& actions);
  /// Node `to` can receive a version; may come before this node has generated the instance.
  /// `asked`: it has asked before (that message may still be on its way).
  void grant_arrived(JobId job, TileId tile, Version number, NodeId to, std::uint32_t tag,
                     bool asked, Actions& actions);
  /// Node `to` has no block for a version yet; may also come early.
  void ask_arrived(JobId job, TileId tile, Version number, NodeId to, Actions& actions);
  /// Node `from` has the data of a version that this node asked for. Ignored if the version has
  /// been granted or received meanwhile.
  void offer_arrived(JobId job, TileId tile, Version number, NodeId from, Actions& actions);
  void send_finished(Send& send, Actions& actions);
  /// The granted version is in its block. `empty`: its job was cancelled elsewhere.
  void data_arrived(Landing& landing, bool empty, Actions& actions);

  [[nodiscard]] Job* find_job(JobId id);
  /// Block of the tile's newest content; requires that no task that writes it is unfinished.
  [[nodiscard]] BlockRef current_block(TileId id, PlaceId place) const;
  [[nodiscard]] NodeId node() const { return options_.node; }
  /// The oldest unfinished item of the oldest job and what it waits for.
  [[nodiscard]] Blockage blockage() const;
  /// Checks all counts and lists; for tests.
  [[nodiscard]] bool is_valid() const;
  /// Bytes of all records, and records in use; for the report and tests.
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::size_t records_in_use() const;
  /// Writes renamed to another block because the old version still had readers (D3).
  [[nodiscard]] std::int64_t renamings() const { return renamings_; }
  /// Drops all jobs after a failure of the cluster, without the checks.
  void abandon();

 private:
  struct TileState {
    LocalVersion* current = nullptr;
    JobId job{-1};            ///< of the last write
    std::int32_t number = 0;  ///< number of writes by that job
  };
  struct RemoteWrites {
    JobId job{-1};
    std::int32_t count = 0;
  };
  struct Matrix {
    MatrixOptions options;
    bool in_use = true;
    PagedArray<TileState> tiles;                    ///< touched: tiles of this node
    PagedArray<RemoteWrites> remote_writes;         ///< touched: counted tiles of other nodes
    std::vector<std::vector<std::int32_t>> spares;  ///< free blocks, per place and class

    /// Spares of the class of tile `index` at `place`.
    [[nodiscard]] std::vector<std::int32_t>& spares_for(PlaceId place, std::int32_t index) {
      const auto at = static_cast<std::size_t>(index);
      const std::int32_t tile_class = options.classes ? (*options.classes)[at] : 0;
      const std::int32_t list = place.value() * options.class_count + tile_class;
      return spares[static_cast<std::size_t>(list)];
    }
    std::int32_t live_temporaries = 0;
  };
  /// Names a version in a message between two nodes.
  struct MessageKey {
    JobId job;
    TileId tile;
    Version number;
    NodeId peer;
    friend bool operator==(const MessageKey&, const MessageKey&) = default;
  };
  struct MessageKeyHash {
    std::size_t operator()(const MessageKey& k) const;
  };
  /// What the receiver has sent about a version.
  struct PendingGrant {
    Send* send = nullptr;  ///< null: not generated here yet, or
    bool sent = false;     ///< sent already; its ask, overtaken by the grant, is still to come
    bool awaits_ask = false;
    bool asked = false;
    bool arrived = false;
    std::uint32_t tag = 0;
  };

  void describe(const Item& item, std::string& text) const;

  // append.cpp
  LocalVersion& current(const Access& access);
  [[nodiscard]] Version number_in(const TileState& tile, JobId job) const;
  Version remote_version(Job& job, const Access& access);
  Version count_remote_write(Job& job, const Access& access, Actions& actions);
  LocalVersion& new_version(Job& job, const Access& access, Actions& actions);
  RemoteVersion& remote(Job& job, const Access& access, Task& reader, Actions& actions);
  Replica& replica(Job& job, BaseCopy& base, PlaceId place, Task& user, Actions& actions);
  void add_item(Job& job, Item& item, Actions& actions);
  void add_input(Task& task, std::uint8_t index, const Access& access, Actions& actions);
  void add_output(Task& task, std::uint8_t index, const Access& access, Actions& actions);
  void add_alien_reader(Job& job, const Access& access, NodeId reader, std::int32_t priority,
                        Actions& actions);
  void add_sink(Job& job, const Access& access, NodeId writer, Actions& actions);
  Send& add_send(Job& job, const Access& access, NodeId to, InstanceKind kind, Version number,
                 std::int32_t priority);
  static void enqueue(Copy& copy, Instance& instance);
  void attach(Copy& copy, Instance& instance, Actions& actions);
  void check_contract(std::span<const Access> accesses) const;

  // fire.cpp
  void fire(Copy& copy, Actions& actions);
  void trigger(Instance& instance, Actions& actions);
  void input_ready(Task& task, Actions& actions);
  void at_hand(Task& reader, Actions& actions);
  void fetch_inputs(Task& task, Actions& actions);
  void acquire_outputs(Task& task, Actions& actions);
  bool acquire(LocalVersion& version, Operand* operand, Actions& actions);
  void take_block(LocalVersion& version);
  void make_ready(Task& task, Actions& actions);
  void block_is_free(LocalVersion& version, Actions& actions);
  void try_send(Send& send, Actions& actions);
  void deliver_minor_output(Operand& operand, Actions& actions);
  void sink_may_copy(Sink& sink, Actions& actions);
  void sink_may_receive(Sink& sink, Actions& actions);
  void sink_done(Sink& sink, Actions& actions);
  void output_delivered(Task& task, Actions& actions);
  void finish_item(Item& item, Actions& actions);
  void check_drained(Job& job, Actions& actions);

  // lifetime.cpp
  void visit(Copy& copy, Actions& actions);
  void close(Copy& copy, Actions& actions);
  void close_version(LocalVersion& version, Actions& actions);
  void collect(Copy& copy, Actions& actions);
  void collect_local(LocalVersion& version, Actions& actions);
  void destroy_local(LocalVersion& version);
  void drop_send(Send& send);
  void request_slot(Job& job, SlotHolder& holder, PlaceId place, Item& first_user,
                    Actions& actions);
  bool enter(SlotHolder& holder, Actions& actions);
  static void withdraw(SlotHolder& holder);
  bool try_take_slot(SlotHolder& holder);
  void slot_granted(SlotHolder& holder, Actions& actions);
  void release_slot(SlotHolder& holder, Actions& actions);
  void retry_waiting(Pool& pool, Actions& actions);
  void oldest_changed(Job& job, Actions& actions);

  Options options_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::vector<std::unique_ptr<Job>> jobs_;  ///< in order of submission, without forgotten ones
  JobId next_job_{0};
  FlatMap<MessageKey, PendingGrant, MessageKeyHash> sends_;
  FlatMap<MessageKey, RemoteVersion*, MessageKeyHash> remotes_;
  std::int64_t renamings_ = 0;
  TaskRecords tasks_;
  Slab<LocalVersion> versions_;
  Slab<RemoteVersion> remote_versions_;
  Slab<Replica> replicas_;
  Slab<Scratch> scratches_;
  Slab<TemporarySlot> temporaries_;
  Slab<Send> send_records_;
  Slab<Sink> sink_records_;
};

}  // namespace heddle::protocol
