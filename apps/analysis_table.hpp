#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// What bounded a run, for a terminal; ends with a line break.
[[nodiscard]] std::string analysis_table(const replay::RunTrace& run,
                                         const replay::Analysis& analysis);

/// The same figures.
[[nodiscard]] nlohmann::json to_json(const replay::RunTrace& run, const replay::Analysis& analysis);

}  // namespace heddle
