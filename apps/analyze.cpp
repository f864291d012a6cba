#include "apps/analyze.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "apps/analysis_json.hpp"
#include "apps/analysis_table.hpp"
#include "apps/comparison.hpp"
#include "apps/page/page.hpp"
#include "apps/report.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

void write(page::Page& html, const std::string& path) {
  const page::PageSummary summary = html.write();
  fmt::print("\n{}: {}\n", path, format_bytes(summary.bytes));
  for (const std::string& what : summary.left_out) fmt::print("  not in it: {}\n", what);
}

}  // namespace

int analyze(const AnalyzeOptions& options) {
  auto report = nlohmann::json::array();
  std::vector<ComparedRun> runs;
  bool are_whole = true;
  const bool is_one = options.runs.size() == 1;
  std::optional<page::Page> html;
  if (options.html) html.emplace(*options.html, page::PageOptions{.runs = options.runs.size()});
  for (const std::string& path : options.runs) {
    const replay::RunTrace run = replay::load_run(path);
    const auto job = options.job ? options.job : replay::main_job(run);
    if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", path));
    replay::Analysis analysis = replay::analyze(run, *job);
    are_whole = are_whole && run.damages.empty();
    fmt::print("{}", is_one ? analysis_table(run, analysis) : analysis_heading(run, analysis));
    std::fflush(stdout);
    if (options.report || html) report.push_back(to_json(run, analysis));
    if (html) html->add(run, analysis, report.back());
    runs.push_back({path, facts_of(run, *job), std::move(analysis)});
  }
  if (!is_one) fmt::print("{}", comparison_table(runs));
  if (html) write(*html, *options.html);
  if (options.report) {
    nlohmann::json all{{"runs", std::move(report)}};
    if (!is_one) {
      all["settings"] = settings_json(runs);
      all["comparison"] = comparison_json(runs);
    }
    write_json(all, *options.report);
  }
  return are_whole ? 0 : 1;
}

}  // namespace heddle
