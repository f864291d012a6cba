#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/topology/mapping/cost_tree.hpp"
#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// Most real slots for which cheapest_on_tree() is meant.
inline constexpr std::int32_t tree_slots_max = 20;

/// The cheapest placement where distances are those of a tree, by dynamic programming over subsets
/// of slots: a vertex's cost for a set of slots is the least over all ways to deal them out to its
/// children, plus its distances times what sets of different children send each other. Equal
/// children get each partition once.
///
/// `steps_max` bounds the pairs of sets that are looked at (some 2 ns each): nothing if there are
/// more, or more than `tree_slots_max` slots.
[[nodiscard]] std::optional<Placement> cheapest_on_tree(const MappingProblem& problem,
                                                        const CostTree& tree,
                                                        double steps_max = 3e8);

}  // namespace heddle
