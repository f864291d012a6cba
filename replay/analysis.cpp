#include "replay/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle::replay {
namespace {

/// The value below which a fraction `share` of the sorted values lies.
double quantile(std::span<const double> sorted, double share) {
  const long at = std::lround(share * static_cast<double>(sorted.size() - 1));
  return sorted[static_cast<std::size_t>(at)];
}

std::vector<KernelFigures> kernels_of(const RunTrace& run, const Graph& graph) {
  std::map<std::pair<trace::NameId, Role>, std::vector<double>> durations;
  for (const TaskId id : graph.tasks()) {
    const Task& task = run.at(id);
    if (task.is_divided()) continue;  // counted as its fine tasks
    durations[{task.kernel, run.at(task.thread).role}].push_back(
        static_cast<double>(task.time.ns()) * 1e-3);
  }
  std::vector<KernelFigures> kernels;
  for (auto& [key, us] : durations) {
    std::ranges::sort(us);
    KernelFigures figures;
    figures.kernel = run.names[key.first.value()];
    figures.role = key.second;
    figures.count = static_cast<std::int64_t>(us.size());
    for (const double one : us) figures.total_s += one * 1e-6;
    figures.median_us = quantile(us, 0.5);
    figures.low_us = quantile(us, 0.05);
    figures.high_us = quantile(us, 0.95);
    figures.most_us = us.back();
    const double third = quantile(us, 0.75);
    const double limit = third + 3 * (third - quantile(us, 0.25));
    figures.outliers = us.end() - std::ranges::upper_bound(us, limit);
    kernels.push_back(std::move(figures));
  }
  std::ranges::stable_sort(kernels, std::greater{}, &KernelFigures::total_s);
  return kernels;
}

/// Sums the parts of a path by kind.
class PathSum {
 public:
  void add(const std::string& what, std::int64_t ns) {
    PathPart& part = parts_[what];
    part.what = what;
    ++part.count;
    part.seconds += seconds_of(ns);
  }
  [[nodiscard]] std::vector<PathPart> take() {
    std::vector<PathPart> all;
    for (auto& [what, part] : parts_) all.push_back(std::move(part));
    std::ranges::stable_sort(all, std::greater{}, &PathPart::seconds);
    return all;
  }

 private:
  std::map<std::string, PathPart> parts_;
};

/// For each task of the run the previous one on its thread, by start time.
std::vector<TaskId> before_on_thread(const RunTrace& run) {
  std::vector<TaskId> before(run.tasks.size(), TaskId{-1});
  for (const Thread& thread : run.threads) {
    std::vector<TaskId> tasks;
    for (TaskId task = thread.first_task; task != thread.last_task; ++task) tasks.push_back(task);
    std::ranges::sort(tasks, {}, [&](TaskId task) { return run.at(task).time.start_ns; });
    for (std::size_t i = 1; i < tasks.size(); ++i) {
      before[static_cast<std::size_t>(tasks[i].value())] = tasks[i - 1];
    }
  }
  return before;
}

std::vector<PathPart> chain_of(const RunTrace& run, const Graph& graph, Interval span) {
  const std::vector<TaskId> before = before_on_thread(run);
  PathSum sum;
  TaskId at = *std::ranges::max_element(graph.tasks(), {},
                                        [&](TaskId task) { return run.at(task).time.end_ns; });
  for (;;) {
    const Task& task = run.at(at);
    if (!task.is_divided()) sum.add(run.kernel_of(task), task.time.ns());
    TaskId next{-1};
    const char* gap = "until the first task";
    const auto consider = [&](TaskId other, const char* what) {
      const std::int64_t end = run.at(other).time.end_ns;
      const bool is_before = end <= task.time.start_ns;
      if (!is_before || (next.value() >= 0 && end <= run.at(next).time.end_ns)) return;
      next = other;
      gap = what;
    };
    for (const TaskId other : graph.before(graph.place_of(at))) {
      const bool is_here = run.at(run.at(other).thread).node == run.at(task.thread).node;
      consider(other, is_here ? "between tasks of a node" : "between tasks of two nodes");
    }
    const TaskId neighbour = before[static_cast<std::size_t>(at.value())];
    if (neighbour.value() >= 0 && run.at(neighbour).job == graph.job()) {
      consider(neighbour, "between tasks of a thread");
    }
    const std::int64_t since = next.value() < 0 ? span.start_ns : run.at(next).time.end_ns;
    sum.add(gap, task.time.start_ns - since);
    if (next.value() < 0) return sum.take();
    at = next;
  }
}

/// Idle times of threads; keeps the longest waits.
void add_times(const RunTrace& run, const Graph& graph, Analysis& result) {
  Idleness idleness = idleness_of(run, graph, result.span);
  std::vector<WaitedFor> all;
  const auto cut = [](std::vector<WaitedFor>& waits, std::size_t most) {
    if (waits.size() > most) waits.resize(most);
    waits.shrink_to_fit();
  };
  for (ThreadTime& thread : idleness.threads) {
    all.insert(all.end(), thread.waited_for.begin(), thread.waited_for.end());
    cut(thread.waited_for, waited_for_thread_max);
  }
  for (ThreadTime& stream : idleness.streams) cut(stream.waited_for, waited_for_thread_max);
  result.threads = std::move(idleness.threads);
  result.streams = std::move(idleness.streams);
  result.services = service_times(run, result.span);
  result.waited_for = added_up(std::move(all));
  cut(result.waited_for, waited_for_max);
}

template <class Transfer>
TransferFigures transfers(const std::vector<Transfer>& all, std::int32_t job, double hidden) {
  TransferFigures figures;
  for (const Transfer& one : all) {
    if (one.job != job) continue;
    ++figures.count;
    figures.bytes += static_cast<double>(one.bytes);
    figures.seconds += seconds_of(one.time.ns());
  }
  figures.hidden = hidden;
  return figures;
}

}  // namespace

