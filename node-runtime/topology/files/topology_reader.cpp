#include "node-runtime/topology/files/topology_reader.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest.hpp"
#include "base/printable.hpp"

namespace heddle {
namespace {

constexpr const char* format_key = "heddle_topology";
/// A host has no more of anything; a file that says so is damaged.
constexpr std::int64_t gpus_max = 1024;

/// Reads one document. Parts keep their places in the file, so that what only shows in the whole
/// topology is complained about where its part is written.
class TopologyReader {
 public:
  TopologyReader(const YamlReader& yaml, const YAML::Node& root) : yaml_(yaml), root_(root) {}

  [[nodiscard]] GpuTopology read() {
    if (!root_.IsMap() || !root_[format_key]) {
      yaml_.fail(root_.Mark(),
                 fmt::format("it is no topology: the key '{}' is missing", format_key));
    }
    static_cast<void>(yaml_.whole(root_, format_key, 1, 1));
    Complaints complaints;
    complaints.of([&] {
      yaml_.expect_map(root_, "topology",
                       {format_key, "name", "gpus", "numa", "switches", "bridges", "cards", "links",
                        "peers_without_nvlink", "pairs"});
    });
    complaints.of(
        [&] { parts_.name = printable(yaml_.scalar<std::string>(root_, "name", "a text")); });
    complaints.of([&] { read_gpus(); });
    complaints.of([&] { read_domains(); });
    read_others(complaints, "switches", VertexKind::switch_chip);
    read_others(complaints, "bridges", VertexKind::bridge);
    read_others(complaints, "cards", VertexKind::card);
    complaints.of([&] { read_peer_way(); });
    complaints.raise();  // links and pairs name what is above
    read_elements(complaints, "links", [&](const YAML::Node& node) { read_link(node); });
    read_elements(complaints, "pairs", [&](const YAML::Node& node) { read_pair(node); });
    complaints.raise();
    for (const TopologyFault& fault : faults_of(parts_)) {
      complaints.of([&] { yaml_.fail(mark_of(fault), fault.text); });
    }
    complaints.raise();
    GpuTopology topology(parts_);
    check_domains(complaints, topology);
    complaints.raise();
    return topology;
  }

 private:
  [[nodiscard]] YAML::Mark mark_of(const TopologyFault& fault) const {
    if (fault.vertex) return vertex_marks_[static_cast<std::size_t>(fault.vertex->value())];
    if (fault.link) return link_marks_[*fault.link];
    if (fault.pair) return pair_marks_[*fault.pair];
    return root_.Mark();
  }

  void add_vertex(TopologyVertex vertex, const YAML::Mark& mark) {
    const VertexId id{static_cast<std::int32_t>(parts_.vertices.size())};
    const auto [known, is_new] = ids_.try_emplace(vertex.name, id);
    if (!is_new) {
      yaml_.fail(mark,
                 fmt::format("the name '{}' is there twice; each GPU, NUMA domain, switch, bridge "
                             "and card needs its own",
                             vertex.name));
    }
    parts_.vertices.push_back(std::move(vertex));
    vertex_marks_.push_back(mark);
  }

  void read_gpus() {
    const YAML::Node gpus = yaml_.member(root_, "gpus");
    if (!gpus.IsSequence()) {
      const std::int64_t count = yaml_.whole(root_, "gpus", 1, gpus_max);
      for (std::int64_t g = 0; g < count; ++g) {
        add_vertex({VertexKind::gpu, fmt::format("g{}", g), {}, {}}, gpus.Mark());
      }
      return;
    }
    if (gpus.size() == 0) yaml_.fail(gpus.Mark(), "'gpus' must have at least one; found none");
    for (const YAML::Node& one : gpus) {
      yaml_.expect_map(one, "gpus", {"pci", "uuid"});
      TopologyVertex gpu{VertexKind::gpu, fmt::format("g{}", parts_.vertices.size()), {}, {}};
      if (one["pci"]) gpu.pci = printable(yaml_.scalar<std::string>(one, "pci", "a PCI address"));
      if (one["uuid"]) gpu.uuid = printable(yaml_.scalar<std::string>(one, "uuid", "a UUID"));
      add_vertex(std::move(gpu), one.Mark());
    }
  }

