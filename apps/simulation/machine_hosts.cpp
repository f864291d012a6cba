#include "apps/simulation/machine_hosts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {
namespace {

using replay::HostOrder;
using replay::InterfaceOwner;
using replay::SimulatedMachine;

constexpr const char* consecutive_word = "consecutive";
constexpr const char* round_word = "round";

constexpr const char* node_word = "node";
constexpr const char* host_word = "host";

std::optional<HostOrder> order_of(const std::string& word) {
  if (word == consecutive_word) return HostOrder::consecutive;
  if (word == round_word) return HostOrder::round;
  return std::nullopt;
}

std::optional<InterfaceOwner> owner_of(const std::string& word) {
  if (word == node_word) return InterfaceOwner::node;
  if (word == host_word) return InterfaceOwner::host;
  return std::nullopt;
}

[[noreturn]] void refuse(const SimulatedMachine& machine, const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("machine '{}': {}", machine.name, why));
}

/// The number of nodes of each host that a list names.
std::int32_t nodes_of_listed(const SimulatedMachine& machine) {
  if (std::ssize(machine.hosts) != machine.nodes) {
    refuse(machine, fmt::format("'hosts' lists the hosts of {} nodes, and there are {} (nodes)",
                                machine.hosts.size(), machine.nodes));
  }
  const std::int32_t last = std::ranges::max(machine.hosts);
  // One more than there are nodes leaves out one of them.
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(std::min(last, machine.nodes)) + 1);
  for (const std::int32_t host : machine.hosts) {
    ++sizes[static_cast<std::size_t>(std::min(host, machine.nodes))];
  }
  const auto host_with = [&](const auto& is_meant) {
    return std::ranges::find_if(sizes, is_meant) - sizes.begin();
  };
  const auto empty = host_with([](std::int32_t size) { return size == 0; });
  if (empty < std::ssize(sizes)) {
    refuse(machine, fmt::format("'hosts' names host {}, but no node of host {}; number hosts from "
                                "0 without gaps",
                                last, empty));
  }
  const std::int32_t first = sizes.front();
  const auto other = host_with([&](std::int32_t size) { return size != first; });
  if (other < std::ssize(sizes)) {
    refuse(machine, fmt::format("'hosts' puts {} nodes on host 0 and {} on host {}; all hosts must "
                                "have as many",
                                first, sizes[static_cast<std::size_t>(other)], other));
  }
  return first;
}

}  // namespace

void read_hosts(const YamlReader& yaml, const YAML::Node& machine, SimulatedMachine& to) {
  const YAML::Node hosts = machine["hosts"];
  if (!hosts) return;
  constexpr const char* expected =
      "'consecutive', 'round', or a list with the number of each node's host";
  if (!hosts.IsSequence()) {
    const auto word = yaml.scalar<std::string>(machine, "hosts", expected);
    const auto order = order_of(word);
    if (!order) {
      yaml.fail(hosts.Mark(),
                fmt::format("'hosts' must be {}; found '{}'", expected, printable(word)));
    }
    to.host_order = *order;
    to.hosts.clear();
    return;
  }
  to.host_order = HostOrder::listed;
  to.hosts.clear();
  for (const YAML::Node& host : hosts) {
    std::int32_t number = -1;
    const bool is_number =
        host.IsScalar() && YAML::convert<std::int32_t>::decode(host, number) && number >= 0;
    if (!is_number) {
      yaml.fail(host.Mark(),
                fmt::format("'hosts' must list whole numbers of hosts, from 0 on{}",
                            host.IsScalar() ? fmt::format("; found '{}'", printable(host.Scalar()))
                                            : std::string()));
    }
    to.hosts.push_back(number);
  }
}

