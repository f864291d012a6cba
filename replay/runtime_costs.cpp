#include "replay/runtime_costs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/median.hpp"
#include "replay/generation.hpp"
#include "replay/looks.hpp"

namespace heddle::replay {
namespace {

/// Running mean.
struct Mean {
  double sum = 0;
  double count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  [[nodiscard]] std::optional<double> get() const {
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  }
};

std::optional<double> median_of(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

/// Work of a node's progress thread over time, in seconds.
struct Served {
  std::int64_t time_ns = 0;
  double seconds = 0;
};

using ServedByNode = std::unordered_map<std::int32_t, std::vector<Served>>;

ServedByNode served_by(const RunTrace& run, const SimulatedMachine& machine) {
  ServedByNode served;
  for (const Message& message : run.messages) {
    served[message.from.value()].push_back({message.time.start_ns, machine.message_s});
    const bool reads = machine.are_neighbours(message.from, message.to);
    const double reading = reads ? machine.reading_s(static_cast<double>(message.bytes)) : 0;
    served[message.to.value()].push_back({message.time.end_ns, machine.message_s + reading});
  }
  for (auto& [node, list] : served) std::ranges::sort(list, {}, &Served::time_ns);
  return served;
}

double served_within(const std::vector<Served>& served, Interval time) {
  double seconds = 0;
  auto next = std::ranges::lower_bound(served, time.start_ns, {}, &Served::time_ns);
  for (; next != served.end() && next->time_ns <= time.end_ns; ++next) seconds += next->seconds;
  return seconds;
}

void add_gaps(const RunTrace& run, std::int32_t job, const SimulatedMachine& machine,
              RuntimeCosts& costs) {
  const bool is_shared = machine.shares_cores();
  const ServedByNode served = is_shared ? served_by(run, machine) : ServedByNode{};
  Mean between;
  Mean looks;
  for (const Thread& thread : run.threads) {
    if (thread.role != Role::worker) continue;
    for (const Gap& gap : gaps_of(run, thread, is_shared)) {
      if (gap.waited || run.at(gap.before).job != job) continue;
      const double seconds = static_cast<double>(gap.time.ns()) * 1e-9;
      if (!gap.stepped_aside) {
        between.add(seconds);
        continue;
      }
      const auto of_node = served.find(thread.node.value());
      looks.add(seconds - (of_node == served.end() ? 0 : served_within(of_node->second, gap.time)));
    }
  }
  costs.task_s = between.get();
  costs.look_s = looks.get();
  if (costs.look_s) costs.look_s = std::max(0.0, *costs.look_s);
}

std::optional<double> append_of(const RunTrace& run, std::int32_t job) {
  const Generation generation(run, job);
  std::vector<double> seconds;
  const Generated* before = nullptr;
  std::uint64_t items_before = 0;
  for (const Generated& now : run.generated) {
    if (now.job != job) continue;
    const bool goes_on = before != nullptr && before->node == now.node && now.order > before->order;
    const std::uint64_t items = goes_on ? now.order - before->order : 0;
    // Two full turns, so that it does not matter to which of them the time between belongs.
    if (items > 0 && items == items_before) {
      std::int64_t work_ns = 0;
      generation.for_each_part(now.node, {before->time_ns, now.time_ns},
                               [&](Interval part, bool pauses) {
                                 if (!pauses) work_ns += part.ns();
                               });
      seconds.push_back(static_cast<double>(work_ns) * 1e-9 / static_cast<double>(items));
    }
    items_before = items;
    before = &now;
  }
  return median_of(std::move(seconds));
}

/// Fewer samples could all be disturbed.
constexpr std::size_t wakings_min = 8;

/// Arrival times of versions from other nodes.
class Arrivals {
 public:
  Arrivals(const RunTrace& run, std::int32_t job) {
    for (const Message& message : run.messages) {
      if (message.job == job) all_.emplace_back(key_of(message), message.time.end_ns);
    }
    std::ranges::sort(all_);
  }
  [[nodiscard]] std::optional<std::int64_t> find(NodeId to, trace::Tile tile,
                                                 Version version) const {
    const Key key{to, tile.matrix, tile.index, version};
    const auto found = std::ranges::lower_bound(all_, key, {}, &Arrival::first);
    return found == all_.end() || found->first != key ? std::nullopt : std::optional(found->second);
  }

 private:
  using Key = std::tuple<NodeId, std::int32_t, std::int32_t, Version>;
  using Arrival = std::pair<Key, std::int64_t>;

  [[nodiscard]] static Key key_of(const Message& message) {
    return {message.to, message.tile.matrix, message.tile.index, message.version};
  }
  std::vector<Arrival> all_;
};

/// Time at which all inputs of a task were present. Nothing if an arrival is unknown.
std::optional<std::int64_t> ready_ns(const RunTrace& run, const Graph& graph, std::size_t place,
                                     const Arrivals& arrivals) {
  const Task& task = run.at(graph.tasks()[place]);
  const NodeId node = run.at(task.thread).node;
  std::int64_t ready = 0;
  for (const Access& access : run.accesses_of(task)) {
    if (const auto came = arrivals.find(node, access.tile, access.version)) {
      ready = std::max(ready, *came);
    }
  }
  for (const TaskId id : graph.before(place)) {
    const Task& before = run.at(id);
    if (run.at(before.thread).node == node) {
      ready = std::max(ready, before.time.end_ns);
    } else if (before.time.end_ns > ready) {
      return std::nullopt;
    }
  }
  return ready;
}

/// A worker spins for about ten microseconds before it sleeps, and its core enters a deep sleep
/// state after some tenths of a millisecond: wake-up took 3 us, 15 us, and 30 to 60 us, in one of
/// ten cases up to 150 (bench/results/2026-11-26-predictions-64-cores.md).
constexpr std::array waited_s{0.0, 20e-6, 200e-6};

using TurnsByNode = std::map<NodeId, std::vector<GenerationTurn>>;

TurnsByNode turns_by_node(const RunTrace& run, std::int32_t job) {
  const Generation generation(run, job);
  TurnsByNode turns;
  for (const NodeId node : run.nodes) turns[node] = generation.turns_of(node);
  return turns;
}

/// Start of the turn that generated a task; `long_ago` if unknown.
std::int64_t begun_ns(const std::vector<GenerationTurn>& turns, std::uint64_t order) {
  const auto turn = std::ranges::lower_bound(turns, order, {}, &GenerationTurn::last);
  return turn == turns.end() || order <= turn->before ? long_ago : turn->begin_ns;
}

/// By node, the possible ends of window items: tasks, and versions that others read.
std::map<NodeId, std::vector<std::int64_t>> item_ends(const RunTrace& run, const Graph& graph) {
  std::map<NodeId, std::vector<std::int64_t>> ends;
  for (const TaskId id : graph.tasks()) {
    const Task& task = run.at(id);
    if (task.fine == 0) ends[run.at(task.thread).node].push_back(task.time.end_ns);
  }
  for (const Message& message : run.messages) {
    ends[message.from].push_back(message.time.start_ns);
    ends[message.from].push_back(message.time.end_ns);
    ends[message.to].push_back(message.time.end_ns);
  }
  for (auto& [node, times] : ends) std::ranges::sort(times);
  return ends;
}

/// The window reopens when an eighth of it is free (protocol::Job::window_reopens()). On several
/// nodes the number of items is unknown: the last end counts as the reopening.
std::vector<Refill> refills_of(const RunTrace& run, const Graph& graph, const TurnsByNode& turns,
                               std::int32_t window) {
  const std::ptrdiff_t enough = window < 8 ? 1 : window / 8;
  std::vector<Refill> refills;
  for (const auto& [node, times] : item_ends(run, graph)) {
    const auto of_node = turns.find(node);
    if (of_node == turns.end()) continue;
    for (const GenerationTurn& turn : of_node->second) {
      if (!turn.waited) continue;
      const auto first = std::ranges::lower_bound(times, turn.before_ns);
      const auto end = std::ranges::upper_bound(times, turn.begin_ns);
      if (end - first < enough) continue;
      const std::int64_t room_ns = run.node_count == 1 ? *(first + enough - 1) : *std::prev(end);
      refills.push_back({node, turn.before, static_cast<double>(turn.begin_ns - room_ns) * 1e-9});
    }
  }
  return refills;
}

void add_woken(const RunTrace& run, const Graph& graph, const TurnsByNode& turns,
               RuntimeCosts& costs) {
  const Arrivals arrivals(run, graph.job());
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const TaskId id = graph.tasks()[i];
    const Task& task = run.at(id);
    const Thread& thread = run.at(task.thread);
    if (thread.role != Role::worker || graph.before(i).empty()) continue;
    if (task.fine > 0) continue;  // it may have waited for another fine task
    auto ready = ready_ns(run, graph, i, arrivals);
    if (!ready) continue;
    ready = std::max(*ready, begun_ns(turns.at(thread.node), task.order));
    const bool is_first = id == thread.first_task;
    const std::int64_t ended_ns = is_first ? *ready : run.at(id - 1).time.end_ns;
    const std::int64_t since_ns = std::max(ended_ns, *ready);
    costs.begun.push_back(
        {id, static_cast<double>(std::max<std::int64_t>(0, task.time.start_ns - since_ns)) * 1e-9});
    const std::span<const Wait> waits = run.waits_of(thread);
    auto wait = std::ranges::upper_bound(waits, task.time.start_ns, {},
                                         [](const Wait& one) { return one.time.end_ns; });
    if (wait == waits.begin()) continue;
    --wait;
    // A later task of the worker is not part of waking.
    if (!is_first && ended_ns > wait->time.start_ns) continue;
    if (*ready < wait->time.start_ns || *ready > wait->time.end_ns) continue;
    costs.woken.push_back({id, static_cast<double>(*ready - wait->time.start_ns) * 1e-9,
                           static_cast<double>(task.time.start_ns - *ready) * 1e-9});
  }
}

void add_wakings(RuntimeCosts& costs) {
  for (const double waited : waited_s) costs.wakings.push_back({waited, {}});
  std::vector<double> all;
  for (const WokenTask& one : costs.woken) {
    all.push_back(one.wake_s);
    const auto next = std::ranges::upper_bound(waited_s, one.waited_s);
    costs.wakings[static_cast<std::size_t>(next - waited_s.begin()) - 1].seconds.push_back(
        one.wake_s);
  }
  for (WakingTimes& one : costs.wakings) {
    if (one.seconds.size() < wakings_min) one.seconds.clear();
  }
  if (all.size() >= wakings_min) costs.wake_s = median_of(std::move(all));
}

}  // namespace

RuntimeCosts runtime_costs(const RunTrace& run, const Graph& graph, const SimulatedMachine& machine,
                           std::int32_t window) {
  RuntimeCosts costs;
  const TurnsByNode turns = turns_by_node(run, graph.job());
  add_gaps(run, graph.job(), machine, costs);
  costs.append_s = append_of(run, graph.job());
  add_woken(run, graph, turns, costs);
  add_wakings(costs);
  costs.refills = refills_of(run, graph, turns, window);
  if (costs.refills.size() >= wakings_min) {
    std::vector<double> seconds;
    for (const Refill& one : costs.refills) seconds.push_back(one.seconds);
    costs.refill_s = median_of(std::move(seconds));
  }
  return costs;
}

}  // namespace heddle::replay
