#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_map.hpp"
#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/residency/waiting_tasks.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "replay/simulation/event_queue.hpp"
#include "replay/simulation/memory_needs.hpp"
#include "replay/simulation/shared_rates.hpp"
#include "replay/simulation/simulated_lending.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulation_trace.hpp"
#include "replay/simulation/simulator.hpp"

/// Internal to the simulator's files.
namespace heddle::replay {

[[nodiscard]] inline std::int64_t ns_of(double seconds) {
  return std::llround(seconds * 1e9);
}

/// A simulated event; `number` depends on the kind.
struct Event {
  enum class Kind : std::uint8_t {
    generate,         ///< a node's generation thread continues
    task_ends,        ///< on worker `number`
    kernel_launched,  ///< kernel record `number`
    kernel_noticed,   ///< kernel record `number`
    manager_looks,    ///< device `number`, by itself after a pause
    lane_is_free,     ///< lane `number`: the next copy
    copy_ends,        ///< copy record `number`
    flow_ends,        ///< predicted end of a flow with first resource `number`
    ask_arrives,      ///< message record `number`, at the version's sender
    ask_seen,         ///< by its progress thread
    offer_arrives,    ///< message record `number`, at the receiver
    offer_seen,       ///< by its progress thread
    grant_arrives,    ///< message record `number`, at the version's sender
    grant_seen,       ///< by its progress thread
    message_starts,   ///< message record `number`, after its sender's progress thread
    message_arrives,  ///< at the receiver
    message_seen,     ///< by its progress thread
    progress_looks,   ///< by itself after a pause
  };
  Kind kind = Kind::generate;
  NodeId node;
  std::int32_t number = 0;
};

/// Records of ongoing transfers, by a number that events refer to.
template <class Record>
class Records {
 public:
  std::int32_t add(const Record& record) {
    if (free_.empty()) {
      all_.push_back(record);
      return static_cast<std::int32_t>(all_.size()) - 1;
    }
    const std::int32_t number = free_.back();
    free_.pop_back();
    all_[static_cast<std::size_t>(number)] = record;
    return number;
  }
  [[nodiscard]] Record& at(std::int32_t number) { return all_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Record& at(std::int32_t number) const {
    return all_[static_cast<std::size_t>(number)];
  }
  void remove(std::int32_t number) { free_.push_back(number); }

 private:
  std::vector<Record> all_;
  std::vector<std::int32_t> free_;
};

/// Hash of a small number; the upper bits are mixed best.
struct NodeHash {
  std::size_t operator()(std::int32_t node) const {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) * 0x9E3779B97F4A7C15U) >>
           32;
  }
};

/// A version in transfer, from its grant on.
struct SimulatedMessage {
  protocol::GrantAction grant;
  NodeId to;
  protocol::SendAction send;
  std::uint64_t bytes = 0;
  std::int64_t granted_ns = 0;
  std::int64_t grant_seen_ns = 0;  ///< by the sender
  std::int64_t begin_ns = 0;       ///< time from which it was possible (message_begins())
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  std::int32_t next = -1;  ///< next message to the same node
  SimulatedMemory::Reach read_from = SimulatedMemory::Reach::device;
};

struct SimulatedCopy {
  protocol::CopyAction action;
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  bool is_transfer = false;  ///< between a device's block and its host copy
  std::size_t acquired = 0;  ///< number of acquired ends
};

/// Copies of a device in one direction, serial, by priority, as in the copy thread. Transfers
/// precede all copies, by priority: chosen tasks wait for them.
struct CopyLane {
  std::vector<std::int32_t> waiting;    ///< copy records, a heap
  std::deque<std::int32_t> acquired;    ///< copy records with acquired ends; next
  std::int32_t acquiring = 0;           ///< number between the two
  std::vector<std::int32_t> transfers;  ///< copy records
  std::int64_t free_ns = 0;
  bool is_awaited = false;  ///< a lane_is_free is scheduled
};

