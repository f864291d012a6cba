#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/residency/waiting_tasks.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "replay/simulation/copy_lanes.hpp"
#include "replay/simulation/direct_copies.hpp"
#include "replay/simulation/outgoing_messages.hpp"
#include "replay/simulation/progress_thread.hpp"
#include "replay/simulation/simulated_lending.hpp"
#include "replay/simulation/simulated_memory.hpp"
#include "replay/simulation/simulated_records.hpp"
#include "replay/simulation/simulated_world.hpp"
#include "replay/simulation/simulation_trace.hpp"

/// Internal to the simulator's files.
namespace heddle::replay {

struct SimulatedKernel {
  protocol::Task* task = nullptr;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::int64_t start_ns = 0;
};

class NodeNeeds;
class ReaderWalk;

/// A node: the protocol with its threads and devices.
///
/// The class has about 60 member functions: the generation thread, the workers, the devices'
/// kernels and their tiles all change what the protocol has made ready, and every event of theirs
/// ends in collect(), which may start work of all of them. What can be simulated without the
/// protocol has classes of its own: CopyLanes, ProgressThread, OutgoingMessages, DirectCopies,
/// SimulatedMemory, NodeNeeds. Workers are in simulated_workers.cpp, kernels in
/// simulated_devices.cpp, devices' tiles in device_tiles.cpp, lent tasks in simulated_lending.cpp,
/// messages in simulated_messages.cpp.
struct SimulatedNode final : WalkSink {
  SimulatedNode(SimulatedWorld& world, NodeId id);

  // ---- generation ------------------------------------------------------------------------------
  void begin();
  void generate();
  void append(TaskKindId kind, std::int32_t priority,
              std::span<const protocol::Access> accesses) override;
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) override;
  void publish(const protocol::Access& access, std::span<const protocol::Reader> readers) override;
  void release(const protocol::Access& access) override;
  [[nodiscard]] bool has_room() const override;

  // ---- what has happened, by the numbers of events ----------------------------------------------
  void task_ends(std::int32_t number);
  void count_ready(std::int32_t number);
  void kernel_launched(std::int32_t number);
  void kernel_ends(std::int32_t number);
  void kernel_noticed(std::int32_t number);
  void manager_looks(std::int32_t number);
  void copy_ends(std::int32_t number);
  void hint_seen(Event::Kind kind, std::int32_t number);
  void grant_seen(std::int32_t number);
  void message_sent(std::int32_t number);
  void message_arrives(std::int32_t number);
  void message_seen(std::int32_t number);
  [[nodiscard]] bool is_over() const { return is_drained_; }
  [[nodiscard]] std::string blockage() const { return protocol_.blockage(); }
  void abandon() { protocol_.abandon(); }
  [[nodiscard]] std::int64_t evictions() const { return memory_ ? memory_->evictions() : 0; }
  /// After the last event: ends the waits of generation and progress threads.
  void end_waits(std::int64_t time_ns);
  [[nodiscard]] SimulationTrace& trace() { return trace_; }
  // Events of copies, polls and messages that do not concern the protocol go to these.
  [[nodiscard]] CopyLanes& copies() { return copies_; }
  [[nodiscard]] ProgressThread& progress() { return progress_; }
  [[nodiscard]] OutgoingMessages& messages() { return messages_; }
  [[nodiscard]] DirectCopies& direct_copies() { return direct_copies_; }
  /// Prefetches the records that the event names, by round.
  void fetch_named(const Event& event, int round) const;
  /// Adds the lists of readers that the event will walk, after the rounds of fetch_named().
  void add_readers(const Event& event, ReaderWalk& walk) const;

  SimulatedNodeTotals totals;

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

  /// The task of a task_ends or kernel event.
  [[nodiscard]] const protocol::Task* ending_task(const Event& event) const;
  void add_matrices();
  void begin_memory(const NodeNeeds& needs);
  void begin_lending(const NodeNeeds& needs);
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
  void ask_for_tiles(protocol::Task& task);
  bool lend();
  bool serve_memory();
  void transfer_ends(const SimulatedCopy& copy);
  void tiles_came(std::int32_t number);
  void release_tiles(const protocol::Task& task);
  [[nodiscard]] protocol::Task* next_of_device(std::int32_t number);
  void ask_ahead(std::int32_t number);

  SimulatedWorld& world_;
  NodeId id_;
  SimulationTrace trace_;
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
  Records<SimulatedKernel> kernels_;
  std::unique_ptr<SimulatedMemory> memory_;    ///< null: blocks stay on their devices
  std::unique_ptr<SimulatedLending> lending_;  ///< null: tasks run where their tiles live
  Records<MemoryWait> waits_;
  CopyLanes copies_;
  ProgressThread progress_;
  OutgoingMessages messages_;
  DirectCopies direct_copies_;
  std::vector<std::int32_t> unreached_receives_;  ///< message records whose block is in transfer
  bool device_has_more_ = false;                  ///< more ready tasks since workers last looked
};

}  // namespace heddle::replay