  void read_domains() {
    const YAML::Node numa = yaml_.member(root_, "numa");
    if (!numa.IsMap() || numa.size() == 0) {
      yaml_.fail(numa.Mark(),
                 "'numa' must be a map from each NUMA domain to the list of its GPUs, such "
                 "as {m0: [g0, g1]}");
    }
    for (const auto& entry : numa) {
      if (!entry.second.IsSequence()) {
        yaml_.fail(entry.second.Mark(),
                   "a NUMA domain must have the list of its GPUs, such as [g0, g1]");
      }
      add_vertex({VertexKind::domain, name_in(entry.first), {}, {}}, entry.first.Mark());
    }
  }

  void read_others(Complaints& complaints, const char* key, VertexKind kind) {
    const YAML::Node names = root_[key];
    if (!names) return;
    complaints.of([&] { yaml_.expect_list(names, key); });
    if (!names.IsSequence()) return;
    for (const YAML::Node& one : names) {
      complaints.of([&] { add_vertex({kind, name_in(one), {}, {}}, one.Mark()); });
    }
  }

  void read_peer_way() {
    constexpr const char* key = "peers_without_nvlink";
    if (!root_[key]) return;
    const auto word = yaml_.scalar<std::string>(root_, key, "host or pcie");
    if (word != "host" && word != "pcie") {
      yaml_.fail(root_[key].Mark(),
                 fmt::format("'{}' must be host or pcie; found '{}'", key, word));
    }
    parts_.peers_without_nvlink = word == "host" ? PeerWay::host : PeerWay::pcie;
  }

  template <class Read>
  void read_elements(Complaints& complaints, const char* key, const Read& read) {
    const YAML::Node elements = root_[key];
    if (!elements) return;
    complaints.of([&] { yaml_.expect_list(elements, key); });
    if (!elements.IsSequence()) return;
    for (const YAML::Node& one : elements) complaints.of([&] { read(one); });
  }

  void read_link(const YAML::Node& node) {
    yaml_.expect_map(node, "links", {"between", "kind", "count", "rate", "latency_us"});
    const YAML::Node ends = yaml_.member(node, "between");
    if (!ends.IsSequence() || ends.size() != 2) {
      yaml_.fail(ends.Mark(), "'between' must name two, such as [g0, s0]");
    }
    LinkPart link;
    link.a = vertex_in(ends[0]);
    link.b = vertex_in(ends[1]);
    const auto kind = yaml_.scalar<std::string>(node, "kind", "nvlink, pcie or socket");
    if (kind == "nvlink") {
      link.kind = LinkKind::nvlink;
    } else if (kind == "pcie") {
      link.kind = LinkKind::pcie;
    } else if (kind == "socket") {
      link.kind = LinkKind::socket;
    } else {
      yaml_.fail(node["kind"].Mark(),
                 fmt::format("'kind' must be nvlink, pcie or socket; found '{}'", kind));
    }
    if (node["count"]) {
      link.count = static_cast<std::int32_t>(
          yaml_.whole(node, "count", 1, std::numeric_limits<std::int16_t>::max()));
    }
    link.rate = yaml_.positive(node, "rate", "GB/s");
    link.latency_us = latency_in(node);
    parts_.links.push_back(link);
    link_marks_.push_back(node.Mark());
  }

