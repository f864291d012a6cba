#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// Most real slots for which cheapest_by_enumeration() is meant.
inline constexpr std::int32_t enumeration_slots_max = 10;

/// The cheapest placement, by branch and bound: slots are placed one after the other, those with
/// most traffic to the placed ones first; a branch ends where its lower bound
/// (gilmore_lawler_bound) is not below the best placement so far. Of empty GPUs that are equal only
/// the first is tried. `start`: an allowed placement, which is returned unless another one costs
/// less.
///
/// `branches_max`: ends with nothing if more would be looked at.
[[nodiscard]] std::optional<Placement> cheapest_by_enumeration(const MappingProblem& problem,
                                                               const Placement& start,
                                                               std::int64_t branches_max);

}  // namespace heddle
