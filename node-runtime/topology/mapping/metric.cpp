#include "node-runtime/topology/mapping/metric.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/assert.hpp"

namespace heddle {
namespace {

struct LevelSums {
  double rate = 0;
  double latency_us = 0;
  double pairs = 0;
};

}  // namespace

const char* name_of(Metric metric) {
  switch (metric) {
    case Metric::automatic:
      return "auto";
    case Metric::time:
      return "time";
    case Metric::bandwidth:
      return "bandwidth";
    case Metric::latency:
      return "latency";
    case Metric::distance:
      return "distance";
  }
  return "?";
}

Metric metric_for(Metric metric, const Traffic& traffic) {
  if (metric != Metric::automatic) return metric;
  return traffic.has_counts() ? Metric::time : Metric::bandwidth;
}

RouteCosts::RouteCosts(const GpuTopology& topology, Metric metric)
    : topology_(topology), metric_(metric), is_uniform_(topology.is_uniform()) {
  HEDDLE_CHECK(metric != Metric::automatic, "a metric is chosen first");
  std::vector<LevelSums> levels(static_cast<std::size_t>(topology.levels()));
  LevelSums all;
  for (std::int32_t from = 0; from < topology.gpus(); ++from) {
    for (std::int32_t to = 0; to < topology.gpus(); ++to) {
      if (from == to) continue;
      const GpuRoute& route = topology.route(GpuId{from}, GpuId{to});
      for (LevelSums* sums : {&levels[static_cast<std::size_t>(route.level)], &all}) {
        sums->rate += route.rate;
        sums->latency_us += route.latency_us;
        sums->pairs += 1;
      }
      mean_.level = std::max(mean_.level, route.level);
    }
  }
  if (all.pairs == 0) {
    // One GPU: what it exchanges with host memory is compared with itself.
    const GpuRoute& home = topology.route(GpuId{0}, topology.domain_of(GpuId{0}));
    slowest_rate_ = home.rate;
    slowest_latency_us_ = home.latency_us;
    return;
  }
  slowest_rate_ = std::numeric_limits<double>::infinity();
  for (const LevelSums& level : levels) {
    if (level.pairs == 0) continue;
    slowest_rate_ = std::min(slowest_rate_, level.rate / level.pairs);
    slowest_latency_us_ = std::max(slowest_latency_us_, level.latency_us / level.pairs);
  }
  mean_.rate = all.rate / all.pairs;
  mean_.latency_us = all.latency_us / all.pairs;
}

UnitCost RouteCosts::between(GpuId from, GpuId to) const {
  if (from == to) return {};
  return of(is_uniform_ ? mean_ : topology_.route(from, to));
}

UnitCost RouteCosts::of(const GpuRoute& route) const {
  switch (metric_) {
    case Metric::time:
      return {1e-9 / route.rate, 1e-6 * route.latency_us};
    case Metric::bandwidth:
      return {slowest_rate_ / route.rate, 0};
    case Metric::latency:
      // Without latencies all ways are alike.
      return {slowest_latency_us_ > 0 ? route.latency_us / slowest_latency_us_ : 1, 0};
    case Metric::distance:
      return {static_cast<double>(route.level + 1), 0};
    case Metric::automatic:
      break;
  }
  return {};
}

}  // namespace heddle
