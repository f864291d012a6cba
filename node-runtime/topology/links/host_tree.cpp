#include "node-runtime/topology/links/host_tree.hpp"

#include <algorithm>
#include <deque>

namespace heddle {
namespace {

std::size_t at(VertexId vertex) {
  return static_cast<std::size_t>(vertex.value());
}

}  // namespace

std::vector<bool> fabric_links(const TopologyParts& parts) {
  // A switch is one of NVLink's if nothing but NVLinks lead to it.
  std::vector<bool> is_fabric(parts.vertices.size());
  for (std::size_t v = 0; v < parts.vertices.size(); ++v) {
    const VertexKind kind = parts.vertices[v].kind;
    is_fabric[v] = kind == VertexKind::gpu || kind == VertexKind::switch_chip;
  }
  for (const LinkPart& link : parts.links) {
    if (link.kind == LinkKind::nvlink) continue;
    for (const VertexId end : {link.a, link.b}) {
      if (parts.vertices[at(end)].kind == VertexKind::switch_chip) is_fabric[at(end)] = false;
    }
  }
  std::vector<bool> links;
  links.reserve(parts.links.size());
  for (const LinkPart& link : parts.links) {
    links.push_back(link.kind == LinkKind::nvlink && is_fabric[at(link.a)] &&
                    is_fabric[at(link.b)]);
  }
  return links;
}

HostTree host_tree(const TopologyParts& parts) {
  const std::size_t count = parts.vertices.size();
  const std::vector<bool> is_fabric = fabric_links(parts);
  HostTree tree;
  tree.parent.resize(count);
  tree.domain.resize(count);
  tree.height.assign(count, 0);

  std::deque<VertexId> next;
  std::vector<VertexId> order;
  for (std::size_t v = 0; v < count; ++v) {
    if (parts.vertices[v].kind != VertexKind::domain) continue;
    const VertexId domain{static_cast<std::int32_t>(v)};
    tree.domain[v] = domain;
    next.push_back(domain);
  }
  std::vector<bool> is_used(parts.links.size());
  while (!next.empty()) {
    const VertexId vertex = next.front();
    next.pop_front();
    order.push_back(vertex);
    for (std::size_t l = 0; l < parts.links.size(); ++l) {
      const LinkPart& link = parts.links[l];
      if (is_used[l] || is_fabric[l] || link.kind == LinkKind::socket) continue;
      if (link.a != vertex && link.b != vertex) continue;
      is_used[l] = true;
      const VertexId below = link.a == vertex ? link.b : link.a;
      if (tree.domain[at(below)]) {
        tree.closing.push_back(l);
        continue;
      }
      tree.parent[at(below)] = vertex;
      tree.domain[at(below)] = tree.domain[at(vertex)];
      next.push_back(below);
    }
  }
  std::ranges::sort(tree.closing);
  for (auto vertex = order.rbegin(); vertex != order.rend(); ++vertex) {
    if (const auto parent = tree.parent[at(*vertex)]) {
      tree.height[at(*parent)] = std::max(tree.height[at(*parent)], tree.height[at(*vertex)] + 1);
    }
  }
  return tree;
}

std::int32_t HostTree::domain_height(const TopologyParts& parts) const {
  std::int32_t highest = 0;
  for (std::size_t v = 0; v < parts.vertices.size(); ++v) {
    if (parts.vertices[v].kind == VertexKind::domain) highest = std::max(highest, height[v]);
  }
  return highest;
}

}  // namespace heddle