struct SimulatedKernel {
  protocol::Task* task = nullptr;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::int64_t start_ns = 0;
};

/// Work of a progress thread.
struct ProgressRequest {
  Event event;                             ///< follows
  double seconds = 0;                      ///< of the thread
  double reading_s = 0;                    ///< afterwards, for a neighbour's memory
  std::int64_t later_ns = 0;               ///< from its end to the event
  std::optional<std::int64_t> known_ns{};  ///< the event's time, if independent of the thread
};

/// User of a flow.
struct FlowUser {
  enum class Kind : std::uint8_t { kernel, message };
  Kind kind = Kind::kernel;
  NodeId node;
  std::int32_t number = 0;
};

struct SimulatedNode;
class ReaderWalk;

/// Shared by all nodes: time, events and links.
struct SimulatedWorld {
  const SimulatedMachine& machine;
  SimulatedJob& job;
  const SimulationOptions& options;
  std::int64_t now_ns = 0;
  EventQueue<Event> events{};
  SharedRates rates{};
  std::vector<FlowUser> flow_users{};  ///< by flow
  std::vector<SharedRates::Foreseen> foreseen{};
  Records<SimulatedMessage> messages{};
  std::vector<std::unique_ptr<SimulatedNode>> nodes{};
  SimulationResult result{};

  [[nodiscard]] SimulatedNode& at(NodeId node) {
    return *nodes[static_cast<std::size_t>(node.value())];
  }
  [[nodiscard]] const TaskKind& kind_of(const protocol::Task& task) const {
    return job.kinds()[task.work.parameters[0]];
  }
  /// A task's time relative to its kind's.
  [[nodiscard]] double share_of(const protocol::Task& task, NodeId node) const {
    const TaskKindId kind{static_cast<std::int32_t>(task.work.parameters[0])};
    return job.share(kind, node, static_cast<std::int64_t>(task.order));
  }
  void begin_flow(const FlowUser& user, double amount, ResourceId first, ResourceId second);
  void end_flow(FlowId flow);
  void push_foreseen();
  /// Prefetches the records of these events.
  void fetch_ahead(std::span<const EventQueue<Event>::Entry> soon);
};

/// A node: the protocol with its threads and devices.
struct SimulatedNode final : WalkSink {
  SimulatedNode(SimulatedWorld& world, NodeId id);

