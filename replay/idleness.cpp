#include "replay/idleness.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "replay/version_table.hpp"

namespace heddle::replay {
namespace {

constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min();

Interval clipped(Interval time, Interval span) {
  const std::int64_t start = std::clamp(time.start_ns, span.start_ns, span.end_ns);
  return {start, std::clamp(time.end_ns, start, std::max(start, span.end_ns))};
}

bool runs_tasks(const Thread& thread) {
  return thread.role == Role::worker || thread.role == Role::device;
}

/// When versions have come to where tasks are.
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

/// Shares out the time of threads.
class TimeKeeper {
 public:
  TimeKeeper(const RunTrace& run, const Graph& graph, Interval span)
      : run_(run), graph_(graph), span_(span), arrivals_(run, graph.job()) {}

  [[nodiscard]] ThreadTime of(ThreadId thread) {
    ThreadTime result;
    result.thread = thread;
    std::vector<TaskId> tasks;
    for (TaskId task = run_.at(thread).first_task; task != run_.at(thread).last_task; ++task) {
      const Interval time = run_.at(task).time;
      if (time.end_ns > span_.start_ns && time.start_ns < span_.end_ns) tasks.push_back(task);
    }
    std::ranges::sort(tasks, {}, [&](TaskId task) { return run_.at(task).time.start_ns; });
    result.tasks = static_cast<std::int64_t>(tasks.size());
    std::int64_t now = span_.start_ns;
    for (const TaskId task : tasks) {
      const Interval time = clipped(run_.at(task).time, span_);
      if (time.start_ns > now) explain({now, time.start_ns}, run_.at(task), task, result);
      result.busy_ns += std::max<std::int64_t>(0, time.end_ns - std::max(now, time.start_ns));
      now = std::max(now, time.end_ns);
    }
    idle(result, IdleCause::end) += span_.end_ns - now;
    return result;
  }

 private:
  static std::int64_t& idle(ThreadTime& time, IdleCause cause) {
    return time.idle_ns.at(static_cast<std::size_t>(cause));
  }

  /// The time before a task.
  void explain(Interval gap, const Task& task, TaskId id, ThreadTime& result) const {
    std::int64_t now = gap.start_ns;
    const auto until = [&](std::int64_t time, IdleCause cause) {
      const std::int64_t end = std::clamp(time, now, gap.end_ns);
      idle(result, cause) += end - now;
      now = end;
    };
    const NodeId node = run_.at(task.thread).node;
    if (task.job == graph_.job()) {
      std::int64_t before_ns = long_ago;
      bool is_here = true;
      for (const TaskId other : graph_.before(graph_.place_of(id))) {
        const Task& maker = run_.at(other);
        if (maker.time.end_ns <= before_ns) continue;
        before_ns = maker.time.end_ns;
        is_here = run_.at(maker.thread).node == node;
      }
      until(before_ns, is_here ? IdleCause::task_here : IdleCause::task_there);
      std::int64_t message_ns = long_ago;
      std::int64_t copy_ns = long_ago;
      for (const Access& access : run_.accesses_of(task)) {
        message_ns = std::max(message_ns, arrivals_.message(node, access));
        copy_ns = std::max(copy_ns, arrivals_.copy(node, task.place, access));
      }
      until(message_ns, IdleCause::message);
      until(copy_ns, IdleCause::copy);
    }
    until(gap.end_ns, IdleCause::runtime);
  }

  const RunTrace& run_;
  const Graph& graph_;
  Interval span_;
  Arrivals arrivals_;
};

/// A step of how many threads of a node are busy, or of how many transfers are under way.
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

/// Time in which something moved, and the same weighed by the share of threads that were busy.
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
    // A device runs several tasks at a time.
    hidden.hidden_ns += ns * std::min(1.0, static_cast<double>(busy) / threads);
  }
}

}  // namespace

const char* name(IdleCause cause) {
  static constexpr std::array<const char*, idle_cause_count> names{
      "task here", "task there", "message", "copy", "runtime", "end"};
  return names.at(static_cast<std::size_t>(cause));
}

std::int64_t ThreadTime::idle() const {
  return std::accumulate(idle_ns.begin(), idle_ns.end(), std::int64_t{0});
}

std::vector<ThreadTime> thread_times(const RunTrace& run, const Graph& graph, Interval span) {
  std::vector<ThreadTime> times;
  TimeKeeper keeper(run, graph, span);
  for (std::size_t i = 0; i < run.threads.size(); ++i) {
    if (!runs_tasks(run.threads[i])) continue;
    times.push_back(keeper.of(ThreadId(static_cast<std::int32_t>(i))));
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
