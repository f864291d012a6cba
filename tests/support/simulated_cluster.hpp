#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "tests/support/program.hpp"
#include "tests/support/reader_ways.hpp"
#include "tests/support/simulated_memory.hpp"

/// P nodes of the protocol in one process under a seeded scheduler: job starts, appends, firings,
/// copies, grants and messages happen in an order that the seed decides, arbitrarily late and
/// reordered; per seed some kinds of events, and some nodes, are starved or rushed.
///
/// Each device has a memory (SimulatedMemory): tasks start, and copies and messages move, when
/// their blocks are in it, or in what backs it where a task is lent to the node's CPU workers.
///
/// Checked at every event: each task runs once, at its place, and reads exactly what the sequential
/// program would; each copy and message carries the version that it names, between the places that
/// it names; a version from elsewhere lands at the place of its first reader, or of its tile; no
/// block is written, freed or handed out again while it may be read; each version travels once per
/// node; the window holds; who works on a copy of a device's block finds the newest content there.
/// Checked at the end: everything ran (progress), no record or block is left and no frame held, and
/// the tiles hold what the sequential program leaves.
namespace heddle::simulation {

/// How each node walks a program.
enum class Walk : std::uint8_t {
  full,       ///< all statements; versions are counted
  pruned,     ///< the statements that touch the node; versions are stated
  announced,  ///< as pruned, but of tasks elsewhere that only read here, the node learns no more
              ///< than that (append_alien_reader)
  published,  ///< likewise, and learns nothing of them: readers are known (Ways), and versions
              ///< published where they are written
};

/// Where ready tasks of devices' places run.
enum class Placement : std::uint8_t {
  fixed,    ///< at their places
  dynamic,  ///< or on the node's CPU workers: any of them, at random
};

/// A lie that the simulated machine tells once, at a time that the seed decides; to see that the
/// checks find it.
enum class Fault : std::uint8_t {
  none,
  task_runs_twice,          ///< a ready task is run by two workers
  task_does_not_run,        ///< a task is reported as finished that never ran
  task_runs_elsewhere,      ///< a task is run by another node
  copy_before_source,       ///< a copy starts before its source was written
  copy_report_lost,         ///< a copy's completion is never reported
  payload_corrupted,        ///< a message arrives with other content
  payload_lost,             ///< a message never arrives
  payload_twice,            ///< a message arrives again
  grant_lost,               ///< a grant never arrives
  block_freed_early,        ///< a block is given up that a ready task reads
  block_handed_out_twice,   ///< a block is granted that another one is being written to
  send_repeated,            ///< a version is sent again to the same node
  sent_from_elsewhere,      ///< a message leaves from another place than that of its block
  granted_elsewhere,        ///< a message lands at another place than that of its block
  fine_task_early,          ///< a fine task is begun beside one that it waits for
  fine_task_lost,           ///< a fine task is never reported as finished
  old_version_overwritten,  ///< a write that was renamed goes to the block that others still read
  lent_write_not_left,      ///< a device is not told that a lent task wrote its block on the host
  lent_task_early,          ///< a lent task does not wait for the write-back of what it reads
  device_task_early,        ///< a device's task does not wait for the fetch of what it reads
};

/// Which of the checks failed first.
enum class Check : std::uint8_t {
  none,
  reads,       ///< what a task reads, what a copy or message carries
  place,       ///< where a task runs and has its blocks, a copy or message leaves and lands
  executions,  ///< how often it runs
  fine_tasks,  ///< their order, and which of them run side by side
  blocks,      ///< who touches a block at what time
  coherence,   ///< the copies of a device's block, in its memory and on the host
  messages,    ///< each version once per node
  window,      ///< unfinished items
  progress,    ///< nothing can happen and something is left to do
  leftovers,   ///< records, blocks, use counts at the end
  results,     ///< tiles at the end
};

struct ClusterOptions {
  std::int32_t nodes = 1;
  std::int32_t places = 1;
  std::int32_t window = 1;
  /// Capacity of every pool beyond the planned minimum; below 0 the pools are smaller than planned.
  std::int32_t extra_blocks = 0;
  /// CPU workers of a node that divide some of the host's tasks into fine ones, their own
  /// (Statement::fine), or those of real kernels of all kinds; 0: all tasks run whole.
  std::int32_t fine_workers = 0;
  Placement placement = Placement::fixed;
  /// Frames of a device's memory beyond those with which every program advances.
  std::int32_t extra_frames = 1000;
  Walk walk = Walk::full;
  Ways ways = Ways::announced;
  std::uint64_t seed = 0;
  /// Probability per step that a running job is cancelled on some node.
  double cancel_probability = 0;
  Fault fault = Fault::none;
};

/// A task that ran: (node, job, statement). A message: (from, to, job, tile, version).
using TaskRun = std::tuple<NodeId, std::size_t, std::size_t>;
using MessageName = std::tuple<NodeId, NodeId, protocol::JobId, protocol::TileId, Version>;

struct Outcome {
  bool ok = true;
  Check check = Check::none;
  std::string failure;  ///< what went wrong first, empty if nothing did
  bool fault_injected = false;
  std::int64_t steps = 0;
  std::int64_t copies = 0;
  std::int64_t renamings = 0;
  std::int64_t divided = 0;                    ///< tasks
  std::int64_t fine_tasks = 0;                 ///< that ran
  std::set<std::string_view> kernels_divided;  ///< those that statements name
  std::int64_t lent = 0;                       ///< tasks of devices that ran on the host
  std::int64_t fetches = 0;
  std::int64_t write_backs = 0;
  std::int64_t passed_on = 0;        ///< versions, by nodes where they do not live
  std::int64_t passed_on_early = 0;  ///< of these, posted while they arrive
  std::int64_t walked = 0;           ///< statements that nodes appended or announced, in total
  std::set<TaskRun> tasks;
  std::set<MessageName> messages;
  std::set<protocol::InstanceKind> kinds_seen;  ///< in tasks and in unfinished items
};

/// ClusterOptions::fine_workers, for tests that have a seed.
[[nodiscard]] constexpr std::int32_t fine_workers_of(std::uint64_t seed) {
  constexpr std::int32_t workers[] = {0, 1, 2, 5};
  return workers[seed % 4];
}

/// ClusterOptions::placement and extra_frames, likewise.
[[nodiscard]] constexpr Placement placement_of(std::uint64_t seed) {
  return seed / 4 % 2 == 0 ? Placement::fixed : Placement::dynamic;
}
[[nodiscard]] constexpr std::int32_t extra_frames_of(std::uint64_t seed) {
  constexpr std::int32_t frames[] = {0, 2, 10, 1000};
  return frames[seed / 8 % 4];
}

class SimulatedCluster {
 public:
  SimulatedCluster(const ClusterOptions& options, std::vector<SimulatedMatrix> matrices);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// Submits a program to all nodes; programs may be in flight together. Those of which one
  /// writes to a matrix of the other are walked one after the other. Each node begins it when the
  /// scheduler says so.
  void submit(Program program);
  /// The same for a program whose walks and readers are given; the options' `walk` is not looked
  /// at, and `ways` is not `announced` where readers are given.
  void submit(WalkedProgram walked);
  /// Blocks that the plan asks for at each place of a node, for the job submitted last.
  [[nodiscard]] const std::vector<std::int32_t>& planned_minimum(NodeId node) const;
  /// Runs until nothing is left to do, and checks.
  Outcome run();

