#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/system/simulate_run.hpp"

/// `heddle simulate` on machines whose hosts have several nodes.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;

using SimulateHosts = testing::SimulateRun;

}  // namespace

TEST_F(SimulateHosts, says_which_nodes_are_on_which_host_where_they_are_not_consecutive) {
  std::vector<std::string> words{
      "p.yaml", "--machine", "m.yaml", "--set", "machine.nodes_per_host=2", "--report", "r.json"};
  const Ended consecutive = simulate(words);
  ASSERT_EQ(consecutive.status, 0) << consecutive.error;
  EXPECT_EQ(consecutive.out.find("  hosts "), std::string::npos) << consecutive.out;
  EXPECT_EQ(report("r.json").at("hosts"), "consecutive");
  const json seconds = report("r.json").at("seconds");
  words.insert(words.end(), {"--set", "machine.hosts=round", "--trace", "run"});
  const Ended round = simulate(words);
  ASSERT_EQ(round.status, 0) << round.error;
  EXPECT_NE(round.out.find("hosts             2 with 2 nodes each, dealt round\n"),
            std::string::npos)
      << round.out;
  EXPECT_EQ(report("r.json").at("hosts"), "round");
  EXPECT_EQ(report("r.json").at("interface"), "node");
  EXPECT_NE(report("r.json").at("seconds"), seconds);
  const json dealt = report("r.json").at("seconds").at("factor");
  // Its replay knows it.
  const Ended again = run(on(1, {"replay", "run", "--report", "is.json"}));
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(report("is.json").at("hosts"), "round");
  EXPECT_NEAR(report("is.json").at("seconds").at("factor").get<double>(), dealt.get<double>(),
              1e-2 * dealt.get<double>());
}

TEST_F(SimulateHosts, an_interface_of_a_host_is_slower_than_one_of_each_of_its_nodes) {
  std::vector<std::string> words{"p.yaml",
                                 "--machine",
                                 "m.yaml",
                                 "--set",
                                 "machine.nodes_per_host=2",
                                 "--set",
                                 "machine.network.rate=0.1",
                                 "--sweep",
                                 "machine.interface=node,host",
                                 "--sweep",
                                 "machine.hosts=consecutive,[0,1,1,0]",
                                 "--report",
                                 "r.json"};
  const Ended ended = simulate(words);
  ASSERT_EQ(ended.status, 0) << ended.error;
  const json cases = report("r.json").at("cases");
  ASSERT_EQ(cases.size(), 4U);
  const auto seconds = [&](std::size_t i) {
    return cases.at(i).at("seconds").at("factor").get<double>();
  };
  EXPECT_GE(seconds(2), seconds(0)) << "rows of the grid: a column of tiles is one node's of each";
  EXPECT_GT(seconds(3), 1.05 * seconds(1));
  EXPECT_EQ(cases.at(2).at("interface"), "host");
  EXPECT_EQ(cases.at(3).at("hosts"), (json{0, 1, 1, 0}));
  words.resize(words.size() - 6);
  words.insert(words.end(), {"--set", "machine.interface=host"});
  EXPECT_NE(simulate(words).out.find("2 with 2 nodes each; one network interface each"),
            std::string::npos);
}

}  // namespace heddle