  void read_pair(const YAML::Node& node) {
    yaml_.expect_map(node, "pairs", {"from", "to", "rate", "latency_us"});
    MeasuredPair pair;
    pair.from = gpu_in(yaml_.member(node, "from"));
    pair.to = gpu_in(yaml_.member(node, "to"));
    pair.rate = yaml_.positive(node, "rate", "GB/s");
    pair.latency_us = latency_in(node);
    parts_.pairs.push_back(pair);
    pair_marks_.push_back(node.Mark());
  }

  [[nodiscard]] double latency_in(const YAML::Node& map) const {
    constexpr const char* key = "latency_us";
    if (!map[key]) return 0;
    const auto value = yaml_.scalar<double>(map, key, "microseconds");
    if (value == 0) return 0;
    return yaml_.positive(map, key, "microseconds");
  }

  [[nodiscard]] std::string name_in(const YAML::Node& node) const {
    if (!node.IsScalar() || node.Scalar().empty()) {
      yaml_.fail(node.Mark(), "a name is expected, such as s0");
    }
    return printable(node.Scalar());
  }

  [[nodiscard]] VertexId vertex_in(const YAML::Node& node) const {
    const std::string name = name_in(node);
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, id] : ids_) names.push_back(known);
    const std::string_view like = nearest(name, names);
    yaml_.fail(node.Mark(),
               fmt::format("there is no '{}'; name a GPU, or what 'numa', 'switches', 'bridges' or "
                           "'cards' list{}",
                           name, like.empty() ? "" : fmt::format("; did you mean '{}'?", like)));
  }

  [[nodiscard]] GpuId gpu_in(const YAML::Node& node) const {
    const VertexId vertex = vertex_in(node);
    const TopologyVertex& found = parts_.vertices[static_cast<std::size_t>(vertex.value())];
    if (found.kind != VertexKind::gpu) {
      yaml_.fail(node.Mark(),
                 fmt::format("a GPU is expected; '{}' is a {}", found.name, name_of(found.kind)));
    }
    return GpuId{vertex.value()};
  }

  /// Each domain lists just the GPUs whose links lead to it.
  void check_domains(Complaints& complaints, const GpuTopology& topology) const {
    std::map<GpuId, std::string> listed;
    for (const auto& entry : root_["numa"]) {
      const std::string domain = name_in(entry.first);
      for (const YAML::Node& one : entry.second) {
        complaints.of([&] {
          const GpuId gpu = gpu_in(one);
          const auto [known, is_new] = listed.try_emplace(gpu, domain);
          if (!is_new) {
            yaml_.fail(one.Mark(),
                       fmt::format("the GPU '{}' is already in '{}'; a GPU has one NUMA domain",
                                   one.Scalar(), known->second));
          }
          const std::string& linked =
              topology.vertex(topology.vertex_of(topology.domain_of(gpu))).name;
          if (linked != domain) {
            yaml_.fail(one.Mark(),
                       fmt::format("the GPU '{}' is listed in '{}', and its links lead to '{}'; "
                                   "change one of them",
                                   one.Scalar(), domain, linked));
          }
        });
      }
    }
    for (std::int32_t g = 0; g < topology.gpus(); ++g) {
      if (listed.contains(GpuId{g})) continue;
      complaints.of([&] {
        yaml_.fail(root_["numa"].Mark(),
                   fmt::format("the GPU 'g{}' is in no NUMA domain; list it", g));
      });
    }
  }

  const YamlReader& yaml_;
  YAML::Node root_;
  TopologyParts parts_;
  std::map<std::string, VertexId> ids_;
  std::vector<YAML::Mark> vertex_marks_;
  std::vector<YAML::Mark> link_marks_;
  std::vector<YAML::Mark> pair_marks_;
};

}  // namespace

GpuTopology topology_of(const YamlReader& yaml, const YAML::Node& root) {
  try {
    return TopologyReader(yaml, root).read();
  } catch (const YAML::Exception& error) {
    // What yaml-cpp itself throws for keys that are no text, for instance.
    yaml.fail(error.mark, "it cannot be read: " + error.msg);
  }
}

}  // namespace heddle
