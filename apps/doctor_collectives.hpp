#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/doctor_facts.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"

namespace heddle {

/// What a node can do with the memory of the others on its host.
struct HostMemory {
  std::string board;    ///< why it shares no memory with all of them; empty: it does
  std::string reading;  ///< why it does not read the memory of all of them; empty: it does
};

/// For tests: what this node's system seems to refuse.
struct HostMemoryFaults {
  bool refuse_board = false;
  bool refuse_reading = false;
};

/// Tries both. Collective.
[[nodiscard]] HostMemory try_host_memory(const Communicator& communicator,
                                         const HostMemoryFaults& faults);

[[nodiscard]] nlohmann::json to_json(const HostMemory& memory);
[[nodiscard]] HostMemory host_memory_from_json(const nlohmann::json& from);

/// How the group of all nodes does its operations.
struct CollectiveSheet {
  /// Nodes that exchange among themselves at one level, and the one that goes on to the next.
  struct Group {
    std::string level;  ///< "host", "network"
    std::string host;   ///< of the first level
    std::vector<std::int32_t> nodes;
    std::int32_t leader = 0;
  };
  /// What operations go by, where it is there.
  struct Way {
    std::string name;    ///< "board", "reading", "devices"
    std::string reason;  ///< why it is missing; empty: it is there
  };
  std::vector<Group> groups;  ///< none for a single node
  std::vector<Way> ways;      ///< likewise
};

/// From what all nodes have found; `memories` by node.
[[nodiscard]] CollectiveSheet collective_sheet(std::span<const NodeSheet> nodes,
                                               std::span<const HostMemory> memories,
                                               std::span<const PairReport> pairs);

[[nodiscard]] nlohmann::json to_json(const CollectiveSheet& sheet);
/// For a terminal.
[[nodiscard]] std::string collectives_table(const CollectiveSheet& sheet);

}  // namespace heddle
