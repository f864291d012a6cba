#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/simulation/prediction.hpp"
#include "apps/simulation/sweep.hpp"

/// What a sweep has found, for people and programs.
namespace heddle {

/// One case of a sweep: a prediction, or why there is none.
struct SweptCase {
  std::vector<std::string> values;  ///< by key of the sweep
  std::string refused;
  PredictionCase what;
  std::optional<Prediction> prediction;
};

/// Writes the values that cases have left as they are, where that is known.
void fill_in(const Sweep& sweep, std::vector<SweptCase>& cases);

/// For a terminal of 80 columns, with bars; ends with a line break. Bars are drawn by block
/// elements where the terminal's characters are UTF-8, by '#' otherwise.
[[nodiscard]] std::string sweep_table(const Sweep& sweep, const std::vector<SweptCase>& cases);
[[nodiscard]] nlohmann::json to_json(const Sweep& sweep, const std::vector<SweptCase>& cases);
/// GFLOP/s by the first key, a line for each combination of the others; SVG.
[[nodiscard]] std::string sweep_picture(const Sweep& sweep, const std::vector<SweptCase>& cases);

}  // namespace heddle
