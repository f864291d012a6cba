#pragma once

#include <span>
#include <vector>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// The least sum of one element of each row, no two in one column; `costs` is rows x columns with
/// rows <= columns. The Hungarian method, O(rows^2 columns).
[[nodiscard]] double linear_assignment(std::span<const double> costs, std::size_t rows,
                                       std::size_t columns);

/// A lower bound of the problem's cost (Gilmore 1962, Lawler 1963): each slot on each GPU costs at
/// least its flows, greatest first, times the distances from there, least first; the best
/// assignment of these costs bounds the sum. Rules about groups are left out, which only lowers it.
///
/// `placed[i]`: the GPU of a slot that is fixed, or -1. All fixed: the cost itself.
[[nodiscard]] double gilmore_lawler_bound(const MappingProblem& problem,
                                          std::span<const std::int32_t> placed);
[[nodiscard]] double gilmore_lawler_bound(const MappingProblem& problem);

}  // namespace heddle
