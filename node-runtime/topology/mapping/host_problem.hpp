#pragma once

#include <vector>

#include "node-runtime/topology/links/gpu_topology.hpp"
#include "node-runtime/topology/mapping/link_problem.hpp"
#include "node-runtime/topology/mapping/mapping.hpp"
#include "node-runtime/topology/mapping/mapping_problem.hpp"
#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// Traffic, topology and metric as a problem, with what its numbers stand for. Keeps references.
class HostProblem {
 public:
  /// `metric` is not automatic; `options` are checked (check_options).
  HostProblem(const Traffic& traffic, const GpuTopology& topology, Metric metric,
              const MapOptions& options);

  [[nodiscard]] const MappingProblem& problem() const { return problem_; }
  [[nodiscard]] const LinkProblem& links() const { return links_; }

  /// What is known of a placement but the method and bounds: GPUs, domains, cost, largest load.
  [[nodiscard]] Mapping mapping_of(const Placement& placement) const;
  /// Whether the GPUs of real slots are those of an allowed placement.
  [[nodiscard]] bool is_balanced(const Placement& placement) const;
  /// The placement of these GPUs, which may have more slots than are allowed. Throws Error(usage)
  /// for a GPU that is not there, or twice for one node.
  [[nodiscard]] Placement placement_of(const std::vector<GpuId>& gpus) const;

 private:
  [[nodiscard]] DomainId domain_of(std::int32_t slot, GpuId gpu) const;
  void add_terms();
  void add_unary();
  void add_groups();
  void add_links();

  const Traffic& traffic_;
  const GpuTopology& topology_;
  const MapOptions& options_;
  RouteCosts costs_;
  Metric metric_;
  std::vector<GpuId> gpus_;  ///< of the problem's numbers
  MappingProblem problem_;
  LinkProblem links_;
};

/// Throws Error(usage) for options that do not fit the traffic or the topology.
void check_options(const Traffic& traffic, const GpuTopology& topology, const MapOptions& options);

}  // namespace heddle
