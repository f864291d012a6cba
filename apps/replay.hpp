#pragma once

#include <optional>
#include <string>

#include "apps/results.hpp"
#include "apps/simulation/options.hpp"

namespace heddle {

struct ReplayOptions : PredictionOptions {
  std::string run;  ///< what heddle solve --trace has written
  /// Another such run, of what the changes make of this one: how wrong is what is foreseen?
  std::optional<std::string> actual;
};

/// `heddle replay`: a recorded factorization once more in virtual time, as it was or with changes.
/// Returns the exit status.
[[nodiscard]] int replay_run(ReplayOptions options, Results& results);

}  // namespace heddle
