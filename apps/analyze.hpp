#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/results.hpp"

namespace heddle {

struct AnalyzeOptions {
  std::vector<std::string> runs;    ///< folders, or files of single nodes
  std::optional<std::int32_t> job;  ///< empty: replay::main_job()
  std::optional<std::string> report;
  std::optional<std::string> html;  ///< HTML page of all runs
};

/// `heddle analyze`. Returns the exit status: 0, or 1 if part of a trace could not be read. Throws
/// Error.
int analyze(const AnalyzeOptions& options, Results& results);

}  // namespace heddle
