#include "apps/analyze.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/analysis_table.hpp"
#include "apps/report.hpp"
#include "base/error.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

int analyze(const AnalyzeOptions& options) {
  auto report = nlohmann::json::array();
  bool are_whole = true;
  for (const std::string& path : options.runs) {
    const replay::RunTrace run = replay::load_run(path);
    const auto job = options.job ? options.job : replay::main_job(run);
    if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", path));
    const replay::Analysis analysis = replay::analyze(run, *job);
    are_whole = are_whole && run.damages.empty();
    fmt::print("{}{}", report.empty() ? "" : "\n", analysis_table(run, analysis));
    std::fflush(stdout);
    report.push_back(to_json(run, analysis));
  }
  if (options.report) write_json({{"runs", std::move(report)}}, *options.report);
  return are_whole ? 0 : 1;
}

}  // namespace heddle
