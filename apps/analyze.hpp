#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/results.hpp"

namespace heddle {

struct AnalyzeOptions {
  std::vector<std::string> runs;    ///< folders, or files of single nodes
  std::optional<std::int32_t> job;  ///< nothing: replay::main_job()
  std::optional<std::string> report;
  std::optional<std::string> html;  ///< a page for a browser, of all runs
};

/// `heddle analyze`. The exit status: 0, or 1 when part of a trace could not be read. Throws Error.
int analyze(const AnalyzeOptions& options, Results& results);

}  // namespace heddle
