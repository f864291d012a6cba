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
#include "node-runtime/protocol/ready_queue.hpp"
#include "node-runtime/residency/waiting_tasks.hpp"
#include "replay/simulation/event_queue.hpp"
#include "replay/simulation/memory_needs.hpp"
#include "replay/simulation/shared_rates.hpp"
#include "replay/simulation/simulated_lending.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulation_trace.hpp"
#include "replay/simulation/simulator.hpp"

/// The parts of a simulation; for its own files alone.
namespace heddle::replay {

[[nodiscard]] inline std::int64_t ns_of(double seconds) {
  return std::llround(seconds * 1e9);
}

/// What can happen. `number` says to whom or what, by kind.
struct Event {
  enum class Kind : std::uint8_t {
    generate,         ///< a node's generation thread goes on
    task_ends,        ///< of worker `number`
    kernel_launched,  ///< of kernel record `number`
    kernel_noticed,   ///< likewise
    manager_looks,    ///< of device `number`, by itself after a pause
    lane_is_free,     ///< of lane `number`: the next copy
    copy_ends,        ///< of copy record `number`
    flow_ends,        ///< of those with first resource `number`, as foreseen
    ask_arrives,      ///< of message record `number`, at the one who will send the version
    ask_seen,         ///< likewise, by its progress thread
    offer_arrives,    ///< of message record `number`, at the one who has asked
    offer_seen,       ///< likewise
    grant_arrives,    ///< of message record `number`, at the one who sends the version
    grant_seen,       ///< likewise, by its progress thread
    message_starts,   ///< of message record `number`, behind its sender's progress thread
    message_arrives,  ///< at the receiver
    message_seen,     ///< by its progress thread
    progress_looks,   ///< which it does by itself after a pause
  };
  Kind kind = Kind::generate;
  NodeId node;
  std::int32_t number = 0;
};

/// What happens on its way from one node to another, or on one alone, with a number that events
/// name.
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

/// Of a node's number, or any other: its upper bits are the best mixed.
struct NodeHash {
  std::size_t operator()(std::int32_t node) const {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) * 0x9E3779B97F4A7C15U) >>
           32;
  }
};

/// A version on its way, from its grant on.
struct SimulatedMessage {
  protocol::GrantAction grant;
  NodeId to;
  protocol::SendAction send;
  std::uint64_t bytes = 0;
  std::int64_t granted_ns = 0;
  std::int64_t grant_seen_ns = 0;  ///< by the sender
  std::int64_t begin_ns = 0;       ///< since then it could be (message_begins())
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  std::int32_t next = -1;  ///< of those that leave for the same node
  SimulatedMemory::Reach read_from = SimulatedMemory::Reach::device;
};

struct SimulatedCopy {
  protocol::CopyAction action;
  std::int64_t posted_ns = 0;
  std::int64_t start_ns = 0;
  bool is_transfer = false;  ///< between a device's block and the host's copy of it
  std::size_t acquired = 0;  ///< of its ends
};

/// One way of a device's copies, one after the other, the most urgent of those that wait first, as
/// the copy thread has them. Transfers go before all of them, likewise the most urgent first: tasks
/// wait for them that have been chosen already.
struct CopyLane {
  std::vector<std::int32_t> waiting;    ///< copy records, a heap
  std::deque<std::int32_t> acquired;    ///< likewise, whose ends are there; go next
  std::int32_t acquiring = 0;           ///< on their way from the one to the other
  std::vector<std::int32_t> transfers;  ///< likewise
  std::int64_t free_ns = 0;
  bool is_awaited = false;  ///< there will be a lane_is_free
};

struct SimulatedKernel {
  protocol::Task* task = nullptr;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::int64_t start_ns = 0;
};

/// What a progress thread is to do.
struct ProgressRequest {
  Event event;                             ///< that follows
  double seconds = 0;                      ///< of the thread
  double reading_s = 0;                    ///< after that, of a neighbour's memory
  std::int64_t later_ns = 0;               ///< from its end to the event
  std::optional<std::int64_t> known_ns{};  ///< when the event is, whatever the thread makes of it
};

/// Whose a flow is.
struct FlowUser {
  enum class Kind : std::uint8_t { kernel, message };
  Kind kind = Kind::kernel;
  NodeId node;
  std::int32_t number = 0;
};

struct SimulatedNode;
class ReaderWalk;

/// What all nodes share: time, what is going to happen, and links.
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
  /// Of what its kind takes.
  [[nodiscard]] double share_of(const protocol::Task& task, NodeId node) const {
    const TaskKindId kind{static_cast<std::int32_t>(task.work.parameters[0])};
    return job.share(kind, node, static_cast<std::int64_t>(task.order));
  }
  void begin_flow(const FlowUser& user, double amount, ResourceId first, ResourceId second);
  void end_flow(FlowId flow);
  void push_foreseen();
  /// What these events will need, into the caches.
  void fetch_ahead(std::span<const EventQueue<Event>::Entry> soon);
};

