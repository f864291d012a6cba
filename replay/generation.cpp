#include "replay/generation.hpp"

#include <algorithm>
#include <span>

namespace heddle::replay {

Generation::Generation(const RunTrace& run, std::int32_t job) {
  for (const Generated& generated : run.generated) {
    if (generated.job != job) continue;
    std::vector<Step>& steps = steps_[generated.node];
    if (!steps.empty() && generated.order <= steps.back().order) continue;
    steps.push_back({generated.order, generated.time_ns});
  }
  for (const Thread& thread : run.threads) {
    if (thread.role != Role::generation) continue;
    std::vector<Interval>& pauses = pauses_[thread.node];
    for (const Wait& wait : run.waits_of(thread)) {
      if (wait.cause != trace::WaitCause::window_full || wait.time.ns() <= 0) continue;
      if (!pauses.empty() && wait.time.start_ns < pauses.back().end_ns) continue;
      pauses.push_back(wait.time);
    }
  }
}

std::int64_t Generation::time_of(NodeId node, std::uint64_t order) const {
  const auto steps = steps_.find(node);
  if (steps == steps_.end()) return long_ago;
  const auto step = std::ranges::lower_bound(steps->second, order, {}, &Step::order);
  return step == steps->second.end() ? long_ago : step->time_ns;
}

std::vector<GenerationTurn> Generation::turns_of(NodeId node) const {
  std::vector<GenerationTurn> turns;
  const auto found = steps_.find(node);
  if (found == steps_.end()) return turns;
  const std::vector<Step>& steps = found->second;
  const auto of_node = pauses_.find(node);
  const std::span<const Interval> pauses =
      of_node == pauses_.end() ? std::span<const Interval>() : of_node->second;
  auto pause = pauses.begin();
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t before_ns = steps[i - 1].time_ns;
    GenerationTurn turn{steps[i - 1].order, steps[i].order, before_ns, before_ns, steps[i].time_ns};
    for (; pause != pauses.end() && pause->end_ns <= turn.end_ns; ++pause) {
      if (pause->end_ns < turn.begin_ns) continue;
      turn.waited = true;
      turn.begin_ns = pause->end_ns;
    }
    turns.push_back(turn);
  }
  return turns;
}

void Generation::for_each_part(NodeId node, Interval time,
                               const std::function<void(Interval part, bool is_full)>& use) const {
  std::int64_t now = time.start_ns;
  const auto until = [&](std::int64_t end_ns, bool is_full) {
    const std::int64_t end = std::clamp(end_ns, now, time.end_ns);
    if (end > now) use({now, end}, is_full);
    now = end;
  };
  if (const auto found = pauses_.find(node); found != pauses_.end()) {
    const std::vector<Interval>& pauses = found->second;
    auto pause = std::ranges::upper_bound(pauses, now, {}, &Interval::end_ns);
    for (; pause != pauses.end() && pause->start_ns < time.end_ns; ++pause) {
      until(pause->start_ns, false);
      until(pause->end_ns, true);
    }
  }
  until(time.end_ns, false);
}

}  // namespace heddle::replay
