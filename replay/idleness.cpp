#include "replay/idleness.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "replay/generation.hpp"
#include "replay/version_table.hpp"

namespace heddle::replay {
namespace {

Interval clipped(Interval time, Interval span) {
  const std::int64_t start = std::clamp(time.start_ns, span.start_ns, span.end_ns);
  return {start, std::clamp(time.end_ns, start, std::max(start, span.end_ns))};
}

bool runs_tasks(const Thread& thread) {
  return thread.role == Role::worker || thread.role == Role::device;
}

/// Arrival times of versions at places of tasks.
class Arrivals {
 public:
  Arrivals(const RunTrace& run, std::int32_t job) {
    std::map<NodeId, std::size_t> received;
    std::map<Place, std::size_t> copied;
    for (const Message& message : run.messages) {
      if (message.job == job) ++received[message.to];
    }
    for (const Copy& copy : run.copies) {
      if (copy.job == job) ++copied[{copy.node, copy.to}];
    }
    for (const auto& [node, count] : received) messages_.try_emplace(node, count);
    for (const auto& [place, count] : copied) copies_.try_emplace(place, count);
    for (const Message& message : run.messages) {
      if (message.job != job) continue;
      messages_.at(message.to)(message.tile, message.version) = message.time.end_ns;
    }
    for (const Copy& copy : run.copies) {
      if (copy.job != job) continue;
      copies_.at({copy.node, copy.to})(copy.tile, copy.version) = copy.time.end_ns;
    }
  }

  [[nodiscard]] std::int64_t message(NodeId node, const Access& access) const {
    const auto table = messages_.find(node);
    return table == messages_.end() ? long_ago : time_in(table->second, access);
  }
  [[nodiscard]] std::int64_t copy(NodeId node, PlaceId place, const Access& access) const {
    const auto table = copies_.find({node, place});
    return table == copies_.end() ? long_ago : time_in(table->second, access);
  }

 private:
  using Place = std::pair<NodeId, PlaceId>;
  using Table = VersionTable<std::int64_t>;

  [[nodiscard]] static std::int64_t time_in(const Table& table, const Access& access) {
    const std::int64_t* const found = table.find(access.tile, access.version);
    return found == nullptr ? long_ago : *found;
  }

  std::map<NodeId, Table> messages_;
  std::map<Place, Table> copies_;
};

/// Times at which tiles returned to a place: after eviction from a device, or after use by the
/// host.
class Returns {
 public:
  explicit Returns(const RunTrace& run) {
    for (const Copy& copy : run.copies) {
      if (copy.reason == trace::CopyReason::access) continue;
      places_[{copy.node, copy.to}].push_back({copy.tile, copy.time.end_ns});
    }
    for (auto& [place, returns] : places_) std::ranges::sort(returns, is_before);
  }

  /// Last arrival of the tile there until `limit_ns`.
  [[nodiscard]] std::int64_t last(NodeId node, PlaceId place, trace::Tile tile,
                                  std::int64_t limit_ns) const {
    const auto found = places_.find({node, place});
    if (found == places_.end()) return long_ago;
    const auto behind = std::ranges::upper_bound(found->second, Return{tile, limit_ns}, is_before);
    if (behind == found->second.begin()) return long_ago;
    const Return& one = *std::prev(behind);
    return one.tile == tile ? one.end_ns : long_ago;
  }

 private:
  struct Return {
    trace::Tile tile;
    std::int64_t end_ns = 0;
  };
  [[nodiscard]] static bool is_before(const Return& a, const Return& b) {
    return std::tie(a.tile.matrix, a.tile.index, a.end_ns) <
           std::tie(b.tile.matrix, b.tile.index, b.end_ns);
  }

  std::map<std::pair<NodeId, PlaceId>, std::vector<Return>> places_;
};

/// Shorter gaps before a task are scheduling, not waiting.
constexpr std::int64_t wait_ns_min = 2000;

/// Last users, on their node, of the tiles that waiting tasks overwrite.
class LastUsers {
 public:
  LastUsers(const RunTrace& run, std::int32_t job) : run_(run) {
    std::map<NodeId, std::vector<const Access*>> written;
    for (const Thread& thread : run.threads) {
      std::int64_t free_ns = 0;
      for (TaskId id = thread.first_task; id != thread.last_task; ++id) {
        const Task& task = run.at(id);
        const bool has_waited = task.time.start_ns - free_ns >= wait_ns_min;
        free_ns = std::max(free_ns, task.time.end_ns);
        if (task.job != job || !has_waited) continue;
        for (const Access& access : run.accesses_of(task)) {
          if (access.mode != trace::AccessMode::read) written[thread.node].push_back(&access);
        }
      }
    }
    for (const auto& [node, accesses] : written) {
      Table& table = tables_.try_emplace(node, accesses.size()).first->second;
      for (const Access* access : accesses) table(access->tile, access->version) = {};
    }
    for (const Thread& thread : run.threads) {
      if (const auto table = tables_.find(thread.node); table != tables_.end()) {
        note(thread, job, table->second);
      }
    }
  }

