#pragma once

#include <cstdint>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// What a search may still do: differences of costs that it looks at, some 30 ns each. A count and
/// not a time, so that the result is the same on every machine.
struct SearchBudget {
  std::int64_t looks = 0;
};

/// Exchanges the GPUs of two slots, then of three in a circle, as long as that lowers the cost and
/// the budget lasts. `placement` is allowed, and so is the result.
[[nodiscard]] Placement exchanged(const MappingProblem& problem, Placement placement,
                                  SearchBudget& budget);

}  // namespace heddle
