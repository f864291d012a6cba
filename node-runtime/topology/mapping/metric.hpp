#pragma once

#include <cstdint>

#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// What a placement costs between two ends (004 sections 4 and 7). Costs are what is minimised, the
/// inverse of the paper's strengths. A level's rate and latency are the means over its pairs.
enum class Metric : std::uint8_t {
  automatic,  ///< time where the traffic has counts, otherwise bandwidth
  time,       ///< messages x latency + bytes / rate, in seconds
  bandwidth,  ///< bytes x (rate of the slowest level / rate of the pair)
  latency,    ///< bytes x (latency of the pair / latency of the slowest level)
  distance,   ///< bytes x (level of the pair + 1)
};
[[nodiscard]] const char* name_of(Metric metric);

/// What one byte and one message cost on a route; a flow costs bytes x byte + messages x message.
struct UnitCost {
  double byte = 0;
  double message = 0;
};

/// Costs of routes of one topology. Where all pairs are alike (GpuTopology::is_uniform) they cost
/// the same, so that the noise of measurements decides nothing.
class RouteCosts {
 public:
  /// `metric` is not automatic.
  RouteCosts(const GpuTopology& topology, Metric metric);

  /// 0 from a GPU to itself.
  [[nodiscard]] UnitCost between(GpuId from, GpuId to) const;
  [[nodiscard]] UnitCost of(const GpuRoute& route) const;

 private:
  const GpuTopology& topology_;
  Metric metric_;
  bool is_uniform_ = false;
  double slowest_rate_ = 0;        ///< mean of the level with the least; GB/s
  double slowest_latency_us_ = 0;  ///< mean of the level with the greatest
  GpuRoute mean_;                  ///< of all pairs
};

/// `metric`, or what `automatic` is for this traffic.
[[nodiscard]] Metric metric_for(Metric metric, const Traffic& traffic);

}  // namespace heddle
