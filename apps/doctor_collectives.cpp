#include "apps/doctor_collectives.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/process_memory.hpp"
#include "node-runtime/collectives/board/board.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/transport/p2p/mpi/host_region.hpp"
#include "node-runtime/transport/probe/pair_groups.hpp"

namespace heddle {
namespace {

using collectives::Level;
using collectives::LevelGroup;
using collectives::Rank;
using nlohmann::json;
using p2p::HostRegion;

constexpr const char* injected = "injected fault: refused";

std::string text_of(Level level) {
  switch (level) {
    case Level::gpu:
      return "gpu";
    case Level::socket:
      return "socket";
    case Level::host:
      return "host";
    case Level::network:
      break;
  }
  return "network";
}

bool is_here(const Communicator& communicator, int node) {
  return communicator.local_processes()[static_cast<std::size_t>(node)] != 0;
}

int first_here(const Communicator& communicator) {
  int node = 0;
  while (!is_here(communicator, node)) ++node;
  return node;
}

/// As groups make their boards: the first node's memory is mapped by the others of its host.
std::string try_board(const Communicator& communicator, bool refuses) {
  std::optional<HostRegion> memory;
  HostRegion::Name name;
  std::string why;
  const int first = first_here(communicator);
  const auto attempt = [&](const auto& work) {
    try {
      if (refuses) throw Error(ErrorCode::communication, injected);
      work();
    } catch (const Error& error) {
      why = fmt::format("node {}: {}", communicator.rank(), error.what());
    }
  };
  if (communicator.rank() == first) {
    attempt([&] {
      memory.emplace(0, collectives::Board::bytes_for(communicator.local_size()));
      name = memory->name();
    });
  }
  using Words = std::array<std::uint64_t, sizeof(HostRegion::Name) / sizeof(std::uint64_t)>;
  const Words own = std::bit_cast<Words>(name);
  const std::vector<std::uint64_t> all = communicator.all_gather(own);
  if (communicator.rank() != first) {
    Words words{};
    std::copy_n(all.begin() + first * static_cast<std::ptrdiff_t>(words.size()), words.size(),
                words.begin());
    name = std::bit_cast<HostRegion::Name>(words);
    if (name.fd >= 0) attempt([&] { memory.emplace(name); });
  }
  static_cast<void>(communicator.all_gather(0));  // until all have tried, the memory is there
  return why;
}

std::string try_reading(const Communicator& communicator, bool refuses) {
  constexpr std::uint64_t probe = 0x6865'6464'6c65'3f3f;
  const std::uint64_t probed = probe;
  const std::vector<std::uint64_t> addresses =
      communicator.all_gather(std::bit_cast<std::uint64_t>(&probed));
  std::string why;
  for (int node = 0; node < communicator.size() && why.empty(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    if (node == communicator.rank() || !is_here(communicator, node)) continue;
    std::uint64_t value = 0;
    const ssize_t count = read_process(communicator.local_processes()[n], addresses[n],
                                       std::as_writable_bytes(std::span(&value, 1)));
    if (count == sizeof value && value == probe && !refuses) continue;
    why =
        fmt::format("node {}: process_vm_readv of node {}'s memory: {}", communicator.rank(), node,
                    refuses     ? std::string(injected)
                    : count < 0 ? std::generic_category().message(errno)
                                : std::string("it is another process's"));
  }
  static_cast<void>(communicator.all_gather(0));  // until all have tried, the memory is there
  return why;
}

// ---- levels ----------------------------------------------------------------------------------

std::vector<CollectiveSheet::Group> groups_of(std::span<const NodeSheet> nodes) {
  std::vector<std::string> hosts;
  std::vector<NodePlace> places;
  for (const NodeSheet& node : nodes) {
    hosts.push_back(node.host);
    places.push_back(node.place);
  }
  const collectives::Levels levels(places_of_nodes(places, hosts));
  std::vector<CollectiveSheet::Group> found;
  std::set<std::pair<Level, Rank>> seen;
  // The outer levels behind the inner ones.
  for (const Level level : {Level::gpu, Level::socket, Level::host, Level::network}) {
    for (std::int32_t r = 0; r < levels.size(); ++r) {
      for (const LevelGroup& group : levels.groups_of(Rank{r})) {
        if (group.level != level || !seen.emplace(level, group.leader).second) continue;
        CollectiveSheet::Group& row = found.emplace_back();
        row.level = text_of(level);
        row.leader = group.leader.value();
        if (level != Level::network) row.host = hosts[static_cast<std::size_t>(row.leader)];
        for (const Rank member : group.members) row.nodes.push_back(member.value());
        std::ranges::sort(row.nodes);
      }
    }
  }
  return found;
}

// ---- ways ------------------------------------------------------------------------------------

/// Why all nodes are not on one host; empty: they are.
std::string hosts_apart(std::span<const NodeSheet> nodes) {
  std::set<std::string> hosts;
  for (const NodeSheet& node : nodes) hosts.insert(node.host);
  if (hosts.size() == 1) return {};
  return fmt::format("the nodes are on {} hosts; groups within one may have it", hosts.size());
}

/// Why devices do not read and write the memory of all nodes' devices.
std::string devices_apart(std::span<const NodeSheet> nodes, std::span<const PairReport> pairs) {
  for (const NodeSheet& node : nodes) {
    if (node.devices.empty()) return fmt::format("node {} has no device", node.node);
  }
  if (std::string apart = hosts_apart(nodes); !apart.empty()) return apart;
  for (const PairReport& pair : pairs) {
    if (pair.first.is_host() || pair.second.is_host() || pair.nearness != Nearness::host) continue;
    for (const Attempt& attempt : pair.attempts) {
      if (attempt.way != Way::mapped || attempt.works) continue;
      return fmt::format("{} and {}: {}", to_string(pair.first), to_string(pair.second),
                         attempt.reason);
    }
  }
  return {};
}

}  // namespace

HostMemory try_host_memory(const Communicator& communicator, const HostMemoryFaults& faults) {
  if (communicator.size() == 1) return {};
  HostMemory memory;
  memory.board = try_board(communicator, faults.refuse_board);
  memory.reading = try_reading(communicator, faults.refuse_reading);
  return memory;
}

json to_json(const HostMemory& memory) {
  return {{"board", memory.board}, {"reading", memory.reading}};
}

HostMemory host_memory_from_json(const json& from) {
  return {from.at("board").get<std::string>(), from.at("reading").get<std::string>()};
}

CollectiveSheet collective_sheet(std::span<const NodeSheet> nodes,
                                 std::span<const HostMemory> memories,
                                 std::span<const PairReport> pairs) {
  if (nodes.size() < 2) return {};
  const auto first_reason = [&](std::string HostMemory::*what) {
    const auto found = std::ranges::find_if(
        memories, [&](const HostMemory& memory) { return !(memory.*what).empty(); });
    return found == memories.end() ? std::string() : (*found).*what;
  };
  std::string board = hosts_apart(nodes);
  if (board.empty()) board = first_reason(&HostMemory::board);
  return {groups_of(nodes),
          {{"board", board},
           {"reading", first_reason(&HostMemory::reading)},
           {"devices", devices_apart(nodes, pairs)}}};
}

json to_json(const CollectiveSheet& sheet) {
  json groups = json::array();
  for (const CollectiveSheet::Group& group : sheet.groups) {
    groups.push_back({{"level", group.level},
                      {"host", group.host.empty() ? json() : json(group.host)},
                      {"nodes", group.nodes},
                      {"leader", group.leader}});
  }
  json ways = json::array();
  for (const CollectiveSheet::Way& way : sheet.ways) {
    ways.push_back({{"way", way.name}, {"works", way.reason.empty()}, {"reason", way.reason}});
  }
  return {{"groups", std::move(groups)}, {"ways", std::move(ways)}};
}

std::string collectives_table(const CollectiveSheet& sheet) {
  if (sheet.groups.empty()) return {};
  std::string out = "\n  collectives of all nodes\n";
  const auto row = [&](const std::string& label, const std::string& text) {
    out += fmt::format("    {:<15} {}\n", label, text);
  };
  for (const CollectiveSheet::Group& group : sheet.groups) {
    row(group.level,
        fmt::format("nodes {}{}; node {} leads", ranges(group.nodes),
                    group.host.empty() ? "" : fmt::format(" of {}", group.host), group.leader));
  }
  const auto meaning = [](const std::string& way) {
    if (way == "board") return "small operations by memory that the nodes of a host share";
    if (way == "reading") return "larger ones by reading the memory of others on the host";
    return "operations in device memory done by the devices themselves";
  };
  for (const CollectiveSheet::Way& way : sheet.ways) {
    row(way.name, way.reason.empty() ? meaning(way.name) : fmt::format("no: {}", way.reason));
  }
  return out;
}

}  // namespace heddle
