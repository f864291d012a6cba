#include "apps/analyze.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "apps/analysis_json.hpp"
#include "apps/analysis_table.hpp"
#include "apps/comparison.hpp"
#include "apps/file_uses.hpp"
#include "apps/page/page.hpp"
#include "apps/report.hpp"
#include "apps/terminal.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/units.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

FileUses files_of(const AnalyzeOptions& options) {
  FileUses files;
  for (const std::string& run : options.runs) files.reads_run("the run", run);
  if (options.report) files.writes("--report", *options.report);
  if (options.html) files.writes("--html", *options.html);
  return files;
}

/// Describes the content of the page.
std::string summary_of(const page::PageSummary& summary, const std::string& path) {
  std::string text = fmt::format("\n{}: {}\n", path, format_bytes(summary.bytes));
  for (const std::string& what : summary.left_out) text += fmt::format("  not in it: {}\n", what);
  return text;
}

}  // namespace

int analyze(const AnalyzeOptions& options, Results& results) {
  const FileUses files = files_of(options);
  files.check_distinct();
  files.check_writable(results.janitor());
  auto report = nlohmann::json::array();
  std::vector<ComparedRun> runs;
  bool are_whole = true;
  const bool is_one = options.runs.size() == 1;
  std::optional<page::Page> html;
  if (options.html) {
    html.emplace(results.stage(*options.html), page::PageOptions{.runs = options.runs.size()});
  }
  for (const std::string& path : options.runs) {
    const replay::RunTrace run = replay::load_run(path);
    const auto job = options.job ? options.job : replay::main_job(run);
    if (!job && is_one && !html && !run.collectives.empty()) {
      print(groups_table(run));
      report.push_back(groups_to_json(run));
      are_whole = run.damages.empty();
      continue;
    }
    if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", path));
    replay::Analysis analysis = replay::analyze(run, *job);
    are_whole = are_whole && run.damages.empty();
    print(is_one ? analysis_table(run, analysis) : analysis_heading(run, analysis));
    if (options.report || html) report.push_back(to_json(run, analysis));
    if (html) html->add(run, analysis, report.back());
    runs.push_back({printable(path), facts_of(run, *job), std::move(analysis)});
  }
  if (!is_one) print(comparison_table(runs));
  std::string about_page;
  if (html) about_page = summary_of(html->write(), *options.html);
  if (options.report) {
    nlohmann::json all{{"runs", std::move(report)}};
    if (!is_one) {
      all["settings"] = settings_json(runs);
      all["comparison"] = comparison_json(runs);
    }
    results.add_text(*options.report, json_text(all));
  }
  results.commit();
  print(about_page);
  return are_whole ? 0 : 1;
}

}  // namespace heddle
