#pragma once

#include <string>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// Identifies the run, what it computed, and damaged parts of its trace; ends with a line break.
[[nodiscard]] std::string analysis_heading(const replay::RunTrace& run,
                                           const replay::Analysis& analysis);

/// What limited a run, for a terminal, with that heading; ends with a line break.
[[nodiscard]] std::string analysis_table(const replay::RunTrace& run,
                                         const replay::Analysis& analysis);

/// What groups did in a run without tasks; ends with a line break.
[[nodiscard]] std::string groups_table(const replay::RunTrace& run);

}  // namespace heddle
