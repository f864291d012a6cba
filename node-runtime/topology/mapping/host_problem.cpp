#include "node-runtime/topology/mapping/host_problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/topology/mapping/routes.hpp"

namespace heddle {
namespace {

std::vector<GpuId> gpus_to_use(const Traffic& traffic, const GpuTopology& topology,
                               const MapOptions& options) {
  const std::int32_t free = std::max(0, topology.gpus() - traffic.slots());
  const std::size_t left_out = std::min(options.busy.size(), static_cast<std::size_t>(free));
  const auto end = options.busy.begin() + static_cast<std::ptrdiff_t>(left_out);
  // Where GPUs are given, any of them may be.
  const bool takes_all = options.selection == Selection::given;
  std::vector<GpuId> gpus;
  for (std::int32_t g = 0; g < topology.gpus(); ++g) {
    if (takes_all || std::find(options.busy.begin(), end, GpuId{g}) == end) gpus.emplace_back(g);
  }
  return gpus;
}

std::vector<std::size_t> numbers_of(const std::vector<TopologyLinkId>& links) {
  std::vector<std::size_t> numbers;
  for (const TopologyLinkId id : links) numbers.push_back(static_cast<std::size_t>(id.value()));
  return numbers;
}

}  // namespace

void check_options(const Traffic& traffic, const GpuTopology& topology, const MapOptions& options) {
  require(traffic.is_valid(),
          "map_traffic: the traffic '{}' has a value that is negative or not finite; correct it",
          traffic.name());
  std::set<GpuId> busy;
  for (const GpuId gpu : options.busy) {
    require(gpu.value() >= 0 && gpu.value() < topology.gpus(),
            "map_traffic: 'busy' names GPU {}, and '{}' has GPUs 0 to {}", gpu.value(),
            topology.name(), topology.gpus() - 1);
    require(busy.insert(gpu).second, "map_traffic: 'busy' names GPU {} twice; name it once",
            gpu.value());
  }
  const auto slots = static_cast<std::size_t>(traffic.slots());
  require(options.domains.empty() || options.domains.size() == slots,
          "map_traffic: 'domains' has {} NUMA domains for {} slots; give one for each, or none",
          options.domains.size(), slots);
  for (const DomainId domain : options.domains) {
    require(domain.value() >= 0 && domain.value() < topology.domains(),
            "map_traffic: 'domains' names NUMA domain {}, and '{}' has domains 0 to {}",
            domain.value(), topology.name(), topology.domains() - 1);
  }
  const bool is_given = options.selection == Selection::given;
  require(!is_given || options.given.size() == slots,
          "map_traffic: 'given' has {} GPUs for {} slots; give one for each", options.given.size(),
          slots);
  require(is_given || options.given.empty(),
          "map_traffic: 'given' has {} GPUs, and the selection is {}; leave it empty, or select "
          "'given'",
          options.given.size(), name_of(options.selection));
  require(std::isfinite(options.order_within) && options.order_within >= 0,
          "map_traffic: 'order_within' is {}; it must be 0 or more", options.order_within);
}

HostProblem::HostProblem(const Traffic& traffic, const GpuTopology& topology, Metric metric,
                         const MapOptions& options)
    : traffic_(traffic),
      topology_(topology),
      options_(options),
      costs_(topology, metric),
      metric_(metric),
      gpus_(gpus_to_use(traffic, topology, options)) {
  problem_.used = traffic.slots();
  problem_.gpus = static_cast<std::int32_t>(gpus_.size());
  problem_.per_gpu = (problem_.used + problem_.gpus - 1) / problem_.gpus;
  problem_.slots = problem_.gpus * problem_.per_gpu;
  add_terms();
  add_unary();
  add_groups();
  add_links();
  HEDDLE_CHECK(problem_.is_valid(), "traffic '{}' on '{}'", traffic.name(), topology.name());
}

void HostProblem::add_terms() {
  MappingProblem::Term bytes;
  MappingProblem::Term messages;
  for (MappingProblem::Term* term : {&bytes, &messages}) {
    term->flow.resize(static_cast<std::size_t>(problem_.slots) *
                      static_cast<std::size_t>(problem_.slots));
    term->distance.resize(gpus_.size() * gpus_.size());
  }
  for (std::int32_t a = 0; a < problem_.gpus; ++a) {
    for (std::int32_t b = 0; b < problem_.gpus; ++b) {
      const UnitCost cost =
          costs_.between(gpus_[static_cast<std::size_t>(a)], gpus_[static_cast<std::size_t>(b)]);
      bytes.distance[problem_.of_gpus(a, b)] = cost.byte;
      messages.distance[problem_.of_gpus(a, b)] = cost.message;
    }
  }
  for (std::int32_t i = 0; i < problem_.used; ++i) {
    for (std::int32_t j = 0; j < problem_.used; ++j) {
      const Flow& flow = traffic_.flow(SlotId{i}, SlotId{j});
      bytes.flow[problem_.of_slots(i, j)] = flow.bytes;
      messages.flow[problem_.of_slots(i, j)] = flow.messages;
    }
  }
  problem_.terms.push_back(std::move(bytes));
  if (metric_ == Metric::time) problem_.terms.push_back(std::move(messages));
}

DomainId HostProblem::domain_of(std::int32_t slot, GpuId gpu) const {
  return options_.domains.empty() ? topology_.domain_of(gpu)
                                  : options_.domains[static_cast<std::size_t>(slot)];
}

void HostProblem::add_unary() {
  problem_.unary.resize(static_cast<std::size_t>(problem_.slots) * gpus_.size());
  links_.outer.resize(static_cast<std::size_t>(problem_.used) * gpus_.size());
  for (std::int32_t i = 0; i < problem_.used; ++i) {
    for (std::int32_t a = 0; a < problem_.gpus; ++a) {
      const GpuId gpu = gpus_[static_cast<std::size_t>(a)];
      for_outer_routes(
          traffic_.slot(SlotId{i}), topology_, gpu, domain_of(i, gpu),
          [&](const GpuRoute& route, const Flow& flow) {
            const UnitCost unit = costs_.of(route);
            problem_.unary[problem_.of_gpus(i, a)] +=
                flow.bytes * unit.byte + flow.messages * unit.message;
            links_.outer[problem_.of_gpus(i, a)].push_back({numbers_of(route.links), flow.bytes});
          });
    }
  }
}

void HostProblem::add_links() {
  links_.slots = problem_.used;
  links_.gpus = problem_.gpus;
  for (const TopologyLink& link : topology_.links()) links_.rates.push_back(link.rate);
  for (const GpuId from : gpus_) {
    for (const GpuId to : gpus_) {
      links_.routes.push_back(numbers_of(topology_.route(from, to).links));
    }
  }
  for (std::int32_t i = 0; i < problem_.used; ++i) {
    for (std::int32_t j = 0; j < problem_.used; ++j) {
      links_.bytes.push_back(traffic_.flow(SlotId{i}, SlotId{j}).bytes);
    }
  }
}

void HostProblem::add_groups() {
  problem_.group.assign(static_cast<std::size_t>(problem_.slots), MappingProblem::no_group);
  std::map<std::int32_t, std::vector<std::int32_t>> of_node;
  for (std::int32_t i = 0; i < problem_.used; ++i) {
    of_node[traffic_.slot(SlotId{i}).node].push_back(i);
  }
  std::int32_t next = 0;
  for (const auto& [node, slots] : of_node) {
    const auto count = static_cast<std::int32_t>(slots.size());
    if (count < 2 || count > problem_.gpus) continue;
    for (const std::int32_t slot : slots) problem_.group[static_cast<std::size_t>(slot)] = next;
    ++next;
  }
  if (problem_.per_gpu == 1) return;  // no two slots share a GPU
  for (std::int32_t i = problem_.used; i < problem_.slots; ++i) {
    problem_.group[static_cast<std::size_t>(i)] = next;
  }
}

Mapping HostProblem::mapping_of(const Placement& placement) const {
  Mapping mapping;
  for (std::int32_t i = 0; i < problem_.used; ++i) {
    const GpuId gpu = gpus_[static_cast<std::size_t>(placement[static_cast<std::size_t>(i)])];
    mapping.gpu_of.push_back(gpu);
    mapping.domain_of.push_back(domain_of(i, gpu));
  }
  mapping.metric = metric_;
  mapping.cost = problem_.cost(placement);
  mapping.objective = options_.objective;
  mapping.largest_load = links_.largest_load(placement);
  return mapping;
}

bool HostProblem::is_balanced(const Placement& placement) const {
  const Placement allowed = problem_.nearest_allowed(placement);
  return std::equal(allowed.begin(), allowed.begin() + problem_.used, placement.begin());
}

Placement HostProblem::placement_of(const std::vector<GpuId>& gpus) const {
  std::vector<std::int32_t> taken(gpus_.size());
  Placement placement;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const GpuId gpu = gpus[i];
    require(gpu.value() >= 0 && gpu.value() < topology_.gpus(),
            "map_traffic: 'given' names GPU {} for slot {}, and '{}' has GPUs 0 to {}", gpu.value(),
            i, topology_.name(), topology_.gpus() - 1);
    const auto slot = static_cast<std::int32_t>(i);
    placement.push_back(gpu.value());
    for (std::int32_t j = 0; j < slot; ++j) {
      const std::int32_t node = traffic_.slot(SlotId{slot}).node;
      require(
          placement[static_cast<std::size_t>(j)] != gpu.value() ||
              traffic_.slot(SlotId{j}).node != node ||
              problem_.group[i] == MappingProblem::no_group,
          "map_traffic: 'given' names GPU {} twice for node {}; give its devices different GPUs",
          gpu.value(), node);
    }
  }
  placement.resize(static_cast<std::size_t>(problem_.slots), 0);
  return placement;
}

}  // namespace heddle
