#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "node-runtime/device/cuda/cuda.hpp"
#include "tests/system/heddle_run.hpp"

/// `heddle doctor` through the binary, on emulated devices, with ways that do not work.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Doctor : public HeddleRun {
 protected:
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  /// With `devices` emulated devices on each of `nodes` nodes (0: alone), and a report.
  [[nodiscard]] Ended examine(int nodes, int devices, std::vector<std::string> options = {}) const {
    std::vector<std::string> words{"doctor", "--report", "d.json"};
    if (devices > 0) {
      options.insert(options.end(), {"--set", "runtime.devices.backend=emulated", "--set",
                                     "runtime.devices.per_node=" + std::to_string(devices), "--set",
                                     "runtime.devices.memory=16MiB"});
    } else {
      options.insert(options.end(), {"--set", "runtime.devices.backend=none"});
    }
    words.insert(words.end(), options.begin(), options.end());
    return run(nodes == 0 ? alone(words) : on(nodes, words));
  }
  [[nodiscard]] json report() const {
    return json::parse(testing::read_file(folder_ / "d.json"), nullptr, false);
  }
  /// Ways of the pairs that are so near and have `hosts` hosts among their ends.
  [[nodiscard]] std::vector<std::string> ways(const std::string& nearness, int hosts) const {
    const json all = report();
    std::vector<std::string> found;
    for (const json& pair : all.at("pairs")) {
      int count = 0;
      for (const char* end : {"first", "second"}) count += pair[end]["device"].is_null() ? 1 : 0;
      if (pair["nearness"] != nearness || count != hosts) continue;
      found.push_back(pair["way"].is_null() ? "none" : pair["way"].get<std::string>());
    }
    return found;
  }
  /// Why collectives lack a way, by its name; "" where they have it.
  [[nodiscard]] std::map<std::string, std::string> missing_ways() const {
    const json all = report();
    std::map<std::string, std::string> reasons;
    for (const json& way : all.at("collectives").at("ways")) {
      EXPECT_EQ(way["works"].get<bool>(), way["reason"] == "") << way;
      reasons.emplace(way["way"], way["reason"]);
    }
    return reasons;
  }
};

using Ways = std::vector<std::string>;

}  // namespace

TEST_F(Doctor, of_one_host_without_devices_has_facts_alone) {
  const Ended ended = examine(0, 0);
  EXPECT_EQ(ended.status, 0) << ended.error;
  for (const char* part : {"node 0", "CUDA libraries", "MPS", "namespaces", "pid:[", "/dev/shm",
                           "locked memory", "asked for none", "nothing to transfer between"}) {
    EXPECT_TRUE(contains(ended.out, part)) << part << " is not in: " << ended.out;
  }
  EXPECT_EQ(report()["status"], "ok");
  EXPECT_TRUE(report()["pairs"].empty());
  EXPECT_TRUE(report()["nodes"][0]["mpi"].is_null());
}

TEST_F(Doctor, of_one_node_finds_copies_between_its_devices) {
  for (const int nodes : {0, 1}) {
    const Ended ended = examine(nodes, 3);
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_TRUE(contains(ended.out, "host - devices 0..2 of node 0")) << ended.out;
    EXPECT_EQ(ways("node", 1), Ways(3, "staged"));
    EXPECT_EQ(ways("node", 0), Ways(3, "peer"));
  }
}

TEST_F(Doctor, of_two_and_four_nodes_finds_mapped_memory_between_them) {
  for (const int nodes : {2, 4}) {
    const Ended ended = examine(nodes, 1);
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.error, "");
    EXPECT_TRUE(contains(ended.out, "MPI_THREAD_SERIALIZED")) << ended.out;
    const auto pairs = static_cast<std::size_t>(nodes * (nodes - 1) / 2);
    EXPECT_EQ(ways("host", 2), Ways(pairs, "host"));
    EXPECT_EQ(ways("host", 1), Ways(2 * pairs, "staged"));
    EXPECT_EQ(ways("host", 0), Ways(pairs, "mapped"));
    const json all = report();
    ASSERT_EQ(all["nodes"].size(), static_cast<std::size_t>(nodes));
    for (const json& pair : all["pairs"]) {
      for (const json& tried : pair["tried"]) {
        EXPECT_TRUE(tried["works"]) << pair;
        EXPECT_GT(tried["gigabytes_per_second"], 0) << pair;
      }
    }
  }
}

