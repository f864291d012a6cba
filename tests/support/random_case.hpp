#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/simulated_cluster.hpp"

namespace heddle::simulation {

/// A random cluster, random matrices on it, and one to three random programs over them.
struct RandomCase {
  ClusterOptions cluster;
  std::vector<SimulatedMatrix> matrices;
  std::vector<Program> programs;

  /// Everything about the case follows from the seed: grids of 1x1 to 5x3 nodes, 1 to 4 places,
  /// windows from 1, pools from the planned minimum, all ways to walk.
  explicit RandomCase(std::uint64_t seed);

  /// Runs the programs on a cluster of its own.
  [[nodiscard]] Outcome run() const;
};

}  // namespace heddle::simulation
