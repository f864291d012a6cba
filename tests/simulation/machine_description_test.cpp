#include "apps/simulation/machine_description.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>
#include <vector>

#include "apps/simulation/machine_hosts.hpp"
#include "apps/simulation/tuned_machine.hpp"
#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/machine/machine_file.hpp"
#include "tests/kernels/machine_fixture.hpp"

namespace heddle {
namespace {

/// A file that is gone afterwards.
class MachineText {
 public:
  explicit MachineText(const std::string& text) { std::ofstream(path_) << text; }
  explicit MachineText(const MachineFile& file) { write_machine_file(path_, file); }
  MachineText(const MachineText&) = delete;
  MachineText& operator=(const MachineText&) = delete;
  ~MachineText() { std::filesystem::remove(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] MachineDescription read(const std::vector<std::string>& overrides = {}) const {
    return read_machine_description(path_, overrides, {});
  }
  /// Why it is refused.
  [[nodiscard]] std::string refusal(const std::vector<std::string>& overrides = {}) const {
    try {
      static_cast<void>(read(overrides));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return error.what();
    }
    return "";
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("heddle-machine-" + std::to_string(::getpid()) + ".yaml"))
                          .string();
};

/// Tuned: 4 workers; a product of 100 takes one alone 100 us, and 200 beside the others.
MachineFile tuned_file() {
  MachineFile file = test::sample_machine();
  file.host = "node7";
  file.cores = 5;
  file.measured.cpu = CpuMeasurement{4, {}, {}};
  const auto add = [](KernelTimes& to, const Kernel& kernel, std::int64_t rows, double us) {
    to.push_back({&kernel, rows, 100, 0, us});
  };
  add(file.measured.cpu->one_worker, kernel::gsmm, 100, 100);
  add(file.measured.cpu->all_workers, kernel::gsmm, 100, 200);
  add(file.measured.cpu->all_workers, kernel::geqrt, 400, 500);
  add(file.measured.cpu->all_workers, kernel::geqrt, 200, 300);
  add(file.measured.cpu->all_workers, kernel::tsmqr, 400, 800);
  file.measured.messages = MessageMeasurement{3, 10};
  file.measured.messages->reading = MessageMeasurement::Reading{1, 5};
  return file;
}

TEST(MachineDescription, IsWhatHeddleTuneHasMeasured) {
  const MachineText text(tuned_file());
  const MachineDescription machine = text.read({"nodes=3", "nodes_per_host=3"});
  EXPECT_EQ(machine.machine.name, "node7");
  EXPECT_EQ(machine.machine.nodes, 3);
  EXPECT_EQ(machine.machine.cpu_workers, 4);
  EXPECT_EQ(machine.machine.cores, 5);
  EXPECT_DOUBLE_EQ(machine.machine.network.latency_s, 3e-6);
  EXPECT_DOUBLE_EQ(machine.machine.network.bytes_per_s, 1e10);
  EXPECT_DOUBLE_EQ(machine.machine.memory.bytes_per_s, 5e9);
  // 2 x 100^3 operations.
  EXPECT_DOUBLE_EQ(*rate_at(machine.host, kernel::gsmm, 100, 4), 10);
  EXPECT_DOUBLE_EQ(*rate_at(machine.host, kernel::gsmm, 100, 1), 20);
  EXPECT_DOUBLE_EQ(*rate_at(machine.host, kernel::gsmm, 100, 12), 10) << "of all workers, the most";
  EXPECT_DOUBLE_EQ(*rate_at(machine.host, kernel::gsmm, 100, 2), 10 * std::sqrt(2.0));
  // Of 400 rows, and as those that compute the same.
  const double panels = *rate_at(machine.host, kernel::geqrt, 100, 4);
  EXPECT_GT(panels, 0);
  EXPECT_EQ(rate_at(machine.host, kernel::tsqrt, 100, 4), panels);
  EXPECT_EQ(rate_at(machine.host, kernel::ttqrt, 100, 4), panels);
  EXPECT_EQ(rate_at(machine.host, kernel::ttmqr, 100, 4),
            rate_at(machine.host, kernel::tsmqr, 100, 4));
  EXPECT_EQ(rate_at(machine.host, kernel::unmqr, 100, 4),
            rate_at(machine.host, kernel::tsmqr, 100, 4));
  EXPECT_FALSE(rate_at(machine.host, kernel::potrf, 100, 4)) << "nothing is like it";
}

TEST(MachineDescription, OfAFileThatHasNoTimesIsRefused) {
  MachineFile file = tuned_file();
  file.measured = {};
  EXPECT_NE(MachineText(file).refusal().find("heddle tune measures them"), std::string::npos);
}

TEST(MachineDescription, TellsAllThatIsWrongAtOnce) {
  const std::string why = MachineText(
                              "heddle_simulated_machine: 1\nnodes: 2\nnodes: 3\ndevices: -1\n"
                              "network: {latency: 3}\nruntime: {wake_us: -1}\nkernels:\n  host:\n"
                              "    - {kernel: gsm, size: 1, gflops: 1}\n"
                              "    - {kernel: gsmm, size: 1}\n")
                              .refusal();
  for (const char* part :
       {":3:1: 'machine' has the key 'nodes' twice; the first is in line 2",
        ":4:10: 'devices' must be at least 0", ":5:11: 'network' has no key 'latency'",
        "'wake_us' must be microseconds, at least 0",
        ":9:16: no factorization has a kernel 'gsm'; expected one of potrf", "did you mean 'gsmm'?",
        ":10:7: the key 'gflops' is missing"}) {
    EXPECT_NE(why.find(part), std::string::npos) << part << " in\n" << why;
  }
}

TEST(MachineDescription, TellsTheBoundOfWhatIsTooLarge) {
  const std::string why =
      MachineText(
          "heddle_simulated_machine: 1\nnodes: 4294967297\ncpu_workers: 18446744073709551617\n"
          "devices: 65\ndevice_memory: 1e400GiB\nnetwork: {rate: 1e400}\n")
          .refusal();
  for (const char* part :
       {":2:8: 'nodes' must be at most 1000000; found '4294967297'",
        ":3:14: 'cpu_workers' must be at most 1000000; found '18446744073709551617'",
        ":4:10: 'devices' must be at most 64; found '65'",
        ":5:16: 'device_memory': the size '1e400GiB' is too large", "found '1e400'"}) {
    EXPECT_NE(why.find(part), std::string::npos) << part << " in\n" << why;
  }
}

TEST(MachineDescription, QuotesWhatATerminalWouldTakeForACommand) {
  const std::string why =
      MachineText("heddle_simulated_machine: 1\nnodes: \"\\e[2J\\n\"\n\"\\a\": 1\n").refusal();
  EXPECT_NE(why.find("'nodes' must be a whole number; found '\\x1B[2J\\n'"), std::string::npos)
      << why;
  EXPECT_EQ(why.find('\x1b'), std::string::npos);
  EXPECT_EQ(why.find('\a'), std::string::npos);
}

/// The host of each node.
std::vector<std::int32_t> hosts_of(const replay::SimulatedMachine& machine) {
  std::vector<std::int32_t> hosts;
  for (NodeId node{0}; node.value() < machine.nodes; ++node) {
    hosts.push_back(machine.host_of(node));
  }
  return hosts;
}

TEST(MachineDescription, SaysWhichNodesAreOnWhichHost) {
  const MachineText text("heddle_simulated_machine: 1\nnodes: 6\nnodes_per_host: 2\n");
  using Hosts = std::vector<std::int32_t>;
  EXPECT_EQ(hosts_of(text.read().machine), (Hosts{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(hosts_of(text.read({"hosts=consecutive"}).machine), (Hosts{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(hosts_text(text.read().machine), "");
  const replay::SimulatedMachine round = text.read({"hosts=round"}).machine;
  EXPECT_EQ(hosts_of(round), (Hosts{0, 1, 2, 0, 1, 2}));
  EXPECT_TRUE(round.are_neighbours(NodeId{1}, NodeId{4}));
  EXPECT_FALSE(round.are_neighbours(NodeId{0}, NodeId{1}));
  EXPECT_EQ(hosts_text(round), "3 with 2 nodes each, dealt round");
  EXPECT_EQ(hosts_of(text.read({"hosts=round", "nodes=4"}).machine), (Hosts{0, 1, 0, 1}));
  const replay::SimulatedMachine listed = text.read({"hosts=[1, 0, 0, 2, 1, 2]"}).machine;
  EXPECT_EQ(hosts_of(listed), (Hosts{1, 0, 0, 2, 1, 2}));
  EXPECT_EQ(hosts_text(listed), "3 with 2 nodes each, as listed");
}

TEST(MachineDescription, ListedHostsSayHowManyNodesTheyHave) {
  const MachineText text("heddle_simulated_machine: 1\nnodes: 4\nhosts: [0, 1, 1, 0]\n");
  EXPECT_EQ(text.read().machine.nodes_per_host, 2);
  EXPECT_EQ(text.read({"nodes_per_host=2"}).machine.host_count(), 2);
  // What is known of other nodes is not said of these.
  const MachineDescription others =
      read_machine_description({}, {"nodes=6", "nodes_per_host=3"}, text.read());
  EXPECT_EQ(hosts_of(others.machine), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(MachineDescription, RefusesHostsThatCannotBe) {
  const MachineText text("heddle_simulated_machine: 1\nname: m\nnodes: 4\n");
  const auto expect_refused = [&](const std::string& hosts, const std::string& why) {
    const std::string refusal = text.refusal({hosts});
    EXPECT_NE(refusal.find(why), std::string::npos) << hosts << ": " << refusal;
  };
  expect_refused("hosts=rund", "'hosts' must be 'consecutive', 'round', or a list");
  expect_refused("hosts=rund", "found 'rund'");
  expect_refused("hosts={a: 1}", "'hosts' must be 'consecutive', 'round', or a list");
  expect_refused("hosts=[0, -1, 1, 0]", "whole numbers of hosts, from 0 on; found '-1'");
  expect_refused("hosts=[0, 1.5, 1, 0]", "found '1.5'");
  expect_refused("hosts=[0, [1], 1, 0]", "whole numbers of hosts, from 0 on");
  expect_refused("hosts=[0, 0, 1]",
                 "machine 'm': 'hosts' lists the hosts of 3 nodes, and there "
                 "are 4 (nodes)");
  expect_refused("hosts=[0, 0, 2, 2]", "names host 2, but no node of host 1; number hosts from 0");
  expect_refused("hosts=[0, 0, 1000000000, 1]", "names host 1000000000, but no node of host 2");
  expect_refused("hosts=[1, 1, 2, 2]", "but no node of host 0");
  expect_refused("hosts=[0, 0, 0, 1]", "puts 3 nodes on host 0 and 1 on host 1; all hosts must");
  EXPECT_NE(text.refusal({"hosts=[0, 0, 1, 1]", "nodes_per_host=4"})
                .find("'hosts' puts 2 nodes on each host, and 'nodes_per_host' is 4; leave out"),
            std::string::npos);
  EXPECT_NE(text.refusal({"hosts=round", "nodes_per_host=3"})
                .find("4 nodes do not fill hosts with 3 each (nodes_per_host)"),
            std::string::npos);
}

TEST(MachineDescription, SaysWhoSharesANetworkInterface) {
  const MachineText text("heddle_simulated_machine: 1\nname: m\nnodes: 4\nnodes_per_host: 2\n");
  EXPECT_EQ(text.read().machine.interface_count(), 4);
  EXPECT_EQ(text.read({"interface=node"}).machine.interface_of(NodeId{3}), 3);
  const replay::SimulatedMachine shared = text.read({"interface=host"}).machine;
  EXPECT_EQ(shared.interface_count(), 2);
  EXPECT_EQ(shared.interface_of(NodeId{3}), 1);
  EXPECT_EQ(hosts_text(shared), "2 with 2 nodes each; one network interface each");
  EXPECT_EQ(hosts_text(text.read({"interface=host", "hosts=round"}).machine),
            "2 with 2 nodes each, dealt round; one network interface each");
  const std::string why = text.refusal({"interface=card"});
  EXPECT_NE(why.find("'interface' must be 'node' or 'host'"), std::string::npos) << why;
  EXPECT_NE(why.find("found 'card'"), std::string::npos) << why;
  replay::SimulatedMachine now = text.read().machine;
  take_hosts({{"interface", interface_json(shared)}}, now);
  EXPECT_EQ(now.interface_owner, replay::InterfaceOwner::host);
}

TEST(MachineDescription, HostsAreInReportsAsTheyWere) {
  const MachineText text("heddle_simulated_machine: 1\nnodes: 4\nnodes_per_host: 2\n");
  for (const char* hosts : {"hosts=consecutive", "hosts=round", "hosts=[1, 0, 0, 1]"}) {
    const replay::SimulatedMachine was = text.read({hosts}).machine;
    replay::SimulatedMachine now = text.read().machine;
    take_hosts({{"hosts", hosts_json(was)}}, now);
    EXPECT_EQ(hosts_of(now), hosts_of(was)) << hosts;
    EXPECT_EQ(hosts_json(now), hosts_json(was));
  }
  replay::SimulatedMachine of_run = text.read().machine;
  take_hosts(nlohmann::json::object(), of_run);
  EXPECT_EQ(of_run.host_order, replay::HostOrder::consecutive);
}

TEST(MachineDescription, HostsOfARunAreThoseOfTheirNames) {
  const MachineText text("heddle_simulated_machine: 1\nnodes: 4\nnodes_per_host: 2\n");
  const auto named = [&](const std::vector<std::string>& names) {
    std::map<NodeId, std::string> by_node;
    for (const std::string& name : names) {
      by_node[NodeId{static_cast<std::int32_t>(by_node.size())}] = name;
    }
    replay::SimulatedMachine machine = text.read().machine;
    take_hosts(by_node, machine);
    return machine;
  };
  using replay::HostOrder;
  EXPECT_EQ(named({"b", "b", "a", "a"}).host_order, HostOrder::consecutive);
  EXPECT_EQ(named({"b", "a", "b", "a"}).host_order, HostOrder::round);
  const replay::SimulatedMachine listed = named({"b", "a", "a", "b"});
  EXPECT_EQ(listed.host_order, HostOrder::listed);
  EXPECT_EQ(hosts_of(listed), (std::vector<std::int32_t>{0, 1, 1, 0}));
  // Not what nodes_per_host says, or unknown: as before.
  EXPECT_EQ(named({"b", "a", "a", "a"}).host_order, HostOrder::consecutive);
  EXPECT_EQ(named({"a", "a", "a", "a"}).host_order, HostOrder::consecutive);
  EXPECT_EQ(named({"d", "c", "b", "a"}).host_order, HostOrder::consecutive);
  EXPECT_EQ(named({"b", "a", "b"}).host_order, HostOrder::consecutive);
}

TEST(MachineDescription, OfAnotherFileAsksForItsVersionAlone) {
  const std::string why = MachineText("problem: {n: 3}\nlayout: {tile: 3}\n").refusal();
  EXPECT_NE(why.find("the key 'heddle_simulated_machine' is missing"), std::string::npos) << why;
  EXPECT_EQ(why.find("problem"), std::string::npos) << why;
}

}  // namespace
}  // namespace heddle
