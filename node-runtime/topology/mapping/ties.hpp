#pragma once

#include <functional>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// Of placements that cost the same as `placement`, one with a lower largest link, and of these one
/// nearer to `in_order`: exchanges of two slots that keep the cost, as long as they lower the
/// largest link; `in_order` itself if it is as good; then exchanges that keep both and bring a slot
/// to its place in order. `largest_load`: of a link.
[[nodiscard]] Placement preferred_of_equals(
    const MappingProblem& problem, const Placement& placement, const Placement& in_order,
    const std::function<double(const Placement&)>& largest_load);

}  // namespace heddle
