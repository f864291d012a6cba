#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/indexed_vector.hpp"
#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/metric.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// How the GPUs of slots are chosen.
enum class Selection : std::uint8_t {
  automatic,  ///< exact where it can be, otherwise scotch
  order,      ///< slot i on GPU i mod GPUs
  exact,      ///< the optimum: up to 20 slots where costs are those of a tree, otherwise (and for
              ///< Objective::bottleneck) up to 10
  scotch,     ///< SCOTCH, then exchanges from it, the plain order and some random starts
  given,      ///< MapOptions::given
};
[[nodiscard]] const char* name_of(Selection selection);

/// What a selection makes least.
enum class Objective : std::uint8_t {
  total,       ///< the cost by the metric
  bottleneck,  ///< the largest load of a link, and of equal ones the cost
};
[[nodiscard]] const char* name_of(Objective objective);

/// What found a mapping.
enum class MappingMethod : std::uint8_t {
  order,
  enumeration,   ///< branch and bound: an optimum
  tree_subsets,  ///< dynamic programming over subsets of slots: an optimum
  scotch,        ///< SCOTCH and exchanges
  exchanges,     ///< exchanges without SCOTCH, which failed (Mapping::remark)
  given,
};
[[nodiscard]] const char* name_of(MappingMethod method);

struct MapOptions {
  Selection selection = Selection::automatic;
  Metric metric = Metric::automatic;
  Objective objective = Objective::total;
  std::uint64_t seed = 1;
  /// The plain order is kept if its objective is at most this share above what was found.
  double order_within = 0;
  /// GPUs with memory or processes of others, the busiest first: with fewer slots than GPUs these
  /// stay free as far as there are enough others.
  std::vector<GpuId> busy{};
  /// For each slot the NUMA domain of its node's host memory; empty: that of its GPU.
  std::vector<DomainId> domains{};
  /// For each slot its GPU, for Selection::given.
  std::vector<GpuId> given{};
};

/// The GPU of each slot, and how good that is.
struct Mapping {
  IndexedVector<SlotId, GpuId> gpu_of;
  IndexedVector<SlotId, DomainId> domain_of;  ///< of the slot's host memory
  Metric metric = Metric::bandwidth;
  Objective objective = Objective::total;
  MappingMethod method = MappingMethod::order;
  double cost = 0;           ///< in units of the metric
  double cost_in_order = 0;  ///< of slot i on GPU i mod GPUs
  double lower_bound = 0;    ///< no mapping has a lower value(); the optimum if `is_optimal`
  bool is_optimal = false;   ///< proven
  double largest_load = 0;   ///< of a link (Congestion::largest); both are known for each objective
  double largest_load_in_order = 0;
  std::string remark;  ///< what a reader of the plan should know; empty if nothing

  /// What the objective makes least: `cost` or `largest_load`.
  [[nodiscard]] double value() const;
  [[nodiscard]] double value_in_order() const;
  /// Share of the value above the lower bound.
  [[nodiscard]] double gap() const;
};

/// Maps slots onto the GPUs of a host so that the objective is least.
///
/// A GPU takes several slots where there are more slots than GPUs: each takes as many or one more,
/// and never two of one node while the node has at most as many slots as there are GPUs. Between
/// slots of one GPU nothing costs anything. With fewer slots some GPUs stay free.
///
/// Host memory costs as the route from the slot's domain, other hosts as the route to the nearest
/// card. Of mappings that cost the same the one with the lower largest link is preferred, then the
/// one nearer to the plain order: exchanges look for them, so that the first of these is not proven
/// best.
///
/// The same input gives the same result on every machine with the same SCOTCH. Throws Error(usage)
/// for traffic without slots, options that name what is not there, and Selection::exact beyond its
/// limits. Thread: any.
[[nodiscard]] Mapping map_traffic(const Traffic& traffic, const GpuTopology& topology,
                                  const MapOptions& options = {});

/// Throws Error(usage) unless the mapping has a GPU and a domain of the topology for each slot.
void require_mapping(const Mapping& mapping, const Traffic& traffic, const GpuTopology& topology);

}  // namespace heddle
