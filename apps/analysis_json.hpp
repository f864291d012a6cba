#pragma once

#include <nlohmann/json_fwd.hpp>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// A superset of analysis_table().
[[nodiscard]] nlohmann::json to_json(const replay::RunTrace& run, const replay::Analysis& analysis);

}  // namespace heddle
