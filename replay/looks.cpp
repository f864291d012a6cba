#include "replay/looks.hpp"

#include <algorithm>
#include <span>

namespace heddle::replay {

std::vector<Gap> gaps_of(const RunTrace& run, const Thread& thread, bool shares_cores) {
  std::vector<Gap> gaps;
  const std::span<const Wait> waits = run.waits_of(thread);
  auto wait = waits.begin();
  std::int64_t stepped_aside_ns = 0;
  for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
    TaskId next = task;
    if (++next == thread.last_task) break;
    Gap gap{.before = task, .time = {run.at(task).time.end_ns, run.at(next).time.start_ns}};
    while (wait != waits.end() && wait->time.end_ns <= gap.time.start_ns) ++wait;
    gap.waited = wait != waits.end() && wait->time.start_ns < gap.time.end_ns;
    gap.stepped_aside = shares_cores && gap.time.start_ns - stepped_aside_ns >= step_aside_ns;
    // A waiting worker has stepped aside before.
    if (gap.stepped_aside) stepped_aside_ns = gap.waited ? gap.time.start_ns : gap.time.end_ns;
    gaps.push_back(gap);
  }
  return gaps;
}

Looks::Looks(const RunTrace& run, const SimulatedMachine& machine) {
  if (!machine.shares_cores()) return;
  for (const Thread& thread : run.threads) {
    if (thread.role != Role::worker) continue;
    std::vector<Interval>& of_node = by_node_[thread.node.value()];
    for (const Gap& gap : gaps_of(run, thread, true)) {
      if (gap.waited || gap.stepped_aside) of_node.push_back(gap.time);
    }
    // It has no task before its first or after its last one.
    for (const Wait& wait : run.waits_of(thread)) of_node.push_back(wait.time);
  }
  for (auto& [node, looks] : by_node_) {
    std::ranges::sort(looks, {}, &Interval::start_ns);
    std::vector<Interval> apart;
    for (const Interval& look : looks) {
      if (apart.empty() || look.start_ns > apart.back().end_ns) {
        apart.push_back(look);
      } else {
        apart.back().end_ns = std::max(apart.back().end_ns, look.end_ns);
      }
    }
    looks = std::move(apart);
  }
}

std::int64_t Looks::first(NodeId node, std::int64_t time_ns) const {
  const auto found = by_node_.find(node.value());
  if (found == by_node_.end()) return time_ns;
  const std::vector<Interval>& looks = found->second;
  const auto next = std::ranges::lower_bound(looks, time_ns, {}, &Interval::end_ns);
  return next == looks.end() ? time_ns : std::max(time_ns, next->start_ns);
}

}  // namespace heddle::replay
