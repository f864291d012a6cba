#include "apps/analysis_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using replay::Analysis;
using replay::idle_cause_count;
using replay::IdleCause;
using replay::RunTrace;
using replay::ThreadTime;

constexpr std::size_t thread_rows_max = 24;  // more are summed up by node
constexpr std::size_t path_rows_max = 8;

double seconds_of(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// A field of the run's report; nothing where it has none.
template <class T>
std::optional<T> about(const RunTrace& run, std::string_view field) {
  const json report = json::parse(run.about);
  if (!report.is_object() || !report.contains(field) || report.at(field).is_null()) {
    return std::nullopt;
  }
  return report.at(field).get<T>();
}

/// What the products of matrices alone would take at the rate that was measured for them.
std::optional<double> product_seconds(const RunTrace& run) {
  const auto rate = about<double>(run, "gflops");
  const auto product_rate = about<double>(run, "gemm_gflops");
  const auto seconds = about<json>(run, "seconds");
  if (!rate || !product_rate || *product_rate <= 0 || !seconds || !seconds->contains("factor")) {
    return std::nullopt;
  }
  return seconds->at("factor").get<double>() * *rate / *product_rate;
}

std::string heading(const RunTrace& run, const Analysis& analysis) {
  std::string out = run.source;
  if (const auto what = about<std::string>(run, "factorization")) {
    out += fmt::format(": {}, {} x {}", *what, about<std::int64_t>(run, "m").value_or(0),
                       about<std::int64_t>(run, "n").value_or(0));
    if (const auto tile = about<std::int64_t>(run, "tile"))
      out += fmt::format(", tiles of {}", *tile);
    if (const auto rate = about<double>(run, "gflops"))
      out += fmt::format(", {:.1f} GFLOP/s", *rate);
  }
  out += fmt::format("\njob {}: {} tasks with {} dependencies in {} on {} {}\n", analysis.job,
                     analysis.tasks, analysis.dependencies, format_seconds(analysis.seconds()),
                     run.node_count, run.node_count == 1 ? "node" : "nodes");
  for (const std::string& damage : run.damages) out += fmt::format("  not whole: {}\n", damage);
  return out;
}

std::string thread_row(const std::string& label, const ThreadTime& time) {
  const auto all = static_cast<double>(time.busy_ns + time.idle());
  std::string out =
      fmt::format("  {:<22}{:>7.1f}", label, percent(static_cast<double>(time.busy_ns), all));
  for (const std::int64_t ns : time.idle_ns) {
    out += fmt::format("{:>11.1f}", percent(static_cast<double>(ns), all));
  }
  return out + fmt::format("{:>9}\n", time.tasks);
}

void add(ThreadTime& sum, const ThreadTime& one) {
  sum.tasks += one.tasks;
  sum.busy_ns += one.busy_ns;
  for (std::size_t i = 0; i < idle_cause_count; ++i) sum.idle_ns.at(i) += one.idle_ns.at(i);
}

std::string threads_table(const RunTrace& run, const Analysis& analysis) {
  std::string out = fmt::format("\n{:<24}{:>7}", "threads, % of the time", "busy");
  for (std::size_t i = 0; i < idle_cause_count; ++i) {
    out += fmt::format("{:>11}", replay::name(static_cast<IdleCause>(i)));
  }
  out += fmt::format("{:>9}\n", "tasks");
  std::map<std::pair<NodeId, replay::Role>, std::pair<int, ThreadTime>> by_node;
  for (const ThreadTime& time : analysis.threads) {
    const replay::Thread& thread = run.at(time.thread);
    auto& [count, sum] = by_node[{thread.node, thread.role}];
    ++count;
    add(sum, time);
    if (analysis.threads.size() > thread_rows_max) continue;
    out += thread_row(fmt::format("node {} {}", thread.node.value(), thread.name), time);
  }
  ThreadTime all;
  for (const auto& [key, entry] : by_node) {
    add(all, entry.second);
    if (analysis.threads.size() <= thread_rows_max) continue;
    out += thread_row(
        fmt::format("node {}, {} {}s", key.first.value(), entry.first, replay::name(key.second)),
        entry.second);
  }
  return out + (analysis.threads.size() > 1 ? thread_row("all", all) : "");
}

std::string kernels_table(const Analysis& analysis) {
  std::string out =
      fmt::format("\n{:<16}{:>8}{:>9}{:>12}{:>8}{:>12}{:>11}{:>11}{:>11}{:>10}\n", "kernels",
                  "on a", "count", "in all", "%", "median, us", "5 %", "95 %", "most", "outliers");
  double all = 0;
  for (const auto& kernel : analysis.kernels) all += kernel.total_s;
  for (const auto& kernel : analysis.kernels) {
    out +=
        fmt::format("  {:<14}{:>8}{:>9}{:>12}{:>8.1f}{:>12.1f}{:>11.1f}{:>11.1f}{:>11.1f}{:>10}\n",
                    kernel.kernel, replay::name(kernel.role), kernel.count,
                    format_seconds(kernel.total_s), percent(kernel.total_s, all), kernel.median_us,
                    kernel.low_us, kernel.high_us, kernel.most_us, kernel.outliers);
  }
  return out;
}

std::string transfer_row(std::string_view what, const replay::TransferFigures& figures) {
  if (figures.count == 0) return {};
  return fmt::format("  {:<14}{:>17}{:>12}{:>12} in all,{:>6.1f} % hidden behind tasks\n", what,
                     figures.count, format_bytes(static_cast<std::uint64_t>(figures.bytes)),
                     format_seconds(figures.seconds), 100 * figures.hidden);
}

std::string transfers_table(const Analysis& analysis) {
  const std::string rows =
      transfer_row("messages", analysis.messages) + transfer_row("copies", analysis.copies);
  return rows.empty() ? rows : "\ntransfers\n" + rows;
}

std::string bounds_table(const RunTrace& run, const Analysis& analysis) {
  const auto row = [&](std::string_view what, double seconds) {
    return fmt::format("  {:<38}{:>12}{:>8.1f} %\n", what, format_seconds(seconds),
                       percent(seconds, analysis.seconds()));
  };
  std::string out = fmt::format("\n{:<40}{:>12}{:>10}\n", "bounds", "", "of this");
  out += row("this run", analysis.seconds());
  out += row("all workers always busy", analysis.bounds.area_s);
  out += row("tasks that wait for each other", analysis.bounds.critical_path_s);
  if (const auto seconds = product_seconds(run)) {
    out += row("products at the rate measured for them", *seconds);
  }
  return out;
}

std::string path_table(std::string_view title, const std::vector<replay::PathPart>& parts) {
  double all = 0;
  for (const auto& part : parts) all += part.seconds;
  std::string out = fmt::format("\n{}\n", title);
  replay::PathPart rest{"others", 0, 0};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i < path_rows_max) {
      out += fmt::format("  {:<28}{:>10}{:>12}{:>8.1f} %\n", parts[i].what, parts[i].count,
                         format_seconds(parts[i].seconds), percent(parts[i].seconds, all));
      continue;
    }
    rest.count += parts[i].count;
    rest.seconds += parts[i].seconds;
  }
  if (rest.count > 0) {
    out += fmt::format("  {:<28}{:>10}{:>12}{:>8.1f} %\n", rest.what, rest.count,
                       format_seconds(rest.seconds), percent(rest.seconds, all));
  }
  return out;
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

}  // namespace

