#include "apps/page/facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace heddle::page {

using replay::Analysis;
using replay::Copy;
using replay::Counter;
using replay::IdleCause;
using replay::Interval;
using replay::Message;
using replay::Role;
using replay::RunTrace;
using replay::Task;
using replay::TaskId;
using replay::Thread;
namespace {

using nlohmann::json;

constexpr std::size_t histogram_bins = 40;
constexpr std::size_t counter_buckets_max = 1024;     // of one counter
constexpr std::size_t counter_buckets_least = 64;     // even where there are many counters
constexpr std::size_t counter_buckets_all = 1 << 16;  // of all of them, about

json threads_of(const RunTrace& run) {
  json all = json::array();
  for (const Thread& thread : run.threads) {
    all.push_back({thread.node.value(), thread.name, name(thread.role)});
  }
  return all;
}

json matrices_of(const RunTrace& run) {
  json all = json::array();
  for (const auto& one : run.matrices) {
    all.push_back({one.matrix, one.name, one.tile_rows, one.tile_columns});
  }
  return all;
}

json causes() {
  json all = json::array();
  for (std::size_t i = 0; i < replay::idle_cause_count; ++i) {
    all.push_back(name(static_cast<IdleCause>(i)));
  }
  return all;
}

json path_names(const RunTrace& run) {
  std::map<trace::PathNumber, const char*> names;
  for (const Message& message : run.messages) {
    if (message.path != 0) names.try_emplace(message.path, trace::path_name(message.path));
  }
  json all = json::array();
  for (const auto& [number, text] : names) all.push_back({number, text});
  return all;
}

/// How often a kernel took how long, by the logarithm of the time.
json histograms(const RunTrace& run, std::int32_t job) {
  std::map<std::pair<trace::NameId, Role>, std::vector<double>> times;
  for (const Task& task : run.tasks) {
    if (task.job != job || task.is_divided()) continue;
    const auto ns = static_cast<double>(std::max<std::int64_t>(1, task.time.ns()));
    times[{task.kernel, run.at(task.thread).role}].push_back(ns);
  }
  json all = json::array();
  for (const auto& [key, ns] : times) {
    const auto [least, most] = std::ranges::minmax(ns);
    const double scale = most > least ? histogram_bins / std::log(most / least) : 0;
    std::array<std::int64_t, histogram_bins> counts{};
    for (const double one : ns) {
      const auto bin = static_cast<std::size_t>(std::log(one / least) * scale);
      ++counts.at(std::min(bin, histogram_bins - 1));
    }
    all.push_back({{"kernel", run.names[key.first.value()]},
                   {"role", name(key.second)},
                   {"least_us", least * 1e-3},
                   {"most_us", most * 1e-3},
                   {"counts", counts}});
  }
  return all;
}

/// What the messages and copies of the job moved, from place to place.
json traffic_of(const RunTrace& run, std::int32_t job) {
  using Place = std::pair<NodeId, PlaceId>;
  struct Sum {
    std::int64_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<Place, std::size_t> places;
  std::map<std::pair<Place, Place>, Sum> sums;
  const auto add = [&](Place from, Place to, std::uint64_t bytes) {
    Sum& sum = sums[{from, to}];
    ++sum.count;
    sum.bytes += bytes;
    places[from] = places[to] = 0;
  };
  for (const NodeId node : run.nodes) places[{node, host_place}] = 0;
  for (const Message& one : run.messages) {
    if (one.job == job) add({one.from, host_place}, {one.to, host_place}, one.bytes);
  }
  for (const Copy& one : run.copies) {
    if (one.job == job) add({one.node, one.from}, {one.node, one.to}, one.bytes);
  }
  json result{{"places", json::array()}, {"flows", json::array()}};
  for (auto& [place, number] : places) {
    number = result["places"].size();
    result["places"].push_back({place.first.value(), place.second.value()});
  }
  for (const auto& [ends, sum] : sums) {
    result["flows"].push_back(
        {places.at(ends.first), places.at(ends.second), sum.count, sum.bytes});
  }
  return result;
}

/// Mean and greatest value of a counter in equal parts of a span; where it did not change, what it
/// was.
json buckets_of(std::vector<const Counter*> counters, Interval span, std::size_t count) {
  std::ranges::stable_sort(counters, {}, [](const Counter* one) { return one->time_ns; });
  std::vector<double> sum(count);
  std::vector<std::int64_t> seen(count);
  std::vector<std::int64_t> most(count);
  std::int64_t value = 0;
  std::size_t done = 0;
  const auto fill_up_to = [&](std::size_t end) {
    for (; done < end; ++done) {
      if (seen[done] == 0) most[done] = value;
    }
  };
  for (const Counter* one : counters) {
    if (one->time_ns >= span.end_ns) break;
    if (one->time_ns >= span.start_ns) {
      const double share =
          static_cast<double>(one->time_ns - span.start_ns) / static_cast<double>(span.ns());
      const std::size_t at =
          std::min(static_cast<std::size_t>(share * static_cast<double>(count)), count - 1);
      fill_up_to(at);
      sum[at] += static_cast<double>(one->value);
      ++seen[at];
      most[at] = std::max(most[at], one->value);
    }
    value = one->value;
  }
  fill_up_to(count);
  json mean = json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const double one =
        seen[i] == 0 ? static_cast<double>(most[i]) : sum[i] / static_cast<double>(seen[i]);
    mean.push_back(std::round(one * 100) / 100);
  }
  return {{"mean", std::move(mean)}, {"most", most}};
}

json counters_of(const RunTrace& run, Interval span) {
  std::map<std::tuple<trace::NameId, NodeId, PlaceId>, std::vector<const Counter*>> by_series;
  for (const Counter& one : run.counters) {
    by_series[{one.name, one.node, one.place}].push_back(&one);
  }
  json all = json::array();
  if (by_series.empty() || span.ns() <= 0) return all;
  const std::size_t count = std::clamp(counter_buckets_all / by_series.size(),
                                       counter_buckets_least, counter_buckets_max);
  for (auto& [key, counters] : by_series) {
    json series = buckets_of(std::move(counters), span, count);
    const auto& [text, node, place] = key;
    series["name"] = run.names[text.value()];
    series["node"] = node.value();
    series["place"] = place.value();
    all.push_back(std::move(series));
  }
  return all;
}

json path_of(const RunTrace& run, std::span<const TaskId> path, std::int64_t origin_ns) {
  json all = json::array();
  for (const TaskId id : path) {
    const Task& task = run.at(id);
    all.push_back({task.thread.value(), task.time.start_ns - origin_ns, task.time.ns()});
  }
  return all;
}

}  // namespace

json facts(const RunTrace& run, const Analysis& analysis, std::span<const TaskId> longest_path,
           std::int64_t origin_ns, json figures) {
  const Interval all = run.makespan().value_or(analysis.span);
  json copy_reasons = json::array();
  for (const auto reason :
       {trace::CopyReason::access, trace::CopyReason::fetch, trace::CopyReason::write_back}) {
    copy_reasons.push_back(trace::name(reason));
  }
  return {{"figures", std::move(figures)},
          {"job", analysis.job},
          {"span", {analysis.span.start_ns - origin_ns, analysis.span.end_ns - origin_ns}},
          {"end", all.end_ns - origin_ns},
          {"names", run.names},
          {"threads", threads_of(run)},
          {"matrices", matrices_of(run)},
          {"causes", causes()},
          {"copy_reasons", std::move(copy_reasons)},
          {"path_names", path_names(run)},
          {"histograms", histograms(run, analysis.job)},
          {"traffic", traffic_of(run, analysis.job)},
          {"counters", counters_of(run, analysis.span)},
          {"path", path_of(run, longest_path, origin_ns)}};
}

}  // namespace heddle::page
