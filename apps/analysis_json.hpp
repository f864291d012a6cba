#pragma once

#include <nlohmann/json_fwd.hpp>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// What bounded a run: what analysis_table() shows, and more of it.
[[nodiscard]] nlohmann::json to_json(const replay::RunTrace& run, const replay::Analysis& analysis);

}  // namespace heddle
