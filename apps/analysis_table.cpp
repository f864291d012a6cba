#include "apps/analysis_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/report.hpp"
#include "apps/run_facts.hpp"
#include "base/units.hpp"
#include "replay/collective_figures.hpp"

namespace heddle {
namespace {

using replay::Analysis;
using replay::idle_cause_count;
using replay::IdleCause;
using replay::RunTrace;
using replay::ThreadTime;

constexpr std::size_t thread_rows_max = 24;  // above that, rows are summed by node
constexpr std::size_t path_rows_max = 8;
constexpr std::size_t path_tasks_max = 5;
constexpr std::size_t waited_for_rows_max = 8;

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// Marks the columns that are not empty.
template <std::size_t Count>
using Shown = std::array<bool, Count>;

template <std::size_t Count>
void show_used(Shown<Count>& shown, const std::array<std::int64_t, Count>& values) {
  for (std::size_t i = 0; i < Count; ++i) shown.at(i) = shown.at(i) || values.at(i) > 0;
}

/// Fractions of a thread's time in those columns.
template <std::size_t Count>
std::string shares(const Shown<Count>& shown, const std::array<std::int64_t, Count>& values,
                   double all) {
  std::string out;
  for (std::size_t i = 0; i < Count; ++i) {
    if (!shown.at(i)) continue;
    out += fmt::format("{:>12.1f}", percent(static_cast<double>(values.at(i)), all));
  }
  return out;
}

std::string where(const RunTrace& run, replay::ThreadId id) {
  const replay::Thread& thread = run.at(id);
  return fmt::format("node {} {}", thread.node.value(), thread.name);
}

using IdleShown = Shown<idle_cause_count>;

std::string thread_row(const std::string& label, const ThreadTime& time, const IdleShown& shown) {
  const auto all = static_cast<double>(time.busy_ns + time.idle());
  return fmt::format("  {:<24}{:>7.1f}{}{:>9}\n", label,
                     percent(static_cast<double>(time.busy_ns), all),
                     shares(shown, time.idle_ns, all), time.tasks);
}

void add(ThreadTime& sum, const ThreadTime& one) {
  sum.tasks += one.tasks;
  sum.busy_ns += one.busy_ns;
  for (std::size_t i = 0; i < idle_cause_count; ++i) sum.idle_ns.at(i) += one.idle_ns.at(i);
}

std::string single_threads(const RunTrace& run, const Analysis& analysis, const IdleShown& shown) {
  std::string out;
  for (const ThreadTime& time : analysis.threads) {
    out += thread_row(where(run, time.thread), time, shown);
    for (const ThreadTime& stream : analysis.streams) {
      if (stream.thread != time.thread) continue;
      out += thread_row(fmt::format("  stream {}", stream.stream), stream, shown);
    }
  }
  return out;
}

std::string threads_table(const RunTrace& run, const Analysis& analysis) {
  IdleShown shown{};
  std::map<std::pair<NodeId, replay::Role>, std::pair<int, ThreadTime>> by_node;
  ThreadTime all;
  for (const ThreadTime& time : analysis.threads) {
    const replay::Thread& thread = run.at(time.thread);
    auto& [count, sum] = by_node[{thread.node, thread.role}];
    ++count;
    add(sum, time);
    add(all, time);
    show_used(shown, time.idle_ns);
  }
  for (const ThreadTime& stream : analysis.streams) show_used(shown, stream.idle_ns);
  std::string out = fmt::format("\n{:<26}{:>7}", "threads, % of the time", "busy");
  for (std::size_t i = 0; i < idle_cause_count; ++i) {
    if (shown.at(i)) out += fmt::format("{:>12}", replay::name(static_cast<IdleCause>(i)));
  }
  out += fmt::format("{:>9}\n", "tasks");
  if (analysis.threads.size() + analysis.streams.size() <= thread_rows_max) {
    out += single_threads(run, analysis, shown);
  } else {
    for (const auto& [key, entry] : by_node) {
      out += thread_row(
          fmt::format("node {}, {} {}s", key.first.value(), entry.first, replay::name(key.second)),
          entry.second, shown);
    }
  }
  return out + (analysis.threads.size() > 1 ? thread_row("all", all, shown) : "");
}

std::string services_table(const RunTrace& run, const Analysis& analysis) {
  Shown<trace::wait_cause_count> shown{};
  bool is_all_known = true;
  for (const replay::ServiceTime& time : analysis.services) {
    show_used(shown, time.waiting_ns);
    is_all_known = is_all_known && time.unknown_ns == 0;
  }
  if (analysis.services.empty() || analysis.services.size() > thread_rows_max) return {};
  std::string out = fmt::format("\n{:<26}{:>7}", "waits of other threads, %", "busy");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown.at(i)) out += fmt::format("{:>12}", trace::name(static_cast<trace::WaitCause>(i)));
  }
  out += is_all_known ? "\n" : fmt::format("{:>12}\n", "unknown");
  const auto span = static_cast<double>(analysis.span.ns());
  for (const replay::ServiceTime& time : analysis.services) {
    out += fmt::format("  {:<24}{:>7.1f}{}", where(run, time.thread),
                       percent(static_cast<double>(time.busy_ns), span),
                       shares(shown, time.waiting_ns, span));
    out += is_all_known
               ? "\n"
               : fmt::format("{:>12.1f}\n", percent(static_cast<double>(time.unknown_ns), span));
  }
  return out;
}

