#include "replay/graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "replay/version_table.hpp"

namespace heddle::replay {
namespace {

TaskId task_at(std::size_t i) {
  return TaskId(static_cast<std::int32_t>(i));
}

bool writes(const Access& access) {
  return access.mode != trace::AccessMode::read;
}

}  // namespace

Graph::Graph(const RunTrace& run, std::int32_t job) : run_(run), job_(job) {
  std::size_t versions = 0;
  for (std::size_t i = 0; i < run.tasks.size(); ++i) {
    if (run.tasks[i].job != job) continue;
    tasks_.push_back(task_at(i));
    versions += static_cast<std::size_t>(run.tasks[i].access_count);
  }
  std::ranges::sort(tasks_, {}, [&](TaskId id) {
    const Task& task = run.at(id);
    return std::tuple(task.time.start_ns, task.time.end_ns, task.order, id);
  });
  places_.assign(run.tasks.size(), -1);
  VersionTable<TaskId> makers(versions);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    places_[static_cast<std::size_t>(tasks_[i].value())] = static_cast<std::int32_t>(i);
    for (const Access& access : run.accesses_of(run.at(tasks_[i]))) {
      if (writes(access)) makers(access.tile, access.version + 1) = tasks_[i];
    }
  }
  find_divided();
  const std::vector<Part> parts = fine_tasks();
  begin_.reserve(tasks_.size() + 1);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    begin_.push_back(before_.size());
    const Task& task = run.at(tasks_[i]);
    const auto whole = divided_of(tasks_[i]);
    if (whole && task.after > 0 && task.after != trace::unknown_number) {
      const auto last = std::ranges::lower_bound(parts, Part{*whole, task.after, TaskId{0}});
      const bool is_known = last != parts.end() && last->of == *whole && last->number == task.after;
      if (is_known && place_of(last->task) < i) {
        add_before(i, last->task);
        continue;
      }
    }
    for (const Access& access : run.accesses_of(whole ? run.at(*whole) : task)) {
      if (access.mode == trace::AccessMode::write) continue;
      const TaskId* const maker = makers.find(access.tile, access.version);
      if (maker != nullptr) add_before(i, *maker);
    }
    if (!task.is_divided()) continue;
    for (const Part& part : std::ranges::equal_range(parts, tasks_[i], {}, &Part::of)) {
      before_.push_back(part.task);
    }
  }
  begin_.push_back(before_.size());
}

/// Adds a predecessor of tasks_[i], the last task with recorded predecessors, once.
void Graph::add_before(std::size_t i, TaskId task) {
  if (place_of(task) >= i) return;  // a task that began later was not waited for
  const auto known = before_.begin() + static_cast<std::ptrdiff_t>(begin_[i]);
  if (std::find(known, before_.end(), task) == before_.end()) before_.push_back(task);
}

void Graph::find_divided() {
  for (const TaskId id : tasks_) {
    const Task& task = run_.at(id);
    if (!task.is_divided()) continue;
    const auto node = static_cast<std::size_t>(run_.at(task.thread).node.value());
    if (divided_.size() <= node) divided_.resize(node + 1);
    if (divided_[node].size() <= task.order) divided_[node].resize(task.order + 1, TaskId{-1});
    divided_[node][task.order] = id;
  }
}

/// Fine tasks by divided task and number.
std::vector<Graph::Part> Graph::fine_tasks() const {
  std::vector<Part> parts;
  for (const TaskId task : tasks_) {
    if (const auto whole = divided_of(task)) parts.push_back({*whole, run_.at(task).fine, task});
  }
  std::ranges::sort(parts);
  return parts;
}

OptionalIndex<TaskId> Graph::divided_of(TaskId fine) const {
  const Task& task = run_.at(fine);
  const auto node = static_cast<std::size_t>(run_.at(task.thread).node.value());
  if (task.fine == 0 || node >= divided_.size() || task.order >= divided_[node].size()) return {};
  return divided_[node][task.order];
}

std::vector<std::int64_t> Graph::heads() const {
  std::vector<std::int64_t> heads(tasks_.size(), 0);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    for (const TaskId task : before(i)) {
      const std::size_t place = place_of(task);
      heads[i] = std::max(heads[i], heads[place] + ns_of(place));
    }
  }
  return heads;
}

std::vector<std::int64_t> Graph::tails() const {
  std::vector<std::int64_t> tails(tasks_.size(), 0);
  for (std::size_t i = tasks_.size(); i-- > 0;) {
    const std::int64_t from_here = tails[i] + ns_of(i);
    for (const TaskId task : before(i)) {
      std::int64_t& tail = tails[place_of(task)];
      tail = std::max(tail, from_here);
    }
  }
  return tails;
}

std::vector<TaskId> Graph::longest_path(std::span<const std::int64_t> heads) const {
  std::vector<TaskId> path;
  if (tasks_.empty()) return path;
  std::size_t at = 0;
  for (std::size_t i = 1; i < tasks_.size(); ++i) {
    if (heads[i] + ns_of(i) > heads[at] + ns_of(at)) at = i;
  }
  for (;;) {
    path.push_back(tasks_[at]);
    const auto all = before(at);
    const auto previous = std::ranges::find_if(all, [&](TaskId task) {
      return heads[place_of(task)] + run_.at(task).time.ns() == heads[at];
    });
    if (previous == all.end()) break;
    at = place_of(*previous);
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<JobTime> jobs_of(const RunTrace& run) {
  std::map<std::int32_t, JobTime> jobs;
  for (const Task& task : run.tasks) {
    JobTime& job = jobs[task.job];
    if (job.job < 0) job.span = task.time;
    job.job = task.job;
    if (!task.is_divided()) ++job.tasks;
    job.busy_ns += task.time.ns();
    job.span.start_ns = std::min(job.span.start_ns, task.time.start_ns);
    job.span.end_ns = std::max(job.span.end_ns, task.time.end_ns);
  }
  std::vector<JobTime> all;
  all.reserve(jobs.size());
  for (const auto& [number, job] : jobs) all.push_back(job);
  return all;
}

}  // namespace heddle::replay