std::string analysis_table(const RunTrace& run, const Analysis& analysis) {
  return heading(run, analysis) + threads_table(run, analysis) + kernels_table(analysis) +
         transfers_table(analysis) + bounds_table(run, analysis) +
         path_table("the longest chain of tasks that wait for each other", analysis.critical_path) +
         path_table("what led to the last task", analysis.chain);
}

json to_json(const RunTrace& run, const Analysis& analysis) {
  json result{{"run", run.source},
              {"about", json::parse(run.about)},
              {"nodes", run.node_count},
              {"damages", run.damages},
              {"job", analysis.job},
              {"seconds", analysis.seconds()},
              {"tasks", analysis.tasks},
              {"dependencies", analysis.dependencies},
              {"messages", to_json(analysis.messages)},
              {"copies", to_json(analysis.copies)},
              {"critical_path", to_json(analysis.critical_path)},
              {"chain", to_json(analysis.chain)}};
  result["bounds"] = {{"area", analysis.bounds.area_s},
                      {"critical_path", analysis.bounds.critical_path_s}};
  const auto products = product_seconds(run);
  result["bounds"]["products"] = products ? json(*products) : json(nullptr);
  result["threads"] = json::array();
  for (const ThreadTime& time : analysis.threads) {
    const replay::Thread& thread = run.at(time.thread);
    json row{{"node", thread.node.value()},
             {"name", thread.name},
             {"role", replay::name(thread.role)},
             {"tasks", time.tasks},
             {"busy", seconds_of(time.busy_ns)}};
    for (std::size_t i = 0; i < idle_cause_count; ++i) {
      row["idle"][replay::name(static_cast<IdleCause>(i))] = seconds_of(time.idle_ns.at(i));
    }
    result["threads"].push_back(std::move(row));
  }
  result["kernels"] = json::array();
  for (const auto& kernel : analysis.kernels) {
    result["kernels"].push_back({{"kernel", kernel.kernel},
                                 {"role", replay::name(kernel.role)},
                                 {"count", kernel.count},
                                 {"seconds", kernel.total_s},
                                 {"median_us", kernel.median_us},
                                 {"low_us", kernel.low_us},
                                 {"high_us", kernel.high_us},
                                 {"most_us", kernel.most_us},
                                 {"outliers", kernel.outliers}});
  }
  return result;
}

}  // namespace heddle
