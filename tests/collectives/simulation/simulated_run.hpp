#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/group.hpp"
#include "tests/collectives/simulation/part.hpp"
#include "tests/collectives/simulation/program.hpp"
#include "tests/collectives/simulation/simulated_nodes.hpp"

namespace heddle::testing {

/// Runs a program on simulated nodes, and says what is wrong. The program, the order of events and
/// the moment of a fault depend on the seed only.
///
/// What is checked: every operation that ends well has its values and bits, and leaves all other
/// memory alone; where nothing goes wrong, or a call makes no sense, all end without the clock;
/// otherwise each member of the group that has the fault hears of it within some seconds of it, and
/// all other groups end well; no operation, message or group is left; steps are bounded.
class SimulatedRun {
 public:
  SimulatedRun(std::uint64_t seed, Fault fault, FiberStacks& stacks, bool is_verbose);
  SimulatedRun(const SimulatedRun&) = delete;
  SimulatedRun& operator=(const SimulatedRun&) = delete;
  ~SimulatedRun();

  /// What is wrong; empty: nothing.
  [[nodiscard]] std::string run();
  /// A hang: callers are left that never end. The run must not be destroyed.
  [[nodiscard]] bool has_callers_left() const { return has_callers_left_; }
  /// How many times nothing but the clock could move.
  [[nodiscard]] std::int64_t clock_moves() const { return clock_moves_; }

 private:
  static constexpr std::chrono::seconds patience{10};

  /// How a group went on one of its members.
  struct Member {
    bool ends = false;               ///< it is in its last barrier, or behind it
    bool has_done_fault = false;     ///< the call with the fault, well
    std::optional<Error> failure{};  ///< the first
    bool is_refused = false;         ///< that was of the call with the fault
    bool goes_on = false;            ///< the last barrier ended well
  };
  struct UnderWay {
    const Action* action;
    std::unique_ptr<Part> part;
    Collective collective;
  };
  /// A caller: some groups of a node.
  struct Lane {
    std::int32_t node = 0;
    std::int32_t number = 0;
    std::mt19937_64 random;
    std::map<std::int32_t, Group> groups;
    std::vector<UnderWay> under_way;
    std::string doing;
  };

  void say(const std::string& line) const;
  void defect(const std::string& what);
  void start_lane(std::unique_ptr<Lane> lane, void (SimulatedRun::*body)(Lane&));
  void make_groups(Lane& first);
  [[nodiscard]] Group make_world(std::int32_t node);
  void run_lane(Lane& lane);
  void run_action(Lane& lane, const Action& action);
  [[nodiscard]] DeviceRoom room_for(Lane& lane, const Action& action);
  void end_group(Lane& lane, std::int32_t group, const Group& handle);
  void wait_for(Lane& lane, std::size_t place);
  void come_late(Lane& lane);
  void ended_well(const Lane& lane, const Action& action, const Part& part);
  void failed(const Lane& lane, std::int32_t group, const Action* action, const Error& error);
  [[nodiscard]] Member& member(std::int32_t group, std::int32_t node) {
    return members_[{group, node}];
  }
  [[nodiscard]] bool has_fault(std::int32_t group) const;
  [[nodiscard]] std::set<std::int32_t> held_up() const;
  void check_member(std::int32_t group, std::int32_t node);
  void check_group(std::int32_t group);
  void lose_a_node();
  void steps();
  [[nodiscard]] std::int64_t clock_moves_needed() const;

  std::uint64_t seed_;
  bool is_verbose_;
  Program program_;
  std::mt19937_64 random_;
  SimulatedNodes nodes_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  KeptReferences references_;
  std::map<std::pair<std::int32_t, std::int32_t>, Member> members_;  ///< by group and node
  std::int32_t making_ = 0;           ///< nodes that make their groups
  bool is_all_made_ = true;           ///< by those that have done so
  std::int64_t loss_step_ = -1;       ///< of a node or device; -1: none
  std::int32_t lost_ = -1;            ///< the node; or that of the device
  bool fails_others_ = false;         ///< a watch of each node's notices, and makes it fail
  bool is_made_before_loss_ = true;   ///< all groups, on all nodes
  std::set<std::int32_t> had_ended_;  ///< groups that the lost node was about to end
  std::int64_t clock_moves_ = 0;
  bool has_callers_left_ = false;
  std::string defects_;
};

}  // namespace heddle::testing
