#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/system/heddle_run.hpp"

/// `heddle bench collectives --machine` through the binary.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class BenchVirtual : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    // Without latency or cost: a byte takes a nanosecond.
    folder_.write("m.yaml",
                  "heddle_collective_machine: 1\nname: even\nhosts: 5000\nranks: 2\n"
                  "ways: {socket: {latency_us: 0, rate: 1}, network: {latency_us: 0, rate: 1}}\n"
                  "links: {card: 1}\n");
  }
  [[nodiscard]] static std::vector<std::string> bench(std::vector<std::string> words) {
    std::vector<std::string> all{"bench", "collectives", "--machine", "m.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    return alone(std::move(all));
  }
  [[nodiscard]] json report(std::vector<std::string> words) {
    words.insert(words.end(), {"--report", "b.json"});
    const Ended ended = run(bench(std::move(words)));
    EXPECT_EQ(ended.status, 0) << ended.error;
    return json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
  }
};

}  // namespace

TEST_F(BenchVirtual, simulates_all_operations_of_a_machine_file) {
  const Ended ended =
      run(bench({"--nodes", "4,6", "--bytes", "8:16KiB", "--explain", "--report", "b.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("simulated on even"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("predicted: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("in use: card of host "), std::string::npos) << ended.out;
  const json all = json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
  EXPECT_TRUE(all.at("simulated").get<bool>());
  // Nine operations of 8, 32, ..., 8192 bytes, and the barrier.
  EXPECT_EQ(all.at("collectives").size(), 2U * (9 * 6 + 1));
}

TEST_F(BenchVirtual, times_are_those_of_the_file) {
  const json two = report({"--nodes", "4", "--map", "by-node", "--operation", "broadcast",
                           "--algorithm", "flat", "--bytes", "8000"});
  // The root's card has one message for the other host, then each host its own one.
  EXPECT_DOUBLE_EQ(two.at("collectives").at(0).at("microseconds").get<double>(), 16.0);
  EXPECT_EQ(two.at("collectives").at(0).at("messages").get<int>(), 3);
  const json flat = report(
      {"--nodes", "8", "--operation", "broadcast", "--algorithm", "flat", "--bytes", "8000"});
  // Three messages share the root's card.
  EXPECT_DOUBLE_EQ(flat.at("collectives").at(0).at("microseconds").get<double>(), 32.0);
}

TEST_F(BenchVirtual, random_maps_have_a_median_and_one_seed_one_result) {
  const std::vector<std::string> words{"--nodes", "32",   "--operation", "reduce",
                                       "--bytes", "1MiB", "--map",       "random",
                                       "--maps",  "5",    "--seed",      "7"};
  const json first = report(words);
  EXPECT_EQ(first.at("collectives").at(0).at("microseconds_of_maps").size(), 5U);
  EXPECT_EQ(first, report(words));
}

TEST_F(BenchVirtual, ten_thousand_nodes_meet_in_a_barrier_and_a_sum) {
  const json all = report({"--operation", "barrier", "--operation", "all_reduce", "--bytes", "8",
                           "--algorithm", "reduce_broadcast"});
  ASSERT_EQ(all.at("collectives").size(), 2U);
  for (const json& row : all.at("collectives")) EXPECT_EQ(row.at("ranks").get<int>(), 10'000);
}

TEST_F(BenchVirtual, names_what_is_wrong_with_its_input) {
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    const Ended ended = run(bench(std::move(words)));
    EXPECT_EQ(ended.status, 2) << why;
    EXPECT_NE(ended.error.find(why), std::string::npos) << ended.error;
  };
  refused({"--nodes", "10001"}, "--nodes: expected at most 10000; found '10001'");
  refused({"--nodes", "0"}, "--nodes: expected at least 1; found '0'");
  refused({"--algorithm", "best"}, "'best' is no algorithm of collectives; there are auto");
  for (const char* way : {"direct", "gsb", "btb"}) {
    const std::string why =
        fmt::format("--algorithm {}: it is for memory of devices of one host", way);
    refused({"--algorithm", way}, why.c_str());
  }
  refused({"--operation", "sum"}, "--operation sum: expected one of barrier, broadcast");
  refused({"--map", "by-luck"}, "--map by-luck: expected one of by-core, by-node, random");
  refused({"--bytes", "16MiB:8"}, "expected SIZE or SIZE:SIZE, 8 B to 1 GiB; found '16MiB:8'");
  refused({"--bytes", "4"}, "found '4'");
  refused({"--datatype", "triangle"}, "--datatype");
  refused({"--only", "chain"}, "--only");
  refused({"--seconds", "1"}, "--seconds");
  refused({"--repeat", "1"}, "--repeat");
  refused({"--operation", "all_to_all", "--bytes", "8"}, "take fewer ranks or another algorithm");
  refused({"--operation", "broadcast", "--bytes", "1GiB", "--fragment", "8"},
          "take fewer ranks, or longer fragments");
  refused({"--report", "m.yaml"}, "m.yaml");
  folder_.write("small.yaml",
                "heddle_collective_machine: 1\nhosts: 2\n"
                "ways: {network: {latency_us: 0, rate: 1}}\n");
  const auto machine = [&](std::vector<std::string> words, const char* why) {
    std::vector<std::string> all{"bench", "collectives", "--machine"};
    all.insert(all.end(), words.begin(), words.end());
    const Ended ended = run(alone(std::move(all)));
    EXPECT_EQ(ended.status, 2) << why;
    EXPECT_NE(ended.error.find(why), std::string::npos) << ended.error;
  };
  machine({"nowhere.yaml"}, "machine file nowhere.yaml: it is missing");
  machine({"small.yaml", "--nodes", "3"},
          "machine 'small.yaml' has 2 hosts with 1 ranks each: 3 ranks do not fit");
  folder_.write("bad.yaml", "heddle_collective_machine: 1\nhost: 2\n");
  machine({"bad.yaml"}, "machine file bad.yaml:2:1: 'machine' has no key 'host'");
  folder_.write("large.yaml", "heddle_collective_machine: 1\nhosts: 101\nranks: 100\n");
  machine({"large.yaml"}, "the machine has more than 10000 ranks");
  const Ended alone_nodes = run(alone({"bench", "collectives", "--nodes", "3"}));
  EXPECT_EQ(alone_nodes.status, 2);
  EXPECT_NE(alone_nodes.error.find("--machine"), std::string::npos) << alone_nodes.error;
  const Ended launched = run(on(2, {"bench", "collectives", "--machine", "m.yaml"}));
  EXPECT_EQ(launched.status, 2);
  EXPECT_NE(launched.error.find("start it without mpiexec"), std::string::npos) << launched.error;
}

}  // namespace heddle