double Analysis::busy_share() const {
  double busy = 0;
  double all = 0;
  for (const ThreadTime& thread : threads) {
    busy += static_cast<double>(thread.busy_ns);
    all += static_cast<double>(thread.busy_ns + thread.idle());
  }
  return all > 0 ? busy / all : 0;
}

std::optional<std::int32_t> main_job(const RunTrace& run) {
  const std::vector<JobTime> jobs = jobs_of(run);
  if (jobs.empty()) return std::nullopt;
  const auto about = nlohmann::json::parse(run.about);
  if (about.is_object() && about.contains("job") && about.at("job").is_number_integer()) {
    const auto job = about.at("job").get<std::int32_t>();
    if (std::ranges::find(jobs, job, &JobTime::job) != jobs.end()) return job;
  }
  return std::ranges::max_element(jobs, {}, &JobTime::busy_ns)->job;
}

Analysis analyze(const RunTrace& run, std::int32_t job) {
  const std::vector<JobTime> jobs = jobs_of(run);
  const auto found = std::ranges::find(jobs, job, &JobTime::job);
  if (found == jobs.end()) {
    std::vector<std::int32_t> numbers;
    numbers.reserve(jobs.size());
    for (const JobTime& one : jobs) numbers.push_back(one.job);
    throw Error(ErrorCode::usage,
                numbers.empty() ? fmt::format("no task ran in '{}'", run.source)
                                : fmt::format("'{}' has no tasks of job {}; there are jobs {}",
                                              run.source, job, fmt::join(numbers, ", ")));
  }
  const Graph graph(run, job);
  const std::vector<std::int64_t> heads = graph.heads();
  Analysis result;
  result.job = job;
  result.span = found->span;
  result.tasks = found->tasks;
  result.dependencies = graph.edges();
  result.path = graph.longest_path(heads);
  add_times(run, graph, result);
  result.kernels = kernels_of(run, graph);
  const Overlap overlap = overlap_of(run, result.span);
  result.messages = transfers(run.messages, job, overlap.messages);
  result.copies = transfers(run.copies, job, overlap.copies);
  result.readers = reader_figures(run, job);
  result.bounds = bounds_of(run, graph, result.path, heads, graph.tails());
  PathSum by_kernel;
  for (const TaskId id : result.path) {
    const Task& task = run.at(id);
    if (!task.is_divided()) by_kernel.add(run.kernel_of(task), task.time.ns());
  }
  result.critical_path = by_kernel.take();
  result.chain = chain_of(run, graph, result.span);
  return result;
}

}  // namespace heddle::replay