/// The tasks that others waited for longest.
std::string waited_for_table(const RunTrace& run, const Analysis& analysis) {
  if (analysis.waited_for.empty()) return {};
  double idle = 0;
  for (const ThreadTime& time : analysis.threads) idle += seconds_of(time.idle());
  std::string out = fmt::format("\n{:<56}{:>10}\n", "waited for, time of all threads", "of idle");
  for (std::size_t i = 0; i < std::min(waited_for_rows_max, analysis.waited_for.size()); ++i) {
    const replay::WaitedFor& wait = analysis.waited_for[i];
    const replay::Task& task = run.at(wait.task);
    out += fmt::format("  {:<20}{:<22}{:>12}{:>8.1f} %\n", run.label_of(task),
                       "on " + where(run, task.thread), format_seconds(seconds_of(wait.ns)),
                       percent(seconds_of(wait.ns), idle));
  }
  return out;
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

/// What homes saved since readers passed versions on.
std::string readers_rows(const replay::ReaderFigures& readers) {
  if (readers.passed_on == 0) return {};
  const auto bytes = [](double amount) { return format_bytes(static_cast<std::uint64_t>(amount)); };
  std::string out =
      fmt::format("  {:<14}{:>17}{:>12}\n", "by readers", readers.passed_on, bytes(readers.bytes));
  const auto row = [&](std::string_view who, std::string_view where,
                       const replay::LargestSender& most) {
    if (most.bytes_from_homes <= 0) return;
    out += fmt::format("    busiest {}: {} sent{}, {} if homes had sent all\n", who,
                       bytes(most.bytes), where, bytes(most.bytes_from_homes));
  };
  row("node", "", readers.node);
  row("host", " to other hosts", readers.host);
  return out;
}

std::string transfers_table(const Analysis& analysis) {
  const std::string rows = transfer_row("messages", analysis.messages) +
                           readers_rows(analysis.readers) + transfer_row("copies", analysis.copies);
  return rows.empty() ? rows : "\ntransfers\n" + rows;
}

std::string group_operations_table(const RunTrace& run) {
  const std::vector<replay::CollectiveFigures> all = replay::collective_figures(run);
  if (all.empty()) return {};
  std::size_t width = std::string_view("way").size();
  for (const auto& one : all) width = std::max(width, one.algorithm.size());
  std::string out =
      fmt::format("\n{:<20}{:<{}}{:>9}{:>13}{:>12}{:>12}{:>11}\n", "groups' operations", "way",
                  width, "count", "bytes", "in all", "median, us", "most");
  for (const auto& one : all) {
    out += fmt::format("  {:<18}{:<{}}{:>9}{:>13}{:>12}{:>12.1f}{:>11.1f}\n", one.operation,
                       one.algorithm, width, one.count,
                       format_bytes(static_cast<std::uint64_t>(one.bytes)),
                       format_seconds(one.seconds), one.median_us, one.most_us);
  }
  return out;
}

/// The reported rate, compared with that of matrix products.
std::string rate_row(const RunFacts& facts) {
  if (!facts.gflops || !facts.gemm_gflops) {
    return fmt::format("  products of matrices: {}\n", facts.why_no_products());
  }
  return fmt::format("  {:.1f} GFLOP/s are {:.1f} % of the {:.1f} that products reach\n",
                     *facts.gflops, percent(*facts.gflops, *facts.gemm_gflops), *facts.gemm_gflops);
}

std::string bounds_table(const RunTrace& run, const Analysis& analysis) {
  const auto row = [&](std::string_view what, double seconds) {
    return fmt::format("  {:<46}{:>12}{:>8.1f} %\n", what, format_seconds(seconds),
                       percent(seconds, analysis.seconds()));
  };
  const replay::Bounds& bounds = analysis.bounds;
  std::string out = fmt::format("\n{:<48}{:>12}{:>10}\n", "bounds", "", "of this");
  out += row("this run", analysis.seconds());
  out += row("area: all workers and devices always busy", bounds.area_s);
  out += row("placed: likewise, tasks where they were", bounds.placed_s);
  out += row("critical path: tasks that wait for each other", bounds.critical_path_s);
  out += row("mixed: both", bounds.mixed_s);
  const RunFacts facts = facts_of(run, analysis.job);
  if (const auto seconds = facts.products_s()) {
    out += row("products at the rate measured for them", *seconds);
  }
  return out + rate_row(facts);
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

/// The longest chain's first, last and longest tasks.
std::string path_tasks(const RunTrace& run, const Analysis& analysis) {
  if (analysis.path.empty()) return {};
  std::vector<replay::TaskId> longest = analysis.path;
  const std::size_t count = std::min(path_tasks_max, longest.size());
  std::ranges::partial_sort(longest, longest.begin() + static_cast<std::ptrdiff_t>(count),
                            std::greater{},
                            [&](replay::TaskId id) { return run.at(id).time.ns(); });
  std::string out = fmt::format("  from {} to {}; its longest tasks\n",
                                run.label_of(run.at(analysis.path.front())),
                                run.label_of(run.at(analysis.path.back())));
  for (std::size_t i = 0; i < count; ++i) {
    const replay::Task& task = run.at(longest[i]);
    const double seconds = seconds_of(task.time.ns());
    out += fmt::format("    {:<20}{:<16}{:>12}{:>8.1f} %\n", run.label_of(task),
                       where(run, task.thread), format_seconds(seconds),
                       percent(seconds, analysis.bounds.critical_path_s));
  }
  return out;
}

}  // namespace

std::string analysis_heading(const RunTrace& run, const Analysis& analysis) {
  const RunFacts facts = facts_of(run, analysis.job);
  std::string out = run.source;
  if (facts.factorization) {
    out += fmt::format(": {}, {} x {}", *facts.factorization, facts.m.value_or(0),
                       facts.n.value_or(0));
    if (facts.tile) out += fmt::format(", tiles of {}", *facts.tile);
    if (facts.gflops) out += fmt::format(", {:.1f} GFLOP/s", *facts.gflops);
    if (facts.status && *facts.status != "ok") out += fmt::format(", {}", *facts.status);
  }
  out += fmt::format("\njob {}: {} tasks with {} dependencies in {} on {} {}\n", analysis.job,
                     analysis.tasks, analysis.dependencies, format_seconds(analysis.seconds()),
                     run.node_count, run.node_count == 1 ? "node" : "nodes");
  const double around_s = facts.factor_s.value_or(0) - analysis.seconds();
  if (around_s > 0.01 * analysis.seconds()) {
    out +=
        fmt::format("  the run took {}: {} of it before its first task and behind its last one\n",
                    format_seconds(*facts.factor_s), format_seconds(around_s));
  }
  if (facts.stolen_share.value_or(0) >= stolen_share_told) {
    out += fmt::format(
        "  disturbed: this virtual machine's host gave {:.1f} % of the workers' time to others\n",
        100 * *facts.stolen_share);
  }
  for (const std::string& damage : run.damages) out += fmt::format("  not whole: {}\n", damage);
  return out;
}

std::string groups_table(const RunTrace& run) {
  std::string out = fmt::format("{}\nno task ran on {} {}\n", run.source, run.node_count,
                                run.node_count == 1 ? "node" : "nodes");
  for (const std::string& damage : run.damages) out += fmt::format("  not whole: {}\n", damage);
  return out + group_operations_table(run);
}

std::string analysis_table(const RunTrace& run, const Analysis& analysis) {
  return analysis_heading(run, analysis) + threads_table(run, analysis) +
         services_table(run, analysis) + waited_for_table(run, analysis) + kernels_table(analysis) +
         transfers_table(analysis) + group_operations_table(run) + bounds_table(run, analysis) +
         path_table("the longest chain of tasks that wait for each other", analysis.critical_path) +
         path_tasks(run, analysis) + path_table("what led to the last task", analysis.chain);
}

}  // namespace heddle