 private:
  /// What can happen at a node.
  enum class Kind : std::uint8_t {
    generate,
    start,
    finish,
    copy,
    send,
    sent,
    receive,
    forget,
    start_fine,
    finish_fine,
    transfer,
    copied,
    land
  };
  static constexpr std::size_t kind_count = 13;
  struct Node;
  struct JobState;
  struct Event;
  struct ReadyTask;
  struct Copying;

  void draw_speeds();
  [[nodiscard]] std::size_t possible(const Node& node, Kind kind) const;
  bool step();
  void happen(Node& node, Kind kind, std::size_t index);
  void maybe_cancel();

  [[nodiscard]] const NodeWalk& walk_of_node(const Node& node, std::size_t job) const;
  [[nodiscard]] bool may_generate(const Node& node, std::size_t job) const;
  [[nodiscard]] std::size_t nth_to_generate(const Node& node, std::size_t n) const;
  void generate(Node& node, std::size_t job);
  void begin(Node& node, std::size_t job);
  void append(Node& node, std::size_t job);
  void publish(Node& node, std::size_t job, const protocol::Access& access);
  void observe_items(const protocol::Job& job, const Step& step);

  void collect(Node& node);
  void take_ready(Node& node, protocol::Task& task);
  void take_grant(Node& node, protocol::GrantAction grant);
  void tell(const Node& node, const protocol::AskAction& ask);
  void tell(const Node& node, const protocol::OfferAction& offer);
  void take_send(Node& node, protocol::SendAction send);
  [[nodiscard]] bool admit(Node& node, const ReadyTask& ready);
  void start_task(Node& node, const ReadyTask& ready);
  void finish_task(Node& node, std::size_t index);
  [[nodiscard]] [[nodiscard]] std::vector<std::uint8_t> distances_of_workers() const;
  bool divide_task(Node& node);
  void start_fine_task(Node& node);
  void begin_fine_task(Node& node, const FineWork& work);
  void finish_fine_task(Node& node, std::size_t index);
  void post_payload(Node& node, const protocol::SendAction& send);
  void finish_sending(Node& node, std::size_t index);
  void deliver(Node& node, const Event& event);
  void finish_arrival(Node& node, const Event& event);

