#pragma once

#include <string>

#include "apps/results.hpp"
#include "apps/simulation/options.hpp"

namespace heddle {

struct SimulateOptions : PredictionOptions {
  std::string file;  ///< the problem
};

/// `heddle simulate`: predicts a problem's factorization on any machine in virtual time. Returns
/// the exit status.
[[nodiscard]] int simulate_problem(SimulateOptions options, Results& results);

}  // namespace heddle