/// A node of the protocol, and the threads and devices around it.
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
  /// For the progress thread from outside: done when it looks.
  void arrives(const ProgressRequest& request);
  void progress_looks();
  [[nodiscard]] bool is_over() const { return is_drained_; }
  [[nodiscard]] std::string blockage() const { return protocol_.blockage().text; }
  void abandon() { protocol_.abandon(); }
  [[nodiscard]] std::int64_t evictions() const { return memory_ ? memory_->evictions() : 0; }
  /// After the last event: generation and messages had nothing to do any more.
  void end_waits(std::int64_t time_ns);
  [[nodiscard]] SimulationTrace& trace() { return trace_; }
  /// Into the caches: what the event names, in that many steps from one thing to the next.
  void fetch_named(const Event& event, int round) const;
  /// The lists of readers that the event will walk, once fetch_named() has done its rounds.
  void add_readers(const Event& event, ReaderWalk& walk) const;

  SimulatedNodeTotals totals;
  ResourceId network_out;
  ResourceId network_in;

 private:
  struct Worker {
    protocol::Task* task = nullptr;  ///< that it runs whole, or
    FineWork fine;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< of its last task
    std::int64_t free_ns = 0;
    std::int64_t begun = 0;             ///< tasks so far
    std::int64_t stepped_aside_ns = 0;  ///< last, for the threads that share its core
  };
  struct DeviceStream {
    std::deque<std::int32_t> kernels;  ///< launched; the first one runs
    std::int32_t given = 0;            ///< these, and those about to be
  };
  struct Device {
    std::vector<DeviceStream> streams;
    ResourceId rate;
    std::int64_t manager_free_ns = 0;
    std::int32_t running = 0;
    std::int64_t busy_since_ns = 0;
    WaitingTasks tasks;             ///< only where its tiles come and go
    bool is_going_to_look = false;  ///< there will be a manager_looks
  };
  /// For blocks that a device, or the host, is to have.
  struct Wait {
    enum class Kind : std::uint8_t { lent, kernel, copy };
    Kind kind = Kind::lent;
    protocol::Task* task = nullptr;
    std::int32_t copy = 0;  ///< record
  };
  struct CopyEnds {
    struct End {
      PlaceId place;
      BlockUse use;
    };
    std::array<End, 2> all;
    std::size_t count = 0;
  };

  /// Of a task's or kernel's end.
  [[nodiscard]] const protocol::Task* ending_task(const Event& event) const;
  void add_matrices();
  /// What a job needs here, known before it begins.
  struct Needs {
    std::vector<std::int32_t> blocks;  ///< of its pools at least, by place
    std::uint64_t largest_tile_bytes = 0;
    bool has_temporaries = false;
    std::unique_ptr<MemoryNeeds> memory;  ///< null: memory is as large as can be
    bool fit = true;                      ///< all of them into the devices' memory
  };
  [[nodiscard]] Needs plan();
  [[nodiscard]] std::int32_t extra_blocks(PlaceId place, const Needs& needs) const;
  void compare_with_memory(Needs& needs) const;
  void begin_memory(const Needs& needs);
  /// Of a device's block, or the host's.
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
  std::int32_t budget_ = 0;  ///< items of this turn of the generation thread
  std::int32_t appended_ = 0;
  std::int32_t turn_ = 1;                           ///< items of the next one
  std::int64_t generation_free_ns_ = 0;             ///< end of the last one
  std::vector<std::unique_ptr<ReadyQueue>> ready_;  ///< by place
  std::vector<Worker> workers_;
  /// By worker: tasks that only it runs; empty where there are none.
  std::vector<std::unique_ptr<ReadyQueue>> own_ready_;
  std::vector<std::int32_t> idle_;  ///< workers; the last one is the next, or any (draw_idle())
  std::int64_t drawn_workers_ = 0;
  std::int64_t drawn_wakings_ = 0;
  std::optional<FineScheduler> fine_;  ///< from the first divided task on
  std::vector<Device> devices_;
  std::vector<CopyLane> lanes_;  ///< of each device: to it, from host and devices; to the host
  Records<SimulatedKernel> kernels_;
  Records<SimulatedCopy> copies_;
  std::unique_ptr<SimulatedMemory> memory_;    ///< null: blocks stay on their devices
  std::unique_ptr<SimulatedLending> lending_;  ///< null: tasks run where their tiles live
  Records<Wait> waits_;
  std::vector<std::int32_t> unreached_sends_;  ///< message records, whose block is on its way
  std::vector<std::int32_t> unreached_receives_;
  bool device_has_more_ = false;              ///< ready tasks than when workers last looked
  std::int64_t progress_free_ns_ = 0;         ///< end of what it has to do
  std::int64_t reading_free_ns_ = 0;          ///< likewise of what it reads beside workers
  std::int64_t reading_on_cores_ns_ = 0;      ///< of that, what no worker has given it yet
  std::vector<ProgressRequest> to_progress_;  ///< until it looks
  std::optional<std::int64_t> next_look_ns_;  ///< there will be a progress_looks
  /// Of the messages to another node that have started, the last one; the first is on its way.
  FlatMap<std::int32_t, std::int32_t, NodeHash> leaving_;
  SimulationTrace trace_;
};

}  // namespace heddle::replay