  void make_memories();
  [[nodiscard]] static SimulatedMemory& memory_of(Node& node, PlaceId place);
  [[nodiscard]] PlaceId choose_place(const protocol::Task& task);
  void acquire_task(Node& node, ReadyTask ready);
  void acquire_lent_task(Node& node, ReadyTask ready);
  void release_task(Node& node, const ReadyTask& task);
  void begin_copy(Node& node, Copying copy);
  void acquire_copy(Node& node, Copying copy);
  void finish_copy(Node& node, const Copying& copy);
  [[nodiscard]] std::size_t copies_to_begin(const Node& node) const;
  void land(Node& node, std::size_t index);
  void finish_transfer(Node& node, std::size_t index);
  void serve_memories(Node& node);
  void put(Node& node, protocol::BlockRef block, Copy copy, Content content);
  void check_copy(Node& node, protocol::BlockRef block, Copy copy, const char* user);
  void check_copies(Node& node, protocol::BlockRef block);
  void check_memories();

  [[nodiscard]] bool inject(Fault fault);
  [[nodiscard]] PlaceId place_of(protocol::BlockRef block) const;
  [[nodiscard]] Location home_of(protocol::TileId tile) const;
  [[nodiscard]] PlaceId landing_place(const Node& node, const protocol::GrantAction& grant) const;
  void check_place(const Node& node, PlaceId place, protocol::BlockRef block, const char* user);
  void check_progress();
  void check_executions();
  void check_leftovers();
  void check_results();
  [[nodiscard]] std::set<protocol::BlockRef> current_blocks(const Node& node) const;
  void check_end();
  void fail(Check check, std::string text);

  ClusterOptions options_;
  std::vector<SimulatedMatrix> matrices_;
  std::mt19937_64 random_;
  Reference reference_;
  std::vector<std::unique_ptr<JobState>> jobs_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::int32_t fault_countdown_ = 0;
  bool any_cancelled_ = false;  ///< what tasks read is undefined from then on
  Outcome outcome_;
};

}  // namespace heddle::simulation
