#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// The GPUs of a problem as leaves of a tree in which a pair's distances depend only on its lowest
/// common vertex, as in 004 figure 1.
/// Invariant: every GPU is in one leaf; children come before their parent, the root is last.
struct CostTree {
  struct Vertex {
    std::int32_t gpu = -1;               ///< of a leaf
    std::vector<std::int32_t> children;  ///< equal ones next to each other
    std::vector<double> distances;       ///< of each term, between GPUs below different children
    std::int32_t leaves = 1;
    std::int32_t kind = 0;  ///< vertices of one kind can be exchanged without a change of any cost
  };
  std::vector<Vertex> vertices;

  [[nodiscard]] const Vertex& root() const { return vertices.back(); }
};

/// The tree of the problem's distances, or nothing if they are not those of a tree: distances are
/// symmetric, and d(a,c) <= max(d(a,b), d(b,c)), for all terms with one tree.
[[nodiscard]] std::optional<CostTree> cost_tree(const MappingProblem& problem);

}  // namespace heddle