void read_interface(const YamlReader& yaml, const YAML::Node& machine, SimulatedMachine& to) {
  const YAML::Node interface = machine["interface"];
  if (!interface) return;
  constexpr const char* expected = "'node' or 'host': whose nodes share a network interface";
  const auto word = yaml.scalar<std::string>(machine, "interface", expected);
  const auto owner = owner_of(word);
  if (!owner) {
    yaml.fail(interface.Mark(),
              fmt::format("'interface' must be {}; found '{}'", expected, printable(word)));
  }
  to.interface_owner = *owner;
}

void settle_hosts(SimulatedMachine& machine, bool says_nodes_per_host) {
  if (machine.host_order != HostOrder::listed) {
    if (machine.nodes % machine.nodes_per_host == 0) return;
    refuse(machine, fmt::format("{} nodes do not fill hosts with {} each (nodes_per_host)",
                                machine.nodes, machine.nodes_per_host));
  }
  const std::int32_t listed = nodes_of_listed(machine);
  if (says_nodes_per_host && machine.nodes_per_host != listed) {
    refuse(machine, fmt::format("'hosts' puts {} nodes on each host, and 'nodes_per_host' is {}; "
                                "leave out one of the two",
                                listed, machine.nodes_per_host));
  }
  machine.nodes_per_host = listed;
}

std::string hosts_text(const SimulatedMachine& machine) {
  const bool shares = machine.interface_owner == InterfaceOwner::host;
  if (machine.host_order == HostOrder::consecutive && !shares) return {};
  std::string text = fmt::format("{} with {} node{} each", machine.host_count(),
                                 machine.nodes_per_host, machine.nodes_per_host == 1 ? "" : "s");
  if (machine.host_order == HostOrder::round) text += ", dealt round";
  if (machine.host_order == HostOrder::listed) text += ", as listed";
  if (shares) text += "; one network interface each";
  return text;
}

nlohmann::json hosts_json(const SimulatedMachine& machine) {
  switch (machine.host_order) {
    case HostOrder::consecutive:
      break;
    case HostOrder::round:
      return round_word;
    case HostOrder::listed:
      return machine.hosts;
  }
  return consecutive_word;
}

nlohmann::json interface_json(const SimulatedMachine& machine) {
  return machine.interface_owner == InterfaceOwner::host ? host_word : node_word;
}

void take_hosts(const nlohmann::json& report, SimulatedMachine& to) {
  if (const auto interface = report.find("interface"); interface != report.end()) {
    to.interface_owner = owner_of(interface->get<std::string>()).value_or(InterfaceOwner::node);
  }
  const auto hosts = report.find("hosts");
  if (hosts == report.end()) return;
  if (hosts->is_array()) {
    to.host_order = HostOrder::listed;
    to.hosts = hosts->get<std::vector<std::int32_t>>();
    return settle_hosts(to, true);
  }
  to.host_order = order_of(hosts->get<std::string>()).value_or(HostOrder::consecutive);
}

void take_hosts(const std::map<NodeId, std::string>& names, SimulatedMachine& to) {
  if (std::ssize(names) != to.nodes) return;
  std::map<std::string, std::int32_t> numbers;  // of hosts, by their first nodes
  std::vector<std::int32_t> hosts;
  for (const auto& [node, name] : names) {
    const auto next = static_cast<std::int32_t>(numbers.size());
    hosts.push_back(numbers.try_emplace(name, next).first->second);
  }
  const auto has_as_many = [&](const auto& host) {
    return std::ranges::count(hosts, host.second) == to.nodes_per_host;
  };
  if (!std::ranges::all_of(numbers, has_as_many)) return;
  SimulatedMachine named = to;
  for (const HostOrder order : {HostOrder::consecutive, HostOrder::round}) {
    named.host_order = order;
    std::vector<std::int32_t> as_ordered;
    for (const auto& [node, name] : names) as_ordered.push_back(named.host_of(node));
    if (as_ordered != hosts) continue;
    to.host_order = order;
    return;
  }
  to.host_order = HostOrder::listed;
  to.hosts = std::move(hosts);
}

}  // namespace heddle