  /// Nothing if there is no user, or if one is still running when the task begins, so that the task
  /// writes elsewhere.
  [[nodiscard]] OptionalIndex<TaskId> before(const Task& task) const {
    const auto table = tables_.find(run_.at(task.thread).node);
    if (table == tables_.end()) return {};
    OptionalIndex<TaskId> last;
    for (const Access& access : run_.accesses_of(task)) {
      if (access.mode == trace::AccessMode::read) continue;
      const OptionalIndex<TaskId>* const user = table->second.find(access.tile, access.version);
      if (user == nullptr || !*user || end_ns(*user) > task.time.start_ns) continue;
      if (!last || end_ns(last) < end_ns(*user)) last = *user;
    }
    return last;
  }

 private:
  using Table = VersionTable<OptionalIndex<TaskId>>;

  void note(const Thread& thread, std::int32_t job, Table& table) const {
    for (TaskId id = thread.first_task; id != thread.last_task; ++id) {
      const Task& task = run_.at(id);
      if (task.job != job) continue;
      for (const Access& access : run_.accesses_of(task)) {
        if (access.mode != trace::AccessMode::read) continue;
        OptionalIndex<TaskId>* const last = table.find(access.tile, access.version);
        if (last != nullptr && (!*last || end_ns(*last) < task.time.end_ns)) *last = id;
      }
    }
  }
  [[nodiscard]] std::int64_t end_ns(OptionalIndex<TaskId> task) const {
    return run_.at(*task).time.end_ns;
  }

  const RunTrace& run_;
  std::map<NodeId, Table> tables_;
};

/// Assigns the time of threads to causes.
class TimeKeeper {
 public:
  TimeKeeper(const RunTrace& run, const Graph& graph, Interval span)
      : run_(run),
        graph_(graph),
        span_(span),
        arrivals_(run, graph.job()),
        returns_(run),
        last_users_(run, graph.job()),
        generation_(run, graph.job()) {}

  /// The thread's tasks inside the span, by start.
  [[nodiscard]] std::vector<TaskId> tasks_of(const Thread& thread) const {
    std::vector<TaskId> tasks;
    for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
      const Interval time = run_.at(task).time;
      if (time.end_ns > span_.start_ns && time.start_ns < span_.end_ns) tasks.push_back(task);
    }
    std::ranges::sort(tasks, {}, [&](TaskId task) { return run_.at(task).time.start_ns; });
    return tasks;
  }

  /// `tasks`: of the thread or stream, as from tasks_of().
  [[nodiscard]] ThreadTime of(ThreadId thread, const std::vector<TaskId>& tasks,
                              std::vector<IdlePart>* parts = nullptr) const {
    ThreadTime result;
    result.thread = thread;
    result.tasks = std::ssize(tasks);
    std::int64_t now = span_.start_ns;
    for (const TaskId task : tasks) {
      const Interval time = clipped(run_.at(task).time, span_);
      if (time.start_ns > now) explain({now, time.start_ns}, run_.at(task), task, {result, parts});
      result.busy_ns += std::max<std::int64_t>(0, time.end_ns - std::max(now, time.start_ns));
      now = std::max(now, time.end_ns);
    }
    Account{result, parts}.add(run_.at(thread).is_cut ? IdleCause::unknown : IdleCause::end,
                               {now, span_.end_ns});
    result.waited_for = added_up(std::move(result.waited_for));
    return result;
  }

  /// A device's tasks by stream, from 0 on.
  [[nodiscard]] std::map<std::int32_t, std::vector<TaskId>> streams_of(
      const std::vector<TaskId>& tasks) const {
    const bool is_known =
        std::ranges::all_of(tasks, [this](TaskId task) { return run_.at(task).stream > 0; });
    return is_known ? recorded_streams(tasks) : likely_streams(tasks);
  }

 private:
  using Streams = std::map<std::int32_t, std::vector<TaskId>>;

  [[nodiscard]] Streams recorded_streams(const std::vector<TaskId>& tasks) const {
    Streams streams;
    for (const TaskId task : tasks) streams[run_.at(task).stream - 1].push_back(task);
    return streams;
  }

