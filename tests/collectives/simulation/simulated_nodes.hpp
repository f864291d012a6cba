#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/collectives/execution/waiting.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/user_messages.hpp"
#include "tests/collectives/simulation/fiber.hpp"
#include "tests/collectives/simulation/simulated_gpus.hpp"
#include "tests/transport/p2p/simulated_wire.hpp"

namespace heddle::testing {

/// Nodes on one thread: each has a real endpoint on a simulated wire, and callers, which are
/// fibers, and perhaps devices. A seed says what happens next: a piece moves, a node's progress
/// thread looks, a caller runs until it waits, or a device goes on. Time stands still while
/// anything can happen.
///
/// Boards of a host are real memory. As nothing tells when one has changed, callers that wait look
/// again whenever nothing else can happen.
class SimulatedNodes {
 public:
  struct Options {
    std::vector<collectives::RankPlace> places{};  ///< of each node
    p2p::EndpointOptions endpoint{};
    bool has_windows = false;             ///< nodes of a host share memory
    bool reads = false;                   ///< they read each other's
    std::vector<std::int32_t> devices{};  ///< of each node; empty: none has any
    SimulatedGpus::Options gpus{};
    bool maps_rings_first = false;  ///< nodes introduce themselves before they do anything else
    /// How often callers run, nodes look, pieces move and devices go on, one against another.
    std::array<std::uint32_t, 4> weights{1, 1, 1, 1};
    std::int32_t slow_node = -1;  ///< mostly does not come to look
    /// 1 of so many steps moves the clock, too, though for some seconds at most; 0: none does.
    /// Otherwise it moves where nothing else can.
    std::uint32_t clock_steps = 0;
  };
  SimulatedNodes(Options options, std::uint64_t seed, FiberStacks& stacks);
  SimulatedNodes(const SimulatedNodes&) = delete;
  SimulatedNodes& operator=(const SimulatedNodes&) = delete;
  ~SimulatedNodes();

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(nodes_.size()); }
  [[nodiscard]] const std::shared_ptr<UserMessages>& messages(std::int32_t node) {
    return at(node).messages;
  }
  [[nodiscard]] bool is_lost(std::int32_t node) const {
    return nodes_[static_cast<std::size_t>(node)]->is_lost;
  }
  [[nodiscard]] std::int32_t devices(std::int32_t node) {
    return static_cast<std::int32_t>(at(node).devices.size());
  }
  /// Memory of a device of a node, for as long as the simulation. The test writes and reads it
  /// where no operation does.
  [[nodiscard]] std::byte* device_memory(std::int32_t node, std::int32_t device, std::size_t bytes);
  /// The next operation of the device fails.
  void fail_device(std::int32_t node, std::int32_t device);
  [[nodiscard]] bool has_failed_device() const { return gpus_.has_failed(); }
  /// For the groups of a node.
  [[nodiscard]] collectives::Waiting waiting();

  /// A caller of a node. `body` throws nothing; `told()` is what it does at the time.
  void start(std::int32_t node, std::function<void()> body, std::function<std::string()> told);
  /// By a caller: it does nothing for so many steps.
  void pause(std::int64_t steps);
  /// By a caller: it does nothing while anything else happens.
  void rest();
  /// By a caller: it has got on.
  void got_on() { has_changed_ = true; }

  /// The node stops at once; the others hear of it sooner or later: each from its wire, or, with
  /// `fails_others`, by a watch of its own, which makes the node fail.
  void lose(std::int32_t node, bool fails_others);

  enum class Outcome : std::uint8_t { happened, clock_moved, all_over };
  /// One thing happens.
  [[nodiscard]] Outcome step();
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// How far the clock has moved.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return time_.time_since_epoch(); }
  /// All nodes look at what their groups have left.
  void look_at_all();
  /// A caller ends the messages of a node.
  void end_messages(std::int32_t node);
  /// When all callers are over: delivers what is under way.
  void settle();
  /// When all messages have ended: nodes close what they have open of each other's memory.
  void close();
  /// Then: forgets what came to groups that had failed, and what lost nodes had.
  void drop_remains();
  /// What is left behind that should not be; empty: nothing.
  [[nodiscard]] std::string left_behind();
  /// What each caller does: a line for each.
  [[nodiscard]] std::string callers() const;

 private:
  struct Caller {
    enum class State : std::uint8_t { ready, waiting, paused, resting, over };
    std::int32_t node = 0;
    std::unique_ptr<Fiber> fiber;
    std::function<std::string()> told;
    State state = State::ready;
    std::int64_t until = 0;  ///< paused: a step
  };
  struct Node {
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<DeviceBuffer> memory;  ///< of devices, for callers
    std::unique_ptr<p2p::Endpoint> endpoint;
    std::shared_ptr<UserMessages> messages;
    std::vector<Caller*> callers;
    bool is_active = false;  ///< it is in active_
    bool is_lost = false;
    std::string ends_soon;  ///< why it fails when it looks; empty: it does not
  };

  [[nodiscard]] Node& at(std::int32_t node) { return *nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }
  void activate(std::int32_t node);
  void make_ready(Caller& caller);
  void make_node(std::int32_t node);
  void wake_paused();
  void run_caller();
  void look();
  [[nodiscard]] Outcome sweep();
  void wait();

  Options options_;
  std::mt19937_64 random_;
  FiberStacks& stacks_;
  p2p::SimulatedNet net_;
  SimulatedGpus gpus_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<Caller*> ready_;
  std::vector<Caller*> paused_;
  std::vector<std::int32_t> active_;  ///< nodes that have something to look at
  Caller* running_ = nullptr;
  std::int64_t steps_ = 0;
  std::int32_t clock_jumps_ = 0;
  std::int32_t sweeps_ = 0;  ///< since something happened
  bool has_changed_ = false;
  bool has_lost_ = false;
  bool has_closed_ = false;
  collectives::Waiting::Time time_{};
};

}  // namespace heddle::testing
