#pragma once

#include <optional>
#include <string>

#include "node-runtime/topology/mapping/link_problem.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// A placement and what is known about it.
struct FoundPlacement {
  Placement placement;
  MappingMethod method = MappingMethod::order;
  std::optional<double> optimum;  ///< the least value of the objective, if it is proven
  double lower_bound = 0;         ///< of that value, otherwise
  std::string remark;
};

/// Searches as `options.selection` says (not `given`) for the least value of the objective.
/// `order`: the plain order. Throws Error(usage) if an exact placement is wanted and there are too
/// many slots.
[[nodiscard]] FoundPlacement find_placement(const MappingProblem& problem, const LinkProblem& links,
                                            const MapOptions& options, const Placement& order);

/// No placement has a lower value of the objective.
[[nodiscard]] double lower_bound(const MappingProblem& problem, const LinkProblem& links,
                                 Objective objective);

}  // namespace heddle
