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

/// A matrix as the protocol needs to know it.
struct MatrixOptions {
  std::int32_t tile_count = 0;
  /// A temporary matrix has no memory of its own: a tile takes a block of the job's pool with its
  /// first write and gives it back after `release`. Other matrices keep a block for each tile that
  /// lives on the node.
  bool temporary = false;
  /// For each place of the node: the pool of the matrix's own blocks. Block t of it belongs to tile
  /// t at the beginning; blocks from tile_count on serve renaming, `spare_count` of each class.
  std::vector<std::int32_t> pools;
  /// The class of each tile: tiles of one class have blocks of equal size, and no tile is renamed
  /// into a block of another class. Null: all are of one class.
  ClassTable classes;
  std::int32_t class_count = 1;
  /// Most tiles of a class that may be renamed at one place at one time; without a spare block a
  /// write waits for the readers of what it replaces.
  std::int32_t spare_count = 0;
};

/// A job's pool at one place.
struct PoolOptions {
  std::int32_t id = BlockRef::none;  ///< what BlockRef::pool shall say
  std::int32_t capacity = 0;         ///< blocks
  std::int32_t minimum = 0;  ///< blocks that the plan computed (pool_plan.hpp), at most capacity
};

struct JobOptions {
  std::int32_t window = 1;         ///< most generated and unfinished items of this job on this node
  std::vector<PoolOptions> pools;  ///< one per place
};

struct JobCounters {
  std::int64_t tasks = 0;     ///< appended here
  std::int64_t finished = 0;  ///< of these
  std::int64_t skipped = 0;   ///< walked, but nothing of theirs lives here
  std::int64_t sends = 0;
  std::int64_t receives = 0;
  std::int64_t copies = 0;
};

/// One submitted program on this node. Owned by the protocol until forget().
struct Job {
  JobId id;
  void* context = nullptr;  ///< the caller's
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
  Links orphan_slots;       ///< extra slots whose first user is finished and has no successor yet
  std::vector<Pool> pools;  ///< one per place
  JobCounters counters;

  [[nodiscard]] bool window_is_full() const { return unfinished >= window; }
  /// Of a window that was full: there is room for many items again, so that who generates them has
  /// not to be woken for each one. An eighth is enough; an empty window always has it, and before
  /// that the oldest item advances by itself.
  [[nodiscard]] bool window_reopens() const {
    return unfinished <= window - (window < 8 ? 1 : window / 8);
  }
};

/// What is wrong, for a person, when nothing advances (D9).
struct Blockage {
  bool any = false;
  std::uint64_t order = 0;  ///< of the oldest unfinished item
  std::string text;
};

