#pragma once

#include <string>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// Which run it is, what it computed, and what is not whole of its trace; ends with a line break.
[[nodiscard]] std::string analysis_heading(const replay::RunTrace& run,
                                           const replay::Analysis& analysis);

/// What bounded a run, for a terminal, with that heading; ends with a line break.
[[nodiscard]] std::string analysis_table(const replay::RunTrace& run,
                                         const replay::Analysis& analysis);

}  // namespace heddle
