#include "apps/analysis_json.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "apps/run_facts.hpp"
#include "base/units.hpp"
#include "replay/collective_figures.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using replay::Analysis;
using replay::IdleCause;
using replay::RunTrace;

constexpr std::size_t listed_tasks_max = 20;

template <class T>
json nullable(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json to_json(const std::vector<replay::PathPart>& parts) {
  json all = json::array();
  for (const auto& part : parts) {
    all.push_back({{"what", part.what}, {"count", part.count}, {"seconds", part.seconds}});
  }
  return all;
}

json to_json(const replay::TransferFigures& figures) {
  return {{"count", figures.count},
          {"bytes", figures.bytes},
          {"seconds", figures.seconds},
          {"hidden", figures.hidden}};
}

json to_json(const replay::LargestSender& most) {
  return {{"bytes", most.bytes}, {"bytes_from_homes", most.bytes_from_homes}};
}

json to_json(const replay::ReaderFigures& readers) {
  return {{"passed_on", readers.passed_on},
          {"bytes", readers.bytes},
          {"largest_node", to_json(readers.node)},
          {"largest_host", to_json(readers.host)}};
}

json thread_to_json(const RunTrace& run, replay::ThreadId id) {
  const replay::Thread& thread = run.at(id);
  return {
      {"node", thread.node.value()}, {"name", thread.name}, {"role", replay::name(thread.role)}};
}

/// A task with the time that it accounts for.
json task_to_json(const RunTrace& run, replay::TaskId id, double seconds) {
  const replay::Thread& thread = run.at(run.at(id).thread);
  return {{"task", run.label_of(run.at(id))},
          {"node", thread.node.value()},
          {"thread", thread.name},
          {"seconds", seconds}};
}

json to_json(const RunTrace& run, const std::vector<replay::WaitedFor>& waits) {
  json all = json::array();
  for (const auto& wait : waits) all.push_back(task_to_json(run, wait.task, seconds_of(wait.ns)));
  return all;
}

json to_json(const RunTrace& run, const replay::ThreadTime& time) {
  json row = thread_to_json(run, time.thread);
  if (time.stream >= 0) row["stream"] = time.stream;
  row["tasks"] = time.tasks;
  row["busy"] = seconds_of(time.busy_ns);
  for (std::size_t i = 0; i < replay::idle_cause_count; ++i) {
    row["idle"][replay::name(static_cast<IdleCause>(i))] = seconds_of(time.idle_ns.at(i));
  }
  row["waited_for"] = to_json(run, time.waited_for);
  return row;
}

json to_json(const RunTrace& run, const replay::ServiceTime& time) {
  json row = thread_to_json(run, time.thread);
  row["busy"] = seconds_of(time.busy_ns);
  for (std::size_t i = 0; i < trace::wait_cause_count; ++i) {
    row["waiting"][trace::name(static_cast<trace::WaitCause>(i))] =
        seconds_of(time.waiting_ns.at(i));
  }
  row["unknown"] = seconds_of(time.unknown_ns);
  return row;
}

template <class Row>
json rows(const RunTrace& run, const std::vector<Row>& all) {
  json result = json::array();
  for (const Row& row : all) result.push_back(to_json(run, row));
  return result;
}

json to_json(const replay::KernelFigures& kernel) {
  return {{"kernel", kernel.kernel},       {"role", replay::name(kernel.role)},
          {"count", kernel.count},         {"seconds", kernel.total_s},
          {"median_us", kernel.median_us}, {"low_us", kernel.low_us},
          {"high_us", kernel.high_us},     {"most_us", kernel.most_us},
          {"outliers", kernel.outliers}};
}

json collectives_to_json(const RunTrace& run) {
  json all = json::array();
  for (const auto& one : replay::collective_figures(run)) {
    all.push_back({{"operation", one.operation},
                   {"algorithm", one.algorithm},
                   {"count", one.count},
                   {"bytes", one.bytes},
                   {"seconds", one.seconds},
                   {"median_us", one.median_us},
                   {"most_us", one.most_us}});
  }
  return all;
}

/// The path's first, last and longest tasks.
json path_to_json(const RunTrace& run, const Analysis& analysis) {
  const auto task = [&](replay::TaskId id) {
    json one = task_to_json(run, id, seconds_of(run.at(id).time.ns()));
    one["begin"] = seconds_of(run.at(id).time.start_ns - analysis.span.start_ns);
    return one;
  };
  std::vector<replay::TaskId> longest = analysis.path;
  const std::size_t count = std::min(listed_tasks_max, longest.size());
  std::ranges::partial_sort(longest, longest.begin() + static_cast<std::ptrdiff_t>(count),
                            std::greater{},
                            [&](replay::TaskId id) { return run.at(id).time.ns(); });
  longest.resize(count);
  json result{{"count", analysis.path.size()}, {"longest", json::array()}};
  if (!analysis.path.empty()) {
    result["first"] = task(analysis.path.front());
    result["last"] = task(analysis.path.back());
  }
  for (const replay::TaskId id : longest) result["longest"].push_back(task(id));
  return result;
}

json bounds_to_json(const RunTrace& run, const Analysis& analysis) {
  const RunFacts facts = facts_of(run, analysis.job);
  json bounds{{"area", analysis.bounds.area_s},
              {"placed", analysis.bounds.placed_s},
              {"critical_path", analysis.bounds.critical_path_s},
              {"mixed", analysis.bounds.mixed_s},
              {"products", nullable(facts.products_s())}};
  if (!facts.products_s()) bounds["products_missing"] = facts.why_no_products();
  return bounds;
}

}  // namespace

json to_json(const RunTrace& run, const Analysis& analysis) {
  json result{{"run", run.source},
              {"about", json::parse(run.about)},
              {"nodes", run.node_count},
              {"damages", run.damages},
              {"job", analysis.job},
              {"seconds", analysis.seconds()},
              {"tasks", analysis.tasks},
              {"dependencies", analysis.dependencies},
              {"bounds", bounds_to_json(run, analysis)},
              {"threads", rows(run, analysis.threads)},
              {"streams", rows(run, analysis.streams)},
              {"services", rows(run, analysis.services)},
              {"waited_for", to_json(run, analysis.waited_for)},
              {"messages", to_json(analysis.messages)},
              {"readers", to_json(analysis.readers)},
              {"copies", to_json(analysis.copies)},
              {"critical_path", to_json(analysis.critical_path)},
              {"critical_tasks", path_to_json(run, analysis)},
              {"chain", to_json(analysis.chain)}};
  result["kernels"] = json::array();
  for (const auto& kernel : analysis.kernels) result["kernels"].push_back(to_json(kernel));
  result["collectives"] = collectives_to_json(run);
  return result;
}

json groups_to_json(const RunTrace& run) {
  return {{"run", run.source},
          {"about", json::parse(run.about)},
          {"nodes", run.node_count},
          {"damages", run.damages},
          {"tasks", 0},
          {"collectives", collectives_to_json(run)}};
}

}  // namespace heddle
