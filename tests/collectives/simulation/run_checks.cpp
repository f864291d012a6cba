/// What must hold behind a run, and its loop.

#include <algorithm>
#include <fmt/core.h>
#include <string_view>

#include "tests/collectives/simulation/simulated_run.hpp"

namespace heddle::testing {
namespace {

constexpr std::int64_t steps_max = 20'000'000;
/// Members compare their calls when nothing has happened for a second.
constexpr std::int64_t clock_moves_for_comparisons = 20;
/// The watchdog tells of those that do not call, in one group behind another.
constexpr std::int64_t clock_moves_for_watchdogs = 200;
constexpr std::int64_t clock_moves_max = 1000;

/// Of a node's own device, or of a message's other side.
bool tells_of_device(const Error& failure) {
  const bool is_code =
      failure.code() == ErrorCode::internal || failure.code() == ErrorCode::communication;
  return is_code && std::string_view(failure.what()).find("fault") != std::string_view::npos;
}

}  // namespace

std::string SimulatedRun::run() {
  making_ = nodes_.count();
  for (std::int32_t n = 0; n < nodes_.count(); ++n) {
    auto lane = std::make_unique<Lane>();
    lane->node = n;
    lane->random.seed(seed_ * 1000 + static_cast<std::uint64_t>(n * 8 + 7));
    start_lane(std::move(lane), &SimulatedRun::make_groups);
  }
  steps();
  if (has_callers_left_) return defects_;
  nodes_.look_at_all();
  nodes_.settle();
  // Messages that failures have left end with their nodes' others.
  const auto look = [&] {
    const std::string left = nodes_.left_behind();
    if (!left.empty()) defect("left behind: " + left);
  };
  if (program_.fault == Fault::none) look();
  for (std::int32_t n = 0; n < nodes_.count(); ++n) nodes_.end_messages(n);
  steps();
  if (has_callers_left_) return defects_;
  nodes_.settle();
  nodes_.close();
  nodes_.drop_remains();
  look();
  for (std::size_t g = 0; g < program_.groups.size(); ++g) {
    check_group(static_cast<std::int32_t>(g));
  }
  return defects_;
}

/// The clock moves only for those that nobody tells.
void SimulatedRun::steps() {
  using Outcome = SimulatedNodes::Outcome;
  bool is_told = false;
  for (;;) {
    if (loss_step_ >= 0 && nodes_.steps() >= loss_step_) lose_a_node();
    const Outcome outcome = nodes_.step();
    if (outcome == Outcome::all_over) return;
    clock_moves_ += outcome == Outcome::clock_moved ? 1 : 0;
    const bool is_stuck = clock_moves_ > clock_moves_needed();
    if ((is_stuck || nodes_.steps() > steps_max) && !is_told) {
      is_told = true;
      defect(fmt::format("{} in step {}, {} of the clock:{}", is_stuck ? "a hang" : "no end",
                         nodes_.steps(), clock_moves_, nodes_.callers()));
    }
    // Until then the product's own watchdog says which step each rank waits for.
    if (clock_moves_ > clock_moves_max || nodes_.steps() > 2 * steps_max) {
      has_callers_left_ = true;
      return;
    }
  }
}

std::int64_t SimulatedRun::clock_moves_needed() const {
  switch (program_.fault) {
    case Fault::none:
    case Fault::wrong_call:
    case Fault::device:
      return 0;
    case Fault::misfit:
      return clock_moves_for_comparisons;
    case Fault::lost_node:
      break;
  }
  return clock_moves_for_watchdogs;
}

void SimulatedRun::lose_a_node() {
  loss_step_ = -1;
  if (program_.fault == Fault::device) {
    say(fmt::format("[{}] a device of node {} fails\n", nodes_.steps(), lost_));
    return nodes_.fail_device(lost_, 0);
  }
  say(fmt::format("[{}] node {} is lost\n", nodes_.steps(), lost_));
  for (std::size_t g = 0; g < program_.groups.size(); ++g) {
    const auto group = static_cast<std::int32_t>(g);
    if (member(group, lost_).ends) had_ended_.insert(group);
  }
  is_made_before_loss_ = making_ == 0 && is_all_made_;
  nodes_.lose(lost_, fails_others_);
}

bool SimulatedRun::has_fault(std::int32_t group) const {
  switch (program_.fault) {
    case Fault::none:
      return false;
    case Fault::wrong_call:
    case Fault::misfit:
      return program_.actions[static_cast<std::size_t>(program_.fault_action)].group == group;
    case Fault::device:
      return nodes_.has_failed_device() && program_.group(group).rank_of(lost_) >= 0;
    case Fault::lost_node:
      break;
  }
  if (!nodes_.is_lost(lost_)) return false;  // everything was over before
  return fails_others_ || program_.group(group).rank_of(lost_) >= 0;
}

/// A caller that waits in a group with the fault may come so late to another one that its watchdog
/// barks; and who makes groups with a lost node may make none.
std::set<std::int32_t> SimulatedRun::held_up() const {
  std::set<std::int32_t> found;
  const auto count = static_cast<std::int32_t>(program_.groups.size());
  for (std::int32_t g = 0; g < count; ++g) {
    if (has_fault(g) || !is_made_before_loss_) found.insert(g);
  }
  const auto shares_a_caller = [&](const GroupPlan& a, const GroupPlan& b) {
    return a.lane == b.lane &&
           std::ranges::any_of(a.nodes, [&](std::int32_t node) { return b.rank_of(node) >= 0; });
  };
  for (std::size_t before = 0; before != found.size() && clock_moves_ > 0;) {
    before = found.size();
    for (std::int32_t g = 0; g < count; ++g) {
      const bool is_held_up = std::ranges::any_of(found, [&](std::int32_t other) {
        return shares_a_caller(program_.group(g), program_.group(other));
      });
      if (is_held_up) found.insert(g);
    }
  }
  return found;
}

void SimulatedRun::check_group(std::int32_t group) {
  std::int32_t going_on = 0;
  std::int32_t alive = 0;
  for (const std::int32_t node : program_.group(group).nodes) {
    if (nodes_.is_lost(node)) continue;
    ++alive;
    going_on += member(group, node).goes_on ? 1 : 0;
    check_member(group, node);
  }
  const bool may_differ = program_.fault == Fault::lost_node;
  if (going_on == 0 || going_on == alive || may_differ) return;
  defect(fmt::format("group {} goes on for {} of {} members", group, going_on, alive));
}

void SimulatedRun::check_member(std::int32_t group, std::int32_t node) {
  const Member& own = member(group, node);
  const std::string who = fmt::format("group {} on node {}", group, node);
  if (!has_fault(group)) {
    const bool may_fail = !own.failure || own.failure->code() == ErrorCode::communication;
    if (!own.goes_on && may_fail && held_up().contains(group)) return;
    if (own.failure) defect(fmt::format("{} has failed: {}", who, own.failure->what()));
    if (!own.goes_on) defect(fmt::format("{} does not go on", who));
    return;
  }
  switch (program_.fault) {
    case Fault::none:
      return;
    case Fault::wrong_call:
      // It went well for those that had all that they needed; then the group fails.
      if (own.goes_on && own.has_done_fault) defect(fmt::format("{} goes on", who));
      if (!own.failure) return defect(fmt::format("{} has heard of no wrong call", who));
      if (own.failure->code() == ErrorCode::usage) return;
      break;
    case Fault::misfit:
      if (!own.failure) return defect(fmt::format("{} has heard of no misfit", who));
      if (own.goes_on) defect(fmt::format("{} goes on", who));
      if (own.failure->code() == ErrorCode::usage) return;
      break;
    case Fault::device:
      // Perhaps it had nothing to do for this group, or was no longer needed.
      if (!own.failure || tells_of_device(*own.failure)) return;
      break;
    case Fault::lost_node:
      // Perhaps the lost node had done all that the others needed.
      if (own.goes_on && (!had_ended_.contains(group) || fails_others_)) {
        defect(fmt::format("{} goes on", who));
      }
      if (!own.failure || own.failure->code() == ErrorCode::communication) return;
      break;
  }
  defect(fmt::format("{} has heard something else: {}", who, own.failure->what()));
}

}  // namespace heddle::testing
