#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.hpp"
#include "base/index.hpp"
#include "node-runtime/protocol/actions.hpp"
#include "node-runtime/protocol/grant_table.hpp"
#include "node-runtime/protocol/job.hpp"
#include "node-runtime/protocol/record_slabs.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/protocol/types.hpp"
#include "node-runtime/protocol/version_table.hpp"

namespace heddle::protocol {

/// The protocol of one node: 001 section 6 as a state machine, with refinements D2 and D3.
///
/// Every method is an event and appends to `actions`. Not thread-safe: the caller serialises
/// events. Events of different tiles may come in any order.
///
/// The caller has checked the program (TaskStream: no tile is accessed twice by a task that writes
/// it, all matrices are known).
///
/// The class has more than 30 member functions: half of them are events and queries, the other half
/// call each other in a circle (a finished write makes tasks ready, frees blocks, and so grants
/// others). A split of the circle would give each part a pointer to all others. State outside of it
/// has classes of its own: VersionTable, BlockPool, GrantTable, RecordSlabs, Job.
class Protocol {
 public:
  struct Options {
    NodeId node;
    std::int32_t places = 1;  ///< host and devices
    /// Versions that are still arriving in host memory are passed on (SendAction::behind).
    bool passes_on_arriving = false;
  };

  explicit Protocol(Options options);
  ~Protocol();
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  /// Registers a matrix; ids follow the order of calls, which is the same on all nodes.
  MatrixId add_matrix(MatrixOptions options) { return versions_.add_matrix(std::move(options)); }
  /// The id of the next add_matrix call.
  [[nodiscard]] MatrixId next_matrix() const { return versions_.next_matrix(); }
  /// Passes over an id: this node could not make the matrix, others may have it.
  void skip_matrix() { versions_.skip_matrix(); }
  /// Removes a matrix that no job uses.
  void remove_matrix(MatrixId id) { versions_.remove_matrix(id); }

  /// Begins a job; ids follow the order of calls, which is the same on all nodes.
  Job& begin_job(const JobOptions& options);
  /// APPEND: the next task of the job's sequential program; `accesses[0]` is the main output.
  /// Creates the instances that concern this node. The window must not be full. Returns the task's
  /// record, or null if another node runs it.
  Task* append(Job& job, const Work& work, std::int32_t priority, std::span<const Access> accesses,
               Actions& actions);
  /// For a pruned walk: some task on node `reader` reads `access`, which lives here. Not before
  /// the version's write, nor after the next one or its release. May be repeated; the version is
  /// sent once. One whose readers are known (JobOptions::readers) is published.
  void append_alien_reader(Job& job, const Access& access, NodeId reader, std::int32_t priority,
                           Actions& actions);
  /// This version, which lives here, goes to those of its readers that have it from here
  /// (JobOptions::route); `readers` are what JobOptions::readers says. When, and how often, as
  /// append_alien_reader().
  void publish(Job& job, const Access& access, std::span<const Reader> readers, Actions& actions);
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

  /// Block of the tile's newest content; requires that no task that writes it is unfinished.
  [[nodiscard]] BlockRef current_block(TileId id, PlaceId place) const {
    return versions_.current_block(id, place);
  }
  /// The oldest unfinished item of the oldest job, and what it waits for (D9); empty without a job.
  [[nodiscard]] std::string blockage() const;
  /// Checks the invariants of all jobs, versions and grants; for tests.
  [[nodiscard]] bool is_valid() const;
  /// Bytes of all records, and records in use; for the report and tests.
  [[nodiscard]] std::size_t bytes() const { return records_.bytes() + versions_.bytes(); }
  [[nodiscard]] std::size_t records_in_use() const { return records_.in_use(); }
  /// Writes renamed to another block because the old version still had readers (D3).
  [[nodiscard]] std::int64_t renamings() const { return versions_.renamings(); }
  /// Drops all jobs after a failure of the cluster, without the checks.
  void abandon();

 private:
  // append.cpp
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
  Send& add_send(Job& job, TileId tile, Version number, const Reader& to);
  void add_send(Job& job, BaseCopy& source, const Reader& to, Actions& actions);
  LocalVersion& version_to_send(const Job& job, const Access& access);
  void publish(Job& job, LocalVersion& version, std::span<const Reader> readers, Actions& actions);
  void attach(Copy& copy, Instance& instance, Actions& actions);

  // fire.cpp
  void fire(Copy& copy, Actions& actions);
  void trigger(Instance& instance, Actions& actions);
  void input_ready(Task& task, Actions& actions);
  void acquire_outputs(Task& task, Actions& actions);
  bool acquire(LocalVersion& version, Operand* operand, Actions& actions);
  void block_is_free(LocalVersion& version, Actions& actions);
  void deliver_minor_output(Operand& operand, Actions& actions);
  void sink_done(Sink& sink, Actions& actions);
  void release_scratch(Operand& operand, Actions& actions);
  void output_delivered(Task& task, Actions& actions);
  void finish_item(Item& item, Actions& actions);
  void check_drained(Job& job, Actions& actions);

  // messages.cpp
  [[nodiscard]] Landing* arriving(const Send& send) const;
  void try_send(Send& send, Actions& actions);

  // lifetime.cpp
  void visit(Copy& copy, Actions& actions);
  void close(Copy& copy, Actions& actions);
  void close_replicas(BaseCopy& base, const Job* job, Actions& actions);
  void close_version(LocalVersion& version, Actions& actions);
  void collect(Copy& copy, Actions& actions);
  void collect_local(LocalVersion& version, Actions& actions);
  void drop_done_sends(BaseCopy& copy);
  void drop_send(Send& send);
  void request_block(Job& job, BlockRequest& request, PlaceId place, Item& first_user,
                     Actions& actions);
  void input_available(Task& reader, Actions& actions);
  void prioritize_inputs(Task& task, Actions& actions);
  void block_granted(BlockRequest& holder, Actions& actions);
  void release_block(BlockRequest& holder, Actions& actions);
  void grant_waiting(BlockPool& pool, const Job& job, Actions& actions);
  void oldest_changed(Job& job, Actions& actions);

  Options options_;
  VersionTable versions_;
  std::vector<std::unique_ptr<Job>> jobs_;  ///< in order of submission, without forgotten ones
  JobId next_job_{0};
  GrantTable grants_;
  FlatMap<VersionKey, RemoteVersion*, VersionKey::Hash> remotes_;
  RecordSlabs records_;
};

}  // namespace heddle::protocol