  // ---- generation ------------------------------------------------------------------------------
  void begin();
  void generate();
  void append(TaskKindId kind, std::int32_t priority,
              std::span<const protocol::Access> accesses) override;
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) override;
  void release(const protocol::Access& access) override;
  [[nodiscard]] bool has_room() const override;

  // ---- what has happened, by the numbers of events ----------------------------------------------
  void task_ends(std::int32_t number);
  void count_ready(std::int32_t number);
  void kernel_launched(std::int32_t number);
  void kernel_ends(std::int32_t number);
  void kernel_noticed(std::int32_t number);
  void manager_looks(std::int32_t number);
  void lane_is_free(std::int32_t number);
  void copy_ends(std::int32_t number);
  void hint_seen(Event::Kind kind, std::int32_t number);
  void grant_seen(std::int32_t number);
  void message_starts(std::int32_t number);
  void message_sent(std::int32_t number);
  void message_seen(std::int32_t number);
  /// Work from another node: done at the next poll of the progress thread.
  void arrives(const ProgressRequest& request);
  void progress_looks();
  [[nodiscard]] bool is_over() const { return is_drained_; }
  [[nodiscard]] std::string blockage() const { return protocol_.blockage(); }
  void abandon() { protocol_.abandon(); }
  [[nodiscard]] std::int64_t evictions() const { return memory_ ? memory_->evictions() : 0; }
  /// After the last event: ends the waits of generation and progress threads.
  void end_waits(std::int64_t time_ns);
  [[nodiscard]] SimulationTrace& trace() { return trace_; }
  /// Prefetches the records that the event names, by round.
  void fetch_named(const Event& event, int round) const;
  /// Adds the lists of readers that the event will walk, after the rounds of fetch_named().
  void add_readers(const Event& event, ReaderWalk& walk) const;

  SimulatedNodeTotals totals;
  ResourceId network_out;
  ResourceId network_in;

 private:
  struct Worker {
    protocol::Task* task = nullptr;  ///< undivided, or
    FineWork fine;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< end of its last task
    std::int64_t free_ns = 0;
    std::int64_t begun = 0;             ///< tasks begun so far
    std::int64_t stepped_aside_ns = 0;  ///< time of its last yield
  };
  struct DeviceStream {
    std::deque<std::int32_t> kernels;  ///< launched; the first one runs
    std::int32_t given = 0;            ///< launched or about to be
  };
  struct Device {
    std::vector<DeviceStream> streams;
    ResourceId rate;
    std::int64_t manager_free_ns = 0;
    std::int32_t running = 0;
    std::int64_t busy_since_ns = 0;
    WaitingTasks tasks;             ///< only where its tiles come and go
    bool is_going_to_look = false;  ///< a manager_looks is scheduled
  };
  /// Waits for blocks on a device or the host.
  struct Wait {
    enum class Kind : std::uint8_t { lent, kernel, copy };
    Kind kind = Kind::lent;
    protocol::Task* task = nullptr;
    std::int32_t copy = 0;  ///< copy record
  };
  struct CopyEnds {
    struct End {
      PlaceId place;
      BlockUse use;
    };
    std::array<End, 2> all;
    std::size_t count = 0;
  };

  /// The task of a task_ends or kernel event.
  [[nodiscard]] const protocol::Task* ending_task(const Event& event) const;
  void add_matrices();
  /// A job's needs on this node, known before it begins.
  struct Needs {
    std::vector<std::int32_t> blocks;        ///< minimum of its pools, by place
    std::vector<std::uint64_t> block_bytes;  ///< of each of them
    bool has_temporaries = false;
    std::unique_ptr<MemoryNeeds> memory;  ///< null: unlimited memory
    bool fit = true;                      ///< into the devices' memory
  };
  [[nodiscard]] Needs plan();
  [[nodiscard]] std::int32_t extra_blocks(PlaceId place, const Needs& needs) const;
  void compare_with_memory(Needs& needs) const;
  void begin_memory(const Needs& needs);
  /// Place of a block.
  [[nodiscard]] PlaceId place_of(protocol::BlockRef block) const {
    const std::int32_t places = world_.machine.devices + 1;
    return PlaceId{block.pool >= job_pool_base ? block.pool - job_pool_base : block.pool % places};
  }
  void collect();
  [[nodiscard]] ReadyQueue* own_queue(const protocol::Task& task);
  [[nodiscard]] ReadyQueue* own_queue_of(std::int32_t worker) const;
  [[nodiscard]] std::size_t ready_count() const;
  [[nodiscard]] bool has_work() const;
  [[nodiscard]] std::optional<std::int32_t> next_idle();
  [[nodiscard]] bool take_work(std::int32_t number);
  void divide(protocol::Task& task, std::int32_t number);
  void end_fine(std::int32_t number);
  [[nodiscard]] std::int32_t draw_idle();
  [[nodiscard]] std::int64_t waking_ns(const Worker& worker);
  void start_workers();
  void start(std::int32_t number, std::int64_t earliest_ns);
  void step_aside(Worker& worker);
  void discard_freed();
  void push_ready();
  void finished(protocol::Task& task);
  void launch(std::int32_t number);
  void run_next(std::int32_t device_number, std::int32_t stream_number);
  void post_copy(const protocol::CopyAction& action);
  [[nodiscard]] static std::int32_t lane_of(const protocol::CopyAction& action);
  void next_copies(CopyLane& lane);
  void start_copies(std::int32_t lane_number);
  void ask_for_tiles(protocol::Task& task);
  bool lend();
  bool serve_memory();
  void start_transfer(const SimulatedMemory::Transfer& transfer);
  [[nodiscard]] std::int32_t take_transfer(CopyLane& lane);
  void transfer_ends(const SimulatedCopy& copy);
  void tiles_came(std::int32_t number);
  void release_tiles(const protocol::Task& task);
  [[nodiscard]] static CopyEnds ends_of(const protocol::CopyAction& action);
  void acquire_ends(std::int32_t number);
  void release_ends(const protocol::CopyAction& action);
  [[nodiscard]] bool reach(PlaceId place, const BlockUse& use, SimulatedMemory::Reach& reach);
  void end_reach(PlaceId place, const BlockUse& use, SimulatedMemory::Reach reach);
  [[nodiscard]] protocol::Task* next_of_device(std::int32_t number);
  void ask_ahead(std::int32_t number);
  void ask(const protocol::AskAction& wanted);
  void offer(const protocol::OfferAction& offered);
  void tell(Event::Kind kind, NodeId to, const SimulatedMessage& message);
  void grant(const protocol::GrantAction& wanted);
  void send(const protocol::SendAction& wanted);
  void send_next(std::int32_t number);
  void posted(const ProgressRequest& request);
  [[nodiscard]] bool progress_is_looking() const;
  void expect_a_look();
  void serve(const ProgressRequest& request);
  void serve_all();
  void post(Event::Kind kind, std::int64_t time_ns, std::int32_t number, NodeId node);

  SimulatedWorld& world_;
  NodeId id_;
  protocol::Protocol protocol_;
  protocol::Actions actions_;
  protocol::Job* job_ = nullptr;
  bool is_drained_ = false;
  std::unique_ptr<NodeWalk> walk_;
  bool walk_ended_ = false;
  bool is_generating_ = false;
  std::int32_t budget_ = 0;  ///< items left in this turn of the generation thread
  std::int32_t appended_ = 0;
  std::int32_t turn_ = 1;                           ///< items of the next turn
  std::int64_t generation_free_ns_ = 0;             ///< end of the last turn
  std::vector<std::unique_ptr<ReadyQueue>> ready_;  ///< by place
  std::vector<Worker> workers_;
  /// By worker: tasks bound to it; empty if none are.
  std::vector<std::unique_ptr<ReadyQueue>> own_ready_;
  std::vector<std::int32_t> idle_;  ///< workers; taken from the back, or at random (draw_idle())
  std::int64_t drawn_workers_ = 0;
  std::int64_t drawn_wakings_ = 0;
  std::optional<FineScheduler> fine_;  ///< once a task was divided
  std::vector<Device> devices_;
  std::vector<CopyLane> lanes_;  ///< two per device: to it, and to the host
  Records<SimulatedKernel> kernels_;
  Records<SimulatedCopy> copies_;
  std::unique_ptr<SimulatedMemory> memory_;    ///< null: blocks stay on their devices
  std::unique_ptr<SimulatedLending> lending_;  ///< null: tasks run where their tiles live
  Records<Wait> waits_;
  std::vector<std::int32_t> unreached_sends_;  ///< message records whose block is in transfer
  std::vector<std::int32_t> unreached_receives_;
  bool device_has_more_ = false;          ///< more ready tasks since workers last looked
  std::int64_t progress_free_ns_ = 0;     ///< end of its queued work
  std::int64_t reading_free_ns_ = 0;      ///< end of its queued reads beside workers
  std::int64_t reading_on_cores_ns_ = 0;  ///< of these reads, time that no worker has yielded yet
  std::vector<ProgressRequest> to_progress_;  ///< until it polls
  std::optional<std::int64_t> next_look_ns_;  ///< a progress_looks is scheduled
  /// The last started message to each node; the first is in transfer.
  FlatMap<std::int32_t, std::int32_t, NodeHash> leaving_;
  SimulationTrace trace_;
};

}  // namespace heddle::replay
