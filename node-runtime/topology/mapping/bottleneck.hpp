#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "node-runtime/topology/mapping/link_problem.hpp"
#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// The placement whose largest link load is least, and of these the cheapest, by trying one slot
/// after the other: a branch ends where the links of the placed slots are loaded more than the best
/// largest so far. `start`: an allowed placement. Nothing if more than `branches_max` would be
/// looked at.
[[nodiscard]] std::optional<Placement> least_loaded_by_enumeration(const MappingProblem& problem,
                                                                   const LinkProblem& links,
                                                                   const Placement& start,
                                                                   std::int64_t branches_max);

/// Exchanges the GPUs of two slots as long as that lowers the largest load, or keeps it and lowers
/// the cost. `looks`: exchanges that may still be looked at, some microseconds each.
[[nodiscard]] Placement less_loaded(const MappingProblem& problem, const LinkProblem& links,
                                    Placement placement, std::int64_t& looks);

/// No placement has a lower largest load: each slot's bytes have to leave and to enter some GPU,
/// whose links share them at best evenly. 0 where slots share GPUs.
[[nodiscard]] double least_load_bound(const MappingProblem& problem, const LinkProblem& links);

}  // namespace heddle
