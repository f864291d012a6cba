#include "node-runtime/topology/mapping/random_mappings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/require.hpp"
#include "node-runtime/topology/mapping/host_problem.hpp"

namespace heddle {

RandomMappings random_mappings(const Traffic& traffic, const GpuTopology& topology,
                               std::int32_t count, const MapOptions& options) {
  require(count >= 1, "random_mappings: a count of {}; at least 1 is needed", count);
  check_options(traffic, topology, options);
  const HostProblem host(traffic, topology, metric_for(options.metric, traffic), options);
  RandomMappings result{count, 0, 0, std::numeric_limits<double>::infinity()};
  std::mt19937_64 random(options.seed);
  double squares = 0;  // of differences from the mean so far (Welford)
  for (std::int32_t k = 1; k <= count; ++k) {
    const double cost = host.problem().cost(host.problem().random(random));
    const double before = cost - result.mean;
    result.mean += before / k;
    squares += before * (cost - result.mean);
    result.best = std::min(result.best, cost);
  }
  result.deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return result;
}

}  // namespace heddle
