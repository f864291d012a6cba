#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// What SCOTCH answers.
struct ScotchResult {
  /// A GPU for each slot, empty ones included; GPUs may have too many or too few. Empty on failure.
  std::vector<std::int32_t> gpu_of;
  std::string failure;  ///< which call of SCOTCH failed; empty if none
};

/// Maps the graph of flows onto the complete graph of distances (004 section 4) by SCOTCH_graphMap.
/// Loads of the target's edges are distances, what is minimised. SCOTCH sees neither unary costs
/// nor groups. The same problem and seed give the same result; builds of SCOTCH with
/// numbers of 32 and of 64 bits may differ from each other. Takes a lock, as SCOTCH's source of
/// random numbers is one for the process. Thread: any.
[[nodiscard]] ScotchResult scotch_mapping(const MappingProblem& problem, std::uint64_t seed);

}  // namespace heddle
