#include "tests/support/random_case.hpp"

#include <random>

namespace heddle::simulation {

RandomCase::RandomCase(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  const std::int32_t rows = 1 + below(5);
  const std::int32_t columns = 1 + below(3);
  cluster.nodes = rows * columns;
  cluster.places = 1 + below(4);
  constexpr std::int32_t windows[] = {1, 2, 3, 7, 1000};
  cluster.window = windows[below(5)];
  constexpr std::int32_t extras[] = {0, 0, 1, 3, 50};
  cluster.extra_blocks = extras[below(5)];
  constexpr Walk walks[] = {Walk::full, Walk::pruned, Walk::announced};
  cluster.walk = walks[below(3)];
  cluster.seed = random();
  cluster.fine_workers = fine_workers_of(seed);
  cluster.placement = placement_of(seed);
  cluster.extra_frames = extra_frames_of(seed);
  const std::int32_t matrix_count = 1 + below(3);
  for (std::int32_t m = 0; m < matrix_count; ++m) {
    SimulatedMatrix matrix;
    matrix.temporary = m > 0 && below(3) == 0;
    matrix.spare_count = below(3);
    const std::int32_t tiles = 2 + below(14);
    for (std::int32_t t = 0; t < tiles; ++t) {
      matrix.homes.push_back({NodeId{below(cluster.nodes)}, PlaceId{below(cluster.places)}});
      matrix.classes.push_back(below(3));
    }
    matrices.push_back(std::move(matrix));
  }
  const std::int32_t count = 1 + below(3);
  const bool share = below(3) == 0;
  for (std::int32_t p = 0; p < count; ++p) {
    RandomProgramOptions options;
    options.tasks = 5 + below(60);
    options.accesses_max = below(4) == 0 ? static_cast<std::int32_t>(protocol::accesses_max) : 4;
    options.minor_output = below(3) * 0.3;
    // Sometimes the programs write to a matrix each and share the others, which all may read at
    // once.
    if (share && matrix_count > p + 1) options.writes.insert(protocol::MatrixId{p + 1});
    programs.push_back(random_program(options, matrices, random));
  }
}

Outcome RandomCase::run() const {
  SimulatedCluster simulation(cluster, matrices);
  for (const Program& program : programs) simulation.submit(program);
  return simulation.run();
}

}  // namespace heddle::simulation