  [[nodiscard]] Streams likely_streams(const std::vector<TaskId>& tasks) const {
    Streams streams;
    std::multimap<std::int64_t, std::int32_t> free_since;  // streams
    for (const TaskId task : tasks) {
      const Interval time = run_.at(task).time;
      const auto busy = free_since.upper_bound(time.start_ns);
      auto stream = static_cast<std::int32_t>(streams.size());
      if (busy != free_since.begin()) {
        stream = std::prev(busy)->second;
        free_since.erase(std::prev(busy));
      }
      streams[stream].push_back(task);
      free_since.emplace(time.end_ns, stream);
    }
    return streams;
  }

  /// Receives idle time.
  struct Account {
    ThreadTime& result;
    std::vector<IdlePart>* parts = nullptr;  ///< null: not requested

    void add(IdleCause cause, Interval time) const {
      result.idle_ns.at(static_cast<std::size_t>(cause)) += time.ns();
      if (parts != nullptr && time.ns() > 0) parts->push_back({result.thread, cause, time});
    }
  };

  /// The unexplained rest of a gap.
  struct Rest {
    std::int64_t now = 0;
    std::int64_t end = 0;
    /// The part of the rest before `time`.
    Interval until(std::int64_t time) {
      const std::int64_t from = now;
      now = std::clamp(time, now, end);
      return {from, now};
    }
  };

  /// Explains the gap before a task.
  void explain(Interval gap, const Task& task, TaskId id, const Account& account) const {
    Rest rest{gap.start_ns, gap.end_ns};
    const NodeId node = run_.at(task.thread).node;
    if (task.job == graph_.job()) {
      wait_for_tasks(rest, node, id, account);
      const Interval behind = rest.until(generation_.time_of(node, task.order));
      generation_.for_each_part(node, behind, [&](Interval part, bool is_full) {
        account.add(is_full ? IdleCause::window : IdleCause::generation, part);
      });
      std::int64_t message_ns = long_ago;
      std::int64_t copy_ns = long_ago;
      for (const Access& access : run_.accesses_of(task)) {
        message_ns = std::max(message_ns, arrivals_.message(node, access));
        copy_ns = std::max({copy_ns, arrivals_.copy(node, task.place, access),
                            returns_.last(node, task.place, access.tile, gap.end_ns)});
      }
      account.add(IdleCause::message, rest.until(message_ns));
      account.add(IdleCause::copy, rest.until(copy_ns));
      wait_for_fine_tasks(rest, gap, id, account);
      if (const auto user = last_users_.before(task)) {
        wait_for_task(rest, *user, IdleCause::task_here, account);
      }
    }
    account.add(IdleCause::runtime, rest.until(gap.end_ns));
  }

  /// Assigns the time to the predecessor that ended last.
  void wait_for_tasks(Rest& rest, NodeId node, TaskId id, const Account& account) const {
    TaskId last{-1};
    for (const TaskId other : graph_.before(graph_.place_of(id))) {
      if (last.value() < 0 || run_.at(other).time.end_ns > run_.at(last).time.end_ns) last = other;
    }
    if (last.value() < 0) return;
    const bool is_here = run_.at(run_.at(last).thread).node == node;
    wait_for_task(rest, last, is_here ? IdleCause::task_here : IdleCause::task_there, account);
  }

  void wait_for_task(Rest& rest, TaskId other, IdleCause cause, const Account& account) const {
    const Interval part = rest.until(run_.at(other).time.end_ns);
    if (part.ns() == 0) return;
    account.add(cause, part);
    account.result.waited_for.push_back({other, part.ns()});
  }

  /// A task divided before the gap waited for other fine tasks, where the last one is not recorded.
  void wait_for_fine_tasks(Rest& rest, Interval gap, TaskId id, const Account& account) const {
    const auto divided = graph_.divided_of(id);
    if (run_.at(id).after != trace::unknown_number) return;
    if (!divided || run_.at(*divided).divided_ns > gap.start_ns) return;
    account.add(IdleCause::task_here, rest.until(gap.end_ns));
  }

  const RunTrace& run_;
  const Graph& graph_;
  Interval span_;
  Arrivals arrivals_;
  Returns returns_;
  LastUsers last_users_;
  Generation generation_;
};

/// Change of the number of busy threads of a node, or of transfers in progress.
struct Step {
  std::int64_t time_ns = 0;
  std::int32_t busy = 0;
  std::int32_t moving = 0;
};

void add_steps(std::vector<Step>& steps, Interval time, Interval span, bool is_task) {
  const Interval inside = clipped(time, span);
  if (inside.ns() <= 0) return;
  const std::int32_t busy = is_task ? 1 : 0;
  steps.push_back({inside.start_ns, busy, 1 - busy});
  steps.push_back({inside.end_ns, -busy, busy - 1});
}

/// Transfer time, and the same weighted by the fraction of busy threads.
struct Hidden {
  double moving_ns = 0;
  double hidden_ns = 0;
  [[nodiscard]] double share() const { return moving_ns > 0 ? hidden_ns / moving_ns : 1; }
};

void measure(std::vector<Step> steps, std::int32_t threads, Hidden& hidden) {
  std::ranges::sort(steps, {}, &Step::time_ns);
  std::int32_t busy = 0;
  std::int32_t moving = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    busy += steps[i].busy;
    moving += steps[i].moving;
    if (moving == 0 || i + 1 == steps.size()) continue;
    const auto ns = static_cast<double>(steps[i + 1].time_ns - steps[i].time_ns);
    hidden.moving_ns += ns;
    // A device may run several tasks at a time.
    hidden.hidden_ns += ns * std::min(1.0, static_cast<double>(busy) / threads);
  }
}

}  // namespace

