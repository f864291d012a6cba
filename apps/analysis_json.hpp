#pragma once

#include <nlohmann/json_fwd.hpp>

#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {

/// A superset of analysis_table().
[[nodiscard]] nlohmann::json to_json(const replay::RunTrace& run, const replay::Analysis& analysis);

/// A superset of groups_table().
[[nodiscard]] nlohmann::json groups_to_json(const replay::RunTrace& run);

}  // namespace heddle