/// The protocol of one node: 001 section 6 as a state machine, with the refinements D2 and D3.
///
/// Every method is an event; what is to be done in consequence is added to `actions`. Not
/// thread-safe: the caller serialises events. Different orders of events for different tiles are
/// all legal.
///
/// Errors in the program handed in (a tile accessed twice by one task, an unknown matrix) are
/// contract violations.
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

  /// Makes a matrix known; ids are given in the order of calls, which is the same on all nodes.
  MatrixId add_matrix(MatrixOptions options);
  /// The id that the next call of add_matrix will give.
  [[nodiscard]] MatrixId next_matrix() const {
    return MatrixId{static_cast<std::int32_t>(matrices_.size())};
  }
  /// Forgets a matrix of which no job uses a tile.
  void remove_matrix(MatrixId id);

  /// Begins a job; ids are given in the order of calls, which is the same on all nodes.
  Job& begin_job(const JobOptions& options);
  /// APPEND: the next task of the job's sequential program. `accesses[0]` is the main output.
  /// Creates the instances that concern this node, nothing if none does. The window must not be
  /// full. Gives the task's record; null where another node runs it.
  Task* append(Job& job, const Work& work, std::int32_t priority, std::span<const Access> accesses,
               Actions& actions);
  /// The same for a program walked in a pruned way: some task on node `reader` reads `access`
  /// (which lives here). May be repeated; the version travels once.
  void append_alien_reader(Job& job, const Access& access, NodeId reader, std::int32_t priority,
                           Actions& actions);
  /// Release marker: no task after this one reads this version of the tile in this job away from
  /// its home; copies of it away from home, and for temporary matrices the version itself, are
  /// freed after their last visit.
  void release(Job& job, const Access& access, Actions& actions);
  /// The job's program has ended; everything is released. The job appears in Actions::drained once
  /// all is done.
  void end_generation(Job& job, Actions& actions);
  /// Runs the remaining tasks of the job without their kernels and sends without data; the data
  /// flow itself goes on, so that every count comes out.
  void cancel(Job& job) { job.cancelled = true; }
  /// Forgets a drained job.
  void forget(Job& job);

  /// Has the records that task_finished() is going to change brought to the calling processor. The
  /// only function that may be called while others are: it reads nothing but what a running task
  /// keeps.
  static void expect_finished(const Task& task);
  /// The task's kernel has run (or was skipped): FIRE.
  void task_finished(Task& task, Actions& actions);
  void copy_finished(const CopyAction& copy, Actions& actions);
  /// Node `to` can receive a version, which it may say before this node has generated the instance.
  /// `asked`: it has asked before (or that will come yet).
  void grant_arrived(JobId job, TileId tile, Version number, NodeId to, std::uint32_t tag,
                     bool asked, Actions& actions);
  /// Node `to` has no block for a version yet; likewise.
  void ask_arrived(JobId job, TileId tile, Version number, NodeId to, Actions& actions);
  /// Node `from` has the data of a version that this node has asked for. It may come when the
  /// version has been granted, or even received: then nothing happens.
  void offer_arrived(JobId job, TileId tile, Version number, NodeId from, Actions& actions);
  void send_finished(Send& send, Actions& actions);
  /// The version that was granted is in its block. `empty`: its job was cancelled elsewhere.
  void data_arrived(Landing& landing, bool empty, Actions& actions);

  [[nodiscard]] Job* find_job(JobId id);
  /// Where the tile's newest content is, when no task is in flight that writes it.
  [[nodiscard]] BlockRef current_block(TileId id, PlaceId place) const;
  [[nodiscard]] NodeId node() const { return options_.node; }
  /// The oldest unfinished item of the oldest job and what it waits for.
  [[nodiscard]] Blockage blockage() const;
  /// Whole-structure check of counts and lists, for tests.
  [[nodiscard]] bool is_valid() const;
  /// Bytes of all records, and records in use, for the report and the tests.
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::size_t records_in_use() const;
  /// Writes that went to a fresh copy because the old one was still read (D3).
  [[nodiscard]] std::int64_t renamings() const { return renamings_; }
  /// Gives up all jobs after a failure of the cluster: records are dropped without the checks.
  void abandon();

 private:
  struct TileState {
    LocalVersion* current = nullptr;
    JobId job{-1};            ///< of the last write, and
    std::int32_t number = 0;  ///< how many writes that job has made
  };
  struct RemoteWrites {
    JobId job{-1};
    std::int32_t count = 0;
  };
  struct Matrix {
    MatrixOptions options;
    bool in_use = true;
    PagedArray<TileState> tiles;                    ///< those that live here are touched
    PagedArray<RemoteWrites> remote_writes;         ///< likewise those elsewhere that are counted
    std::vector<std::vector<std::int32_t>> spares;  ///< free blocks, per place and class

    /// Of the class of tile `index` at `place`.
    [[nodiscard]] std::vector<std::int32_t>& spares_for(PlaceId place, std::int32_t index) {
      const auto at = static_cast<std::size_t>(index);
      const std::int32_t tile_class = options.classes ? (*options.classes)[at] : 0;
      const std::int32_t list = place.value() * options.class_count + tile_class;
      return spares[static_cast<std::size_t>(list)];
    }
    std::int32_t live_temporaries = 0;
  };
  /// Names a version on its way between two nodes.
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
  /// What the receiver has said about a version that is to be sent.
  struct PendingGrant {
    Send* send = nullptr;  ///< null: the receiver came first, or
    bool sent = false;     ///< an ask is on its way that its grant has overtaken
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
  std::vector<std::unique_ptr<Job>> jobs_;  ///< in order of submission; forgotten ones removed
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