const char* name(IdleCause cause) {
  static constexpr std::array<const char*, idle_cause_count> names{
      "task here", "task there", "window", "generation", "message",
      "copy",      "runtime",    "end",    "unknown"};
  return names.at(static_cast<std::size_t>(cause));
}

std::int64_t ThreadTime::idle() const {
  return std::accumulate(idle_ns.begin(), idle_ns.end(), std::int64_t{0});
}

std::vector<WaitedFor> added_up(std::vector<WaitedFor> waits) {
  std::ranges::sort(waits, {}, &WaitedFor::task);
  std::vector<WaitedFor> sums;
  for (const WaitedFor& wait : waits) {
    if (sums.empty() || sums.back().task != wait.task) sums.push_back({wait.task, 0});
    sums.back().ns += wait.ns;
  }
  std::ranges::stable_sort(sums, std::greater{}, &WaitedFor::ns);
  return sums;
}

Idleness idleness_of(const RunTrace& run, const Graph& graph, Interval span,
                     std::vector<IdlePart>* parts) {
  Idleness idleness;
  const TimeKeeper keeper(run, graph, span);
  for (std::size_t i = 0; i < run.threads.size(); ++i) {
    if (!runs_tasks(run.threads[i])) continue;
    const ThreadId thread(static_cast<std::int32_t>(i));
    const std::vector<TaskId> tasks = keeper.tasks_of(run.threads[i]);
    idleness.threads.push_back(keeper.of(thread, tasks, parts));
    if (run.threads[i].role != Role::device) continue;
    for (const auto& [stream, part] : keeper.streams_of(tasks)) {
      idleness.streams.push_back(keeper.of(thread, part));
      idleness.streams.back().stream = stream;
    }
  }
  return idleness;
}

std::vector<ServiceTime> service_times(const RunTrace& run, Interval span) {
  std::vector<ServiceTime> times;
  for (std::size_t i = 0; i < run.threads.size(); ++i) {
    const Thread& thread = run.threads[i];
    const bool is_thread =
        thread.name != trace::divided_row && thread.name != trace::collectives_row;
    if (runs_tasks(thread) || !is_thread) continue;
    ServiceTime& time = times.emplace_back();
    time.thread = ThreadId(static_cast<std::int32_t>(i));
    const auto waits = run.waits_of(thread);
    const Interval known = waits.empty() || !thread.recorded
                               ? Interval{span.start_ns, span.start_ns}
                               : clipped(*thread.recorded, span);
    time.unknown_ns = span.ns() - known.ns();
    std::int64_t now = known.start_ns;
    for (const Wait& wait : waits) {
      const Interval inside = clipped(wait.time, known);
      const std::int64_t start = std::max(now, inside.start_ns);
      if (inside.end_ns <= start) continue;
      time.busy_ns += start - now;
      time.waiting_ns.at(static_cast<std::size_t>(wait.cause)) += inside.end_ns - start;
      now = inside.end_ns;
    }
    time.busy_ns += known.end_ns - now;
  }
  return times;
}

Overlap overlap_of(const RunTrace& run, Interval span) {
  Hidden messages;
  Hidden copies;
  for (const NodeId node : run.nodes) {
    std::vector<Step> tasks;
    std::int32_t threads = 0;
    for (const Thread& thread : run.threads) {
      if (thread.node != node || !runs_tasks(thread)) continue;
      ++threads;
      for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
        add_steps(tasks, run.at(task).time, span, true);
      }
    }
    if (threads == 0) continue;
    std::vector<Step> with_messages = tasks;
    for (const Message& message : run.messages) {
      if (message.to == node) add_steps(with_messages, message.time, span, false);
    }
    measure(std::move(with_messages), threads, messages);
    for (const Copy& copy : run.copies) {
      if (copy.node == node) add_steps(tasks, copy.time, span, false);
    }
    measure(std::move(tasks), threads, copies);
  }
  return {messages.share(), copies.share()};
}

}  // namespace heddle::replay
