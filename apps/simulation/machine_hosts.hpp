#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/index.hpp"
#include "node-runtime/machine/yaml_reader.hpp"
#include "replay/simulation/simulated_machine.hpp"

/// Which nodes of a simulated machine are on which host, and what they share there, in files,
/// tables and reports.
namespace heddle {

/// Reads the key `hosts` of a machine that has it: `consecutive`, `round`, or a list with the host
/// of each node. Throws Error(usage) that names the place.
void read_hosts(const YamlReader& yaml, const YAML::Node& machine, replay::SimulatedMachine& to);

/// Reads the key `interface` of a machine that has it: `node` or `host`.
void read_interface(const YamlReader& yaml, const YAML::Node& machine,
                    replay::SimulatedMachine& to);

/// Takes the number of nodes of a host from a list. Throws Error(usage) unless the machine's nodes
/// fill hosts that are numbered from 0 on and have as many nodes each. `says_nodes_per_host`: the
/// machine's description has that key, which a list must not contradict.
void settle_hosts(replay::SimulatedMachine& machine, bool says_nodes_per_host);

/// "4 with 4 nodes each, dealt round; one network interface each"; empty where consecutive nodes
/// are on a host and each has an interface.
[[nodiscard]] std::string hosts_text(const replay::SimulatedMachine& machine);

/// The values of the keys `hosts` and `interface`, for a report.
[[nodiscard]] nlohmann::json hosts_json(const replay::SimulatedMachine& machine);
[[nodiscard]] nlohmann::json interface_json(const replay::SimulatedMachine& machine);
/// What a run's report says of hosts beside their number of nodes. That of a run of real nodes says
/// nothing, and each of them has an interface.
void take_hosts(const nlohmann::json& report, replay::SimulatedMachine& to);

/// What the hosts' names in a run's trace say. Nodes stay where they are unless the names are of
/// as many hosts, with nodes_per_host nodes each: containers of one host may have names of their
/// own.
void take_hosts(const std::map<NodeId, std::string>& names, replay::SimulatedMachine& to);

}  // namespace heddle
