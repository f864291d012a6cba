#include "node-runtime/topology/links/gpu_topology.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/require.hpp"
#include "node-runtime/topology/links/host_tree.hpp"
#include "node-runtime/topology/links/paths.hpp"

namespace heddle {
namespace {

bool are_alike(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(a, b);
}

void expect(std::int32_t index, std::int32_t count, const char* what) {
  require(index >= 0 && index < count, "topology: there is no {} {}; they are 0 to {}", what, index,
          count - 1);
}

std::size_t row_major(std::int32_t row, std::int32_t columns, std::int32_t column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

}  // namespace

GpuTopology::GpuTopology(TopologyParts parts) : parts_(std::move(parts)) {
  std::string complaints;
  for (const TopologyFault& fault : faults_of(parts_)) {
    complaints +=
        fmt::format("{}topology '{}': {}", complaints.empty() ? "" : "\n", parts_.name, fault.text);
  }
  if (!complaints.empty()) throw Error(ErrorCode::usage, complaints);
  for (std::size_t v = 0; v < parts_.vertices.size(); ++v) {
    const VertexId id{static_cast<std::int32_t>(v)};
    switch (parts_.vertices[v].kind) {
      case VertexKind::gpu:
        ++gpus_;
        break;
      case VertexKind::domain:
        domains_.push_back(id);
        break;
      case VertexKind::card:
        cards_.push_back(id);
        break;
      case VertexKind::switch_chip:
      case VertexKind::bridge:
        break;
    }
  }
  add_links();
  add_routes();
  HEDDLE_CHECK(is_valid(), "topology '{}'", parts_.name);
}

void GpuTopology::add_links() {
  const HostTree tree = host_tree(parts_);
  const std::vector<bool> is_fabric = fabric_links(parts_);
  const std::int32_t lowest = std::ranges::find(is_fabric, true) != is_fabric.end() ? 1 : 0;
  for (std::size_t l = 0; l < parts_.links.size(); ++l) {
    const LinkPart& part = parts_.links[l];
    std::int32_t level = 0;
    if (part.kind == LinkKind::socket) {
      level = lowest + tree.domain_height(parts_);
    } else if (!is_fabric[l]) {
      const auto a = static_cast<std::size_t>(part.a.value());
      const auto b = static_cast<std::size_t>(part.b.value());
      level = lowest + std::min(tree.height[a], tree.height[b]);
    }
    const TopologyLink link{
        part.a, part.b, part.kind, is_fabric[l], level, part.rate * part.count, part.latency_us};
    links_.push_back(link);
    links_.push_back(link);
    std::swap(links_.back().from, links_.back().to);
  }
  for (std::int32_t g = 0; g < gpus_; ++g) {
    const VertexId domain = *tree.domain[static_cast<std::size_t>(g)];
    const auto found = std::ranges::find(domains_, domain);
    domain_of_gpu_.emplace_back(static_cast<std::int32_t>(found - domains_.begin()));
  }
}

void GpuTopology::add_routes() {
  for (std::int32_t from = 0; from < gpus_; ++from) {
    for (std::int32_t to = 0; to < gpus_; ++to) {
      between_gpus_.push_back(peer_route(GpuId{from}, GpuId{to}));
    }
    const VertexId gpu{from};
    const auto add_ways = [&](const std::vector<VertexId>& others, std::vector<GpuRoute>& to,
                              std::vector<GpuRoute>& back) {
      for (const VertexId other : others) {
        to.push_back(route_over(host_path(gpu, other)));
        back.push_back(route_over(host_path(other, gpu)));
      }
    };
    add_ways(domains_, to_domains_, from_domains_);
    add_ways(cards_, to_cards_, from_cards_);
  }
  for (const MeasuredPair& pair : parts_.pairs) {
    GpuRoute& route = between_gpus_[row_major(pair.from.value(), gpus_, pair.to.value())];
    route.rate = pair.rate;
    route.latency_us = pair.latency_us;
  }
  for (const GpuRoute& route : between_gpus_) levels_ = std::max(levels_, route.level + 1);
  for (const TopologyLink& link : links_) levels_ = std::max(levels_, link.level + 1);
}

GpuRoute GpuTopology::route_over(std::vector<TopologyLinkId> links) const {
  GpuRoute route{std::move(links), std::numeric_limits<double>::infinity(), 0, 0};
  for (const TopologyLinkId id : route.links) {
    route.rate = std::min(route.rate, link(id).rate);
    route.latency_us += link(id).latency_us;
    route.level = std::max(route.level, link(id).level);
  }
  return route;
}

std::vector<TopologyLinkId> GpuTopology::host_path(VertexId from, VertexId to) const {
  auto found = path(
      links_, parts_.vertices.size(), from, to,
      [](const TopologyLink& link) { return !link.is_fabric; },
      [&](VertexId inner) {
        const VertexKind kind = vertex(inner).kind;
        return kind != VertexKind::gpu && kind != VertexKind::card;
      });
  HEDDLE_CHECK(found.has_value(), "no way from '{}' to '{}'", vertex(from).name, vertex(to).name);
  return std::move(*found);
}

GpuRoute GpuTopology::peer_route(GpuId from, GpuId to) const {
  const VertexId start = vertex_of(from);
  const VertexId end = vertex_of(to);
  if (from == to) return route_over({});
  auto direct = path(
      links_, parts_.vertices.size(), start, end,
      [](const TopologyLink& link) { return link.is_fabric; },
      [&](VertexId inner) { return vertex(inner).kind == VertexKind::switch_chip; });
  if (direct) return route_over(std::move(*direct));
  if (parts_.peers_without_nvlink == PeerWay::pcie) return route_over(host_path(start, end));
  std::vector<TopologyLinkId> links = host_path(start, vertex_of(domain_of(from)));
  const auto append = [&](VertexId a, VertexId b) {
    const std::vector<TopologyLinkId> more = host_path(a, b);
    links.insert(links.end(), more.begin(), more.end());
  };
  append(vertex_of(domain_of(from)), vertex_of(domain_of(to)));
  append(vertex_of(domain_of(to)), end);
  return route_over(std::move(links));
}

const TopologyVertex& GpuTopology::vertex(VertexId id) const {
  expect(id.value(), static_cast<std::int32_t>(parts_.vertices.size()), "vertex");
  return parts_.vertices[static_cast<std::size_t>(id.value())];
}

VertexId GpuTopology::vertex_of(GpuId gpu) const {
  expect(gpu.value(), gpus_, "GPU");
  return VertexId{gpu.value()};
}

VertexId GpuTopology::vertex_of(DomainId domain) const {
  expect(domain.value(), domains(), "NUMA domain");
  return domains_[static_cast<std::size_t>(domain.value())];
}

VertexId GpuTopology::vertex_of(CardId card) const {
  expect(card.value(), cards(), "network card");
  return cards_[static_cast<std::size_t>(card.value())];
}

const TopologyLink& GpuTopology::link(TopologyLinkId id) const {
  expect(id.value(), static_cast<std::int32_t>(links_.size()), "link");
  return links_[static_cast<std::size_t>(id.value())];
}

std::string GpuTopology::name_of(TopologyLinkId id) const {
  return fmt::format("{} -> {}", vertex(link(id).from).name, vertex(link(id).to).name);
}

const GpuRoute& GpuTopology::route(GpuId from, GpuId to) const {
  expect(from.value(), gpus_, "GPU");
  expect(to.value(), gpus_, "GPU");
  return between_gpus_[row_major(from.value(), gpus_, to.value())];
}

const GpuRoute& GpuTopology::route(GpuId from, DomainId to) const {
  expect(from.value(), gpus_, "GPU");
  expect(to.value(), domains(), "NUMA domain");
  return to_domains_[row_major(from.value(), domains(), to.value())];
}

const GpuRoute& GpuTopology::route(DomainId from, GpuId to) const {
  expect(from.value(), domains(), "NUMA domain");
  expect(to.value(), gpus_, "GPU");
  return from_domains_[row_major(to.value(), domains(), from.value())];
}

const GpuRoute& GpuTopology::route(GpuId from, CardId to) const {
  expect(from.value(), gpus_, "GPU");
  expect(to.value(), cards(), "network card");
  return to_cards_[row_major(from.value(), cards(), to.value())];
}

const GpuRoute& GpuTopology::route(CardId from, GpuId to) const {
  expect(from.value(), cards(), "network card");
  expect(to.value(), gpus_, "GPU");
  return from_cards_[row_major(to.value(), cards(), from.value())];
}

DomainId GpuTopology::domain_of(GpuId gpu) const {
  expect(gpu.value(), gpus_, "GPU");
  return domain_of_gpu_[static_cast<std::size_t>(gpu.value())];
}

std::optional<CardId> GpuTopology::nearest_card(GpuId gpu) const {
  std::optional<CardId> nearest;
  for (std::int32_t c = 0; c < cards(); ++c) {
    const GpuRoute& one = route(gpu, CardId{c});
    if (nearest) {
      const GpuRoute& best = route(gpu, *nearest);
      const bool is_nearer =
          one.level < best.level || (one.level == best.level && one.rate > best.rate);
      if (!is_nearer) continue;
    }
    nearest = CardId{c};
  }
  return nearest;
}

bool GpuTopology::is_uniform(double tolerance) const {
  double rate_min = std::numeric_limits<double>::infinity();
  double rate_max = 0;
  double latency_min = std::numeric_limits<double>::infinity();
  double latency_max = 0;
  for (std::int32_t from = 0; from < gpus_; ++from) {
    for (std::int32_t to = 0; to < gpus_; ++to) {
      if (from == to) continue;
      const GpuRoute& one = route(GpuId{from}, GpuId{to});
      rate_min = std::min(rate_min, one.rate);
      rate_max = std::max(rate_max, one.rate);
      latency_min = std::min(latency_min, one.latency_us);
      latency_max = std::max(latency_max, one.latency_us);
    }
  }
  if (gpus_ < 2) return true;
  return rate_max - rate_min <= tolerance * rate_max &&
         latency_max - latency_min <= tolerance * latency_max;
}

bool GpuTopology::is_route(const GpuRoute& route, VertexId from, VertexId to) const {
  VertexId here = from;
  std::set<TopologyLinkId> used;
  for (const TopologyLinkId id : route.links) {
    if (link(id).from != here || !used.insert(id).second) return false;
    here = link(id).to;
  }
  return here == to && route.level == route_over(route.links).level &&
         (route.rate > 0 || from == to);
}

bool GpuTopology::is_valid() const {
  if (!faults_of(parts_).empty() || links_.size() != 2 * parts_.links.size()) return false;
  for (std::int32_t g = 0; g < gpus_; ++g) {
    const GpuId gpu{g};
    for (std::int32_t to = 0; to < gpus_; ++to) {
      const GpuRoute& one = route(gpu, GpuId{to});
      if (!is_route(one, vertex_of(gpu), vertex_of(GpuId{to}))) return false;
      const bool is_measured = std::ranges::any_of(parts_.pairs, [&](const MeasuredPair& pair) {
        return pair.from == gpu && pair.to.value() == to;
      });
      const GpuRoute plain = route_over(one.links);
      if (!is_measured && g != to &&
          (!are_alike(plain.rate, one.rate) || !are_alike(plain.latency_us, one.latency_us))) {
        return false;
      }
    }
    for (std::int32_t m = 0; m < domains(); ++m) {
      const DomainId domain{m};
      if (!is_route(route(gpu, domain), vertex_of(gpu), vertex_of(domain)) ||
          !is_route(route(domain, gpu), vertex_of(domain), vertex_of(gpu))) {
        return false;
      }
    }
    for (std::int32_t c = 0; c < cards(); ++c) {
      const CardId card{c};
      if (!is_route(route(gpu, card), vertex_of(gpu), vertex_of(card)) ||
          !is_route(route(card, gpu), vertex_of(card), vertex_of(gpu))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace heddle
