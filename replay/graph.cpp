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
  begin_.reserve(tasks_.size() + 1);
  for (const TaskId task : tasks_) {
    const std::size_t first = before_.size();
    begin_.push_back(first);
    for (const Access& access : run.accesses_of(run.at(task))) {
      if (access.mode == trace::AccessMode::write) continue;
      const TaskId* const maker = makers.find(access.tile, access.version);
      if (maker == nullptr || place_of(*maker) >= place_of(task)) continue;
      const bool is_known = std::find(before_.begin() + static_cast<std::ptrdiff_t>(first),
                                      before_.end(), *maker) != before_.end();
      if (!is_known) before_.push_back(*maker);
    }
  }
  begin_.push_back(before_.size());
}

std::vector<TaskId> Graph::longest_path() const {
  constexpr std::int32_t none = -1;
  std::vector<std::int64_t> length(tasks_.size());  // up to its end
  std::vector<std::int32_t> previous(tasks_.size(), none);
  std::size_t last = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    for (const TaskId task : before(i)) {
      const std::size_t place = place_of(task);
      if (previous[i] != none && length[place] <= length[static_cast<std::size_t>(previous[i])]) {
        continue;
      }
      previous[i] = static_cast<std::int32_t>(place);
    }
    length[i] = run_.at(tasks_[i]).time.ns() +
                (previous[i] == none ? 0 : length[static_cast<std::size_t>(previous[i])]);
    if (length[i] > length[last]) last = i;
  }
  std::vector<TaskId> path;
  for (auto at = tasks_.empty() ? none : static_cast<std::int32_t>(last); at != none;
       at = previous[static_cast<std::size_t>(at)]) {
    path.push_back(tasks_[static_cast<std::size_t>(at)]);
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<JobTime> jobs_of(const RunTrace& run) {
  std::map<std::int32_t, JobTime> jobs;
  for (const Task& task : run.tasks) {
    JobTime& job = jobs[task.job];
    if (job.tasks == 0) job.span = task.time;
    job.job = task.job;
    ++job.tasks;
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
