#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/simulation/simulated_world.hpp"
#include "replay/simulation/simulation_trace.hpp"

namespace heddle::replay {

/// Work of a progress thread.
struct ProgressRequest {
  Event event;                             ///< follows
  double seconds = 0;                      ///< of the thread
  double reading_s = 0;                    ///< afterwards, for a neighbour's memory
  std::int64_t later_ns = 0;               ///< from its end to the event
  std::optional<std::int64_t> known_ns{};  ///< the event's time, if independent of the thread
};

/// A node's progress thread: when it polls, and how long it takes for what it finds. It has a core
/// of its own, polls with pauses, or shares the workers' cores (SimulatedMachine::shares_cores),
/// which it gets from an idle worker, or from one that yields between two tasks.
///
/// Invariant: requests wait only while a poll is scheduled.
class ProgressThread {
 public:
  /// `idle`: the node's idle workers, which leave their cores to messages. All outlive it.
  ProgressThread(SimulatedWorld& world, NodeId node, const std::vector<std::int32_t>& idle,
                 SimulationTrace& trace, SimulatedNodeTotals& totals)
      : world_(world), node_(node), idle_(idle), trace_(trace), totals_(totals) {}

  /// Work from this node's threads, which wake it.
  void posted(const ProgressRequest& request);
  /// Work from another node: done at the next poll.
  void arrives(const ProgressRequest& request);
  /// Event: a poll after a pause.
  void looks();
  /// Polls: does all that waits.
  void serve_all();
  /// A worker yields its core: when the thread gives it back.
  [[nodiscard]] std::int64_t take_core();
  /// After the last event.
  void end_wait(std::int64_t time_ns) { trace_.progress_waited(free_ns_, time_ns); }

  [[nodiscard]] bool is_valid() const { return waiting_.empty() || next_look_ns_.has_value(); }

 private:
  [[nodiscard]] bool is_looking() const;
  void wait(const ProgressRequest& request);
  void serve(const ProgressRequest& request);

  SimulatedWorld& world_;
  NodeId node_;
  const std::vector<std::int32_t>& idle_;
  SimulationTrace& trace_;
  SimulatedNodeTotals& totals_;
  std::int64_t free_ns_ = 0;              ///< end of its queued work
  std::int64_t reading_free_ns_ = 0;      ///< end of its queued reads beside workers
  std::int64_t reading_on_cores_ns_ = 0;  ///< of these reads, time that no worker has yielded yet
  std::vector<ProgressRequest> waiting_;  ///< until it polls
  std::optional<std::int64_t> next_look_ns_;  ///< a progress_looks is scheduled
};

}  // namespace heddle::replay
