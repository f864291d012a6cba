#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/index.hpp"

namespace heddle {

/// A GPU of one host, from 0. The same number is its vertex.
using GpuId = Index<struct GpuTag, std::int32_t>;
/// A NUMA domain of one host, from 0: cores and the memory next to them.
using DomainId = Index<struct DomainTag, std::int32_t>;
/// A network card of one host, from 0.
using CardId = Index<struct CardTag, std::int32_t>;
/// Anything that links join: an element of TopologyParts::vertices.
using VertexId = Index<struct VertexTag, std::int32_t>;

enum class VertexKind : std::uint8_t {
  gpu,
  domain,
  switch_chip,  ///< of PCI Express, or of NVLink if all its links are NVLinks
  bridge,       ///< a switch on a board with several GPUs
  card,
};
[[nodiscard]] const char* name_of(VertexKind kind);

enum class LinkKind : std::uint8_t { nvlink, pcie, socket };
[[nodiscard]] const char* name_of(LinkKind kind);

/// The way between two GPUs that no NVLink joins.
enum class PeerWay : std::uint8_t {
  host,  ///< through host memory: the GPUs have no access to each other
  pcie,  ///< through their nearest common switch, bridge or socket
};

struct TopologyVertex {
  VertexKind kind = VertexKind::gpu;
  std::string name;  ///< "g0", unique
  std::string pci;   ///< "0000:1b:00.0"; empty if unknown
  std::string uuid;  ///< of a GPU; empty if unknown
};

/// Links between two vertices; each carries its rate in both directions at once.
struct LinkPart {
  VertexId a;
  VertexId b;
  LinkKind kind = LinkKind::pcie;
  std::int32_t count = 1;  ///< parallel links that share their data
  double rate = 0;         ///< GB/s of one of them in each direction
  double latency_us = 0;
};

/// A link in one direction: an element of GpuTopology::links().
using TopologyLinkId = Index<struct TopologyLinkTag, std::int32_t>;

struct TopologyLink {
  VertexId from;
  VertexId to;
  LinkKind kind = LinkKind::pcie;
  bool is_fabric = false;  ///< joins GPUs, directly or over NVLink switches
  std::int32_t level = 0;  ///< the lowest level of pairs whose routes use it
  double rate = 0;         ///< GB/s, of all parallel links together
  double latency_us = 0;
};

/// What was measured from GPU to GPU with nothing else under way. Costs go by it, congestion by the
/// links.
struct MeasuredPair {
  GpuId from;
  GpuId to;
  double rate = 0;  ///< GB/s
  double latency_us = 0;
};

/// What a GpuTopology is made of. GPUs are the first vertices.
struct TopologyParts {
  std::string name;
  std::vector<TopologyVertex> vertices;
  std::vector<LinkPart> links;
  PeerWay peers_without_nvlink = PeerWay::host;
  std::vector<MeasuredPair> pairs;
};

/// One thing that is wrong with TopologyParts, and the part that it is about (at most one is set).
struct TopologyFault {
  std::string text;
  std::optional<VertexId> vertex;
  std::optional<std::size_t> link;  ///< element of TopologyParts::links
  std::optional<std::size_t> pair;  ///< element of TopologyParts::pairs
};

/// All that keeps `parts` from being a topology: vertices out of order, links to nobody, with a
/// rate of 0 or in circles, GPUs without a way to host memory, domains that nothing joins, pairs
/// twice.
[[nodiscard]] std::vector<TopologyFault> faults_of(const TopologyParts& parts);

}  // namespace heddle
