#pragma once

#include <optional>
#include <string>

#include "apps/results.hpp"
#include "apps/simulation/options.hpp"

namespace heddle {

struct ReplayOptions : PredictionOptions {
  std::string run;  ///< folder written by heddle solve --trace
  /// A run made with these changes, to measure the prediction's error.
  std::optional<std::string> actual;
};

/// `heddle replay`: repeats a recorded factorization in virtual time, with or without changes.
/// Returns the exit status.
[[nodiscard]] int replay_run(ReplayOptions options, Results& results);

}  // namespace heddle