TEST_F(Doctor, of_refused_mappings_falls_back_to_messages_and_says_why) {
  const Ended ended = examine(2, 2, {"--inject", "refuse-mappings"});
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(ways("host", 0), Ways(4, "staged"));
  EXPECT_TRUE(contains(ended.out, "no mapped memory: node 1: emulated device 0: opening"))
      << ended.out;
  EXPECT_TRUE(contains(ended.out, "injected fault: refused")) << ended.out;
  const json all = report();
  for (const json& pair : all["pairs"]) {
    if (pair["tried"][0]["way"] != "mapped") continue;
    EXPECT_FALSE(pair["tried"][0]["works"]);
    EXPECT_TRUE(contains(pair["tried"][0]["reason"], "injected fault: refused"));
  }
}

TEST_F(Doctor, of_mappings_that_one_node_refuses_keeps_those_of_the_others) {
  const Ended ended = examine(3, 1, {"--inject", "refuse-mappings@1"});
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(ways("host", 0), (Ways{"staged", "mapped", "staged"}));
  EXPECT_TRUE(contains(ended.out, "device 0 of node 1 - device 0 of nodes 0, 2")) << ended.out;
}

TEST_F(Doctor, of_refused_peers_goes_through_the_host_and_says_why) {
  for (const int nodes : {0, 2}) {
    const Ended ended =
        examine(nodes, 2, {"--inject", "refuse-peers", "--inject", "refuse-mappings"});
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ways("node", 0), Ways(nodes == 0 ? 1 : 2, "staged"));
    EXPECT_TRUE(contains(ended.out, "no peer copy: emulated 0 and emulated 1 have no access"))
        << ended.out;
  }
}

TEST_F(Doctor, of_a_mapping_that_stalls_gives_it_up_and_uses_messages) {
  const Ended ended = examine(2, 1, {"--inject", "stall-mappings@0"});
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(ways("host", 0), Ways{"staged"});
  EXPECT_TRUE(contains(ended.out, "device 0.0 did not come to an end within")) << ended.out;
}

// ---- collectives -----------------------------------------------------------------------------

TEST_F(Doctor, of_one_node_has_no_collectives) {
  const Ended ended = examine(1, 1);
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_FALSE(contains(ended.out, "collectives")) << ended.out;
  EXPECT_TRUE(report()["collectives"]["groups"].empty());
}

TEST_F(Doctor, of_the_nodes_of_a_host_tells_who_leads_them_and_which_ways_collectives_have) {
  for (const int nodes : {2, 4}) {
    const Ended ended = examine(nodes, 1);
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_TRUE(contains(ended.out, "; node 0 leads")) << ended.out;
    EXPECT_FALSE(contains(ended.out, " no: ")) << ended.out;
    const json sheet = report()["collectives"];
    ASSERT_EQ(sheet["groups"].size(), 1U) << sheet;
    const json& group = sheet["groups"][0];
    EXPECT_EQ(group["level"], "host");
    EXPECT_EQ(group["host"], report()["nodes"][0]["host"]);
    EXPECT_EQ(group["leader"], 0);
    ASSERT_EQ(group["nodes"].size(), static_cast<std::size_t>(nodes));
    for (int r = 0; r < nodes; ++r) EXPECT_EQ(group["nodes"][static_cast<std::size_t>(r)], r);
    EXPECT_EQ(missing_ways(), (std::map<std::string, std::string>{
                                  {"board", ""}, {"reading", ""}, {"devices", ""}}));
  }
}

TEST_F(Doctor, of_nodes_that_share_a_device_tells_it_as_a_level) {
  const Ended ended = examine(4, 1, {"--set", "runtime.devices.nodes_per_device=2"});
  EXPECT_EQ(ended.status, 0) << ended.error;
  const json all = report();
  const auto identity = [&](std::size_t node) { return all["nodes"][node]["devices"][0]["uuid"]; };
  EXPECT_EQ(identity(0), identity(1));
  EXPECT_EQ(identity(2), identity(3));
  EXPECT_NE(identity(1), identity(2));
  std::map<std::string, std::vector<json>> nodes;
  for (const json& group : all["collectives"]["groups"]) {
    nodes[group["level"]].push_back(group["nodes"]);
  }
  EXPECT_EQ(nodes["gpu"], (std::vector<json>{{0, 1}, {2, 3}}));
  EXPECT_EQ(nodes["host"], (std::vector<json>{{0, 2}})) << "one of each device";
  EXPECT_EQ(missing_ways().at("devices"), "");
}

