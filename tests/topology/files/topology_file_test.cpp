#include "node-runtime/topology/files/topology_file.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle::test {
namespace {

constexpr const char* sound = R"(heddle_topology: 1
name: two
gpus: 2
numa: {m0: [g0], m1: [g1]}
switches: [s0]
links:
  - {between: [g0, s0], kind: pcie, rate: 12, latency_us: 4}
  - {between: [s0, m0], kind: pcie, rate: 12}
  - {between: [g1, m1], kind: pcie, rate: 12}
  - {between: [m0, m1], kind: socket, rate: 19}
  - {between: [g0, g1], kind: nvlink, count: 2, rate: 23, latency_us: 8}
peers_without_nvlink: host
pairs: [{from: g0, to: g1, rate: 40, latency_us: 9}]
)";

/// The message with which the sound file is refused with `piece` exchanged.
std::string refusal(const std::string& piece, const std::string& by) {
  std::string text = sound;
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), by);
  try {
    static_cast<void>(topology_from_yaml(text, "t.yaml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "it was taken";
}

TEST(TopologyFile, reads_what_it_says) {
  const GpuTopology topology = topology_from_yaml(sound, "t.yaml");
  EXPECT_EQ(topology.name(), "two");
  EXPECT_EQ(topology.gpus(), 2);
  EXPECT_EQ(topology.domains(), 2);
  EXPECT_EQ(topology.cards(), 0);
  EXPECT_EQ(topology.parts().links.size(), 5);
  EXPECT_EQ(topology.parts().links[4].count, 2);
  EXPECT_EQ(topology.parts().links[4].latency_us, 8);
  EXPECT_EQ(topology.route(GpuId{0}, GpuId{1}).rate, 40);
  EXPECT_EQ(topology.route(GpuId{1}, GpuId{0}).rate, 46);
}

TEST(TopologyFile, reads_addresses_and_uuids_of_a_real_machine) {
  std::string text = sound;
  text.replace(text.find("gpus: 2"), 7,
               "gpus: [{pci: '0000:1b:00.0', uuid: GPU-1}, {pci: '0000:1c:00.0', uuid: GPU-2}]");
  const GpuTopology topology = topology_from_yaml(text, "t.yaml");
  EXPECT_EQ(topology.gpus(), 2);
  EXPECT_EQ(topology.vertex(VertexId{1}).pci, "0000:1c:00.0");
  EXPECT_EQ(topology.vertex(VertexId{1}).uuid, "GPU-2");
}

TEST(TopologyFile, refuses_what_is_wrong_with_its_line) {
  struct Case {
    const char* piece;
    const char* by;
    const char* expected;
  };
  for (const Case& one : std::vector<Case>{
           {"heddle_topology: 1", "heddle_topology: 2",
            "t.yaml:1:18: 'heddle_topology' must be at most 1"},
           {"heddle_topology: 1", "format: 1", "the key 'heddle_topology' is missing"},
           {"heddle_topology: 1", "[", "it is no YAML"},
           {"name: two\n", "", "the key 'name' is missing"},
           {"gpus: 2", "gpus: 0", "t.yaml:3:7: 'gpus' must be at least 1; found '0'"},
           {"gpus: 2", "gpus: []", "t.yaml:3:7: 'gpus' must have at least one"},
           {"gpus: 2", "gpus: [{pci: a, uuid: X}, {pci: b, uuid: X}]",
            "the UUID 'X' is there twice"},
           {"gpus: 2", "gpu: 2", "did you mean 'gpus'?"},
           {"m1: [g1]", "m0: [g1]", "the name 'm0' is there twice"},
           {"m1: [g1]", "m1: g1", "t.yaml:4:22: a NUMA domain must have the list of its GPUs"},
           {"m1: [g1]", "m1: [g1, g0]", "t.yaml:4:27: the GPU 'g0' is already in 'm0'"},
           {"m0: [g0]", "m0: []", "the GPU 'g0' is in no NUMA domain"},
           {"{m0: [g0], m1: [g1]}", "{m0: [g1], m1: [g0]}",
            "t.yaml:4:13: the GPU 'g1' is listed in 'm0', and its links lead to 'm1'"},
           {"m1: [g1]", "m1: [s0]", "a GPU is expected; 's0' is a switch"},
           {"switches: [s0]", "switches: s0", "'switches' must be a list"},
           {"switches: [s0]", "switches: [s0, s1]", "t.yaml:5:16: the switch 's1' has no link"},
           {"switches: [s0]", "switches: [s0, g1]", "the name 'g1' is there twice"},
           {"[g1, m1], kind: pcie", "[g7, m1], kind: pcie", "t.yaml:9:16: there is no 'g7'"},
           {"[g1, m1], kind: pcie", "[g1], kind: pcie", "'between' must name two"},
           {"[g1, m1], kind: pcie", "[g1, m1], kind: cable",
            "t.yaml:9:31: 'kind' must be nvlink, pcie or socket; found 'cable'"},
           {"[g1, m1], kind: pcie", "[g1, g1], kind: pcie", "joins a vertex to itself"},
           {"[m0, m1], kind: socket", "[m0, m1], kind: nvlink", "links between two NUMA domains"},
           {"rate: 19", "rate: 0", "t.yaml:10:45: 'rate' must be positive; found '0'"},
           {"rate: 19", "rate: many", "'rate' must be GB/s; found 'many'"},
           {"rate: 19", "speed: 19", "'links' has no key 'speed'"},
           {"count: 2", "count: -2", "'count' must be at least 1; found '-2'"},
           {"  - {between: [g1, m1], kind: pcie, rate: 12}\n", "",
            "the GPU 'g1' has no way to host memory"},
           {"  - {between: [m0, m1], kind: socket, rate: 19}\n", "",
            "'m1' has no way to the first one"},
           {"peers_without_nvlink: host", "peers_without_nvlink: bus",
            "must be host or pcie; found 'bus'"},
           {"latency_us: 9", "latency_us: -9", "'latency_us' must be positive; found '-9'"},
           {"to: g1, rate: 40", "to: g0, rate: 40", "the pair from g0 to g0 is one GPU"},
           {"to: g1, rate: 40", "to: m1, rate: 40", "a GPU is expected; 'm1' is a NUMA domain"},
           {"pairs: [", "pairs: [{from: g0, to: g1, rate: 4}, ",
            "t.yaml:13:38: the pair from g0 to g1 is there twice"}}) {
    const std::string text = refusal(one.piece, one.by);
    EXPECT_NE(text.find(one.expected), std::string::npos) << one.by << "\n" << text;
    EXPECT_NE(text.find("topology t.yaml"), std::string::npos) << text;
  }
}

TEST(TopologyFile, tells_all_mistakes_at_once) {
  std::string text = sound;
  text.replace(text.find("rate: 19"), 8, "rate: 0");
  text.replace(text.find("kind: nvlink"), 12, "kind: cable");
  try {
    static_cast<void>(topology_from_yaml(text, "t.yaml"));
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("t.yaml:10:"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("t.yaml:11:"), std::string::npos) << error.what();
  }
}

TEST(TopologyFile, shipped_ones_are_found_by_name_and_as_files) {
  EXPECT_EQ(shipped_topologies(),
            (std::vector<std::string_view>{"ac922-6", "dgx-1v", "dgx-2", "hgx-h100-8", "k80-16",
                                           "pairs-4", "pcie-2x4", "pcie-8"}));
  for (const std::string_view name : shipped_topologies()) {
    const GpuTopology by_name = read_topology(std::string(name));
    const GpuTopology by_path =
        read_topology(HEDDLE_CONFIG_FOLDER "/topologies/" + std::string(name) + ".yaml");
    EXPECT_EQ(by_name.name(), name);
    EXPECT_EQ(by_path.name(), name);
    EXPECT_EQ(by_name.links().size(), by_path.links().size());
  }
}

TEST(TopologyFile, an_unknown_name_is_refused_with_the_nearest) {
  try {
    static_cast<void>(read_topology("dgx1v"));
    FAIL() << "it was found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'dgx-1v'?"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(static_cast<void>(read_topology("./missing.yaml")), Error);
  EXPECT_THROW(static_cast<void>(read_topology("")), Error);
}

}  // namespace
}  // namespace heddle::test
