#include "node-runtime/topology/mapping/mapping.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/topology/mapping/host_problem.hpp"
#include "node-runtime/topology/mapping/placement_search.hpp"
#include "node-runtime/topology/mapping/ties.hpp"

namespace heddle {

const char* name_of(Selection selection) {
  switch (selection) {
    case Selection::automatic:
      return "auto";
    case Selection::order:
      return "order";
    case Selection::exact:
      return "exact";
    case Selection::scotch:
      return "scotch";
    case Selection::given:
      return "given";
  }
  return "?";
}

const char* name_of(Objective objective) {
  return objective == Objective::total ? "total" : "bottleneck";
}

const char* name_of(MappingMethod method) {
  switch (method) {
    case MappingMethod::order:
      return "order";
    case MappingMethod::enumeration:
      return "exact by enumeration";
    case MappingMethod::tree_subsets:
      return "exact by subsets";
    case MappingMethod::scotch:
      return "scotch";
    case MappingMethod::exchanges:
      return "exchanges";
    case MappingMethod::given:
      return "given";
  }
  return "?";
}

double Mapping::value() const {
  return objective == Objective::total ? cost : largest_load;
}

double Mapping::value_in_order() const {
  return objective == Objective::total ? cost_in_order : largest_load_in_order;
}

double Mapping::gap() const {
  if (lower_bound <= 0) return value() > 0 ? 1 : 0;
  return std::max(0.0, value() / lower_bound - 1);
}

void require_mapping(const Mapping& mapping, const Traffic& traffic, const GpuTopology& topology) {
  const auto slots = static_cast<std::size_t>(traffic.slots());
  require(mapping.gpu_of.size() == slots && mapping.domain_of.size() == slots,
          "the mapping has {} GPUs and {} NUMA domains for traffic of {} slots; map this traffic",
          mapping.gpu_of.size(), mapping.domain_of.size(), slots);
  for (const GpuId gpu : mapping.gpu_of) {
    require(gpu.value() >= 0 && gpu.value() < topology.gpus(),
            "the mapping has GPU {}, and '{}' has GPUs 0 to {}; map onto this topology",
            gpu.value(), topology.name(), topology.gpus() - 1);
  }
  for (const DomainId domain : mapping.domain_of) {
    require(domain.value() >= 0 && domain.value() < topology.domains(),
            "the mapping has NUMA domain {}, and '{}' has domains 0 to {}; map onto this topology",
            domain.value(), topology.name(), topology.domains() - 1);
  }
}

Mapping map_traffic(const Traffic& traffic, const GpuTopology& topology,
                    const MapOptions& options) {
  check_options(traffic, topology, options);
  const HostProblem host(traffic, topology, metric_for(options.metric, traffic), options);
  const MappingProblem& problem = host.problem();
  const Placement order = problem.in_order();
  const Mapping in_order = host.mapping_of(order);

  FoundPlacement found;
  if (options.selection == Selection::given) {
    found.placement = host.placement_of(options.given);
    found.method = MappingMethod::given;
  } else if (traffic.is_empty()) {
    found.placement = order;
    found.remark = "the traffic is empty, so GPUs are taken in order";
  } else {
    found = find_placement(problem, host.links(), options, order);
  }
  if (!found.optimum) {
    found.lower_bound = lower_bound(problem, host.links(), options.objective);
  }
  if (found.method != MappingMethod::given && found.method != MappingMethod::order) {
    const double value = host.mapping_of(found.placement).value();
    if (options.order_within > 0 && in_order.value() <= value * (1 + options.order_within)) {
      found.placement = order;
    } else {
      found.placement =
          preferred_of_equals(problem, found.placement, order,
                              [&](const Placement& one) { return host.links().largest_load(one); });
    }
  }

  Mapping mapping = host.mapping_of(found.placement);
  const double bound = found.optimum.value_or(found.lower_bound);
  mapping.method = found.method;
  mapping.remark = std::move(found.remark);
  mapping.cost_in_order = in_order.cost;
  mapping.largest_load_in_order = in_order.largest_load;
  mapping.lower_bound = std::min(bound, mapping.value());
  // A given one may put more on a GPU than others are allowed to.
  const bool is_comparable =
      found.method != MappingMethod::given || host.is_balanced(found.placement);
  mapping.is_optimal = is_comparable && mapping.value() <= bound * (1 + 1e-9);
  return mapping;
}

}  // namespace heddle