TEST_F(Doctor, of_collectives_says_why_a_way_is_missing) {
  struct Case {
    const char* what;
    int devices;
    const char* fault;
    const char* way;
    const char* reason;
  };
  for (const Case& c :
       {Case{"board of a node", 1, "refuse-board@1", "board", "node 1: injected fault: refused"},
        Case{"board of its maker", 1, "refuse-board@0", "board", "node 0: injected fault: refused"},
        Case{"reading", 1, "refuse-reading@1", "reading",
             "node 1: process_vm_readv of node 0's memory: injected fault: refused"},
        Case{"mappings", 1, "refuse-mappings@1", "devices", "device 0.0 and device 1.0: "},
        Case{"no device", 0, "refuse-peers", "devices", "node 0 has no device"}}) {
    SCOPED_TRACE(c.what);
    const Ended ended = examine(2, c.devices, {"--inject", c.fault});
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_TRUE(contains(ended.out, std::string("no: ") + c.reason)) << ended.out;
    const auto missing = missing_ways();
    EXPECT_EQ(missing.size(), 3U);
    for (const auto& [way, reason] : missing) {
      if (way == c.way) {
        EXPECT_EQ(reason.rfind(c.reason, 0), 0U) << way << ": " << reason;
      } else {
        EXPECT_EQ(reason, "") << way;
      }
    }
  }
}

TEST_F(Doctor, of_a_device_that_nothing_reaches_ends_with_1) {
  const Ended ended = examine(2, 1, {"--inject", "no-memory@1"});
  EXPECT_EQ(ended.status, 1) << ended.error;
  EXPECT_TRUE(contains(ended.error, "heddle: 3 of 6 pairs of places have no way that works"))
      << ended.error;
  EXPECT_EQ(report()["status"], "failed");
  EXPECT_EQ(ways("host", 0), Ways{"none"});
  EXPECT_EQ(ways("host", 2), Ways{"host"});
}

TEST_F(Doctor, of_gpus_finds_a_way_between_those_of_two_nodes) {
  if (probe_cuda().gpus.empty()) GTEST_SKIP() << probe_cuda().why;
  const Ended ended =
      run(on(2, {"doctor", "--report", "d.json", "--set", "runtime.devices.backend=cuda", "--set",
                 "runtime.devices.per_node=1"}));
  EXPECT_EQ(ended.status, 0) << ended.error;
  ASSERT_EQ(ways("host", 0).size(), 1U) << ended.out;
  EXPECT_TRUE(ways("host", 0)[0] == "mapped" || contains(ended.out, "no mapped memory"))
      << ended.out;
  EXPECT_EQ(ways("host", 1), Ways(2, "staged"));
}

TEST_F(Doctor, tells_every_pair_when_asked_for_more_and_none_when_for_less) {
  const Ended verbose = examine(0, 2, {"-v"});
  EXPECT_TRUE(contains(verbose.out, "device 0.0     device 0.1     peer ")) << verbose.out;
  const Ended quiet = examine(2, 1, {"-q"});
  EXPECT_EQ(quiet.status, 0) << quiet.error;
  EXPECT_EQ(quiet.out + quiet.error, "");
  EXPECT_EQ(report()["status"], "ok");
}

TEST_F(Doctor, refuses_what_it_does_not_understand) {
  struct Case {
    std::vector<std::string> options;
    std::vector<std::string> parts;
  };
  for (const Case& c : {Case{{"--reprot", "d.json"}, {"--reprot", "heddle doctor --help"}},
                        Case{{"--report", "nowhere/d.json"}, {"nowhere/d.json", "no folder"}},
                        Case{{"--set", "runtime.devcies.backend=none"}, {"did you mean 'devices'"}},
                        Case{{"--set", "runtime.devices.per_node=-1"}, {"--set 1", "per_node"}},
                        Case{{"--inject", "nonsense"}, {"no fault 'nonsense'"}}}) {
    std::vector<std::string> words{"doctor"};
    words.insert(words.end(), c.options.begin(), c.options.end());
    expect_refused(run(alone(words)), c.parts);
    expect_refused(run(on(2, words)), c.parts);
  }
  EXPECT_TRUE(folder_.names().empty());
}

}  // namespace heddle
