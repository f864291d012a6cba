#include "replay/collectives/collective_machine.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "replay/simulation/mixed.hpp"

namespace heddle::replay {

using collectives::CollectiveRates;
using collectives::Level;
using collectives::RankPlace;

std::string_view name_of(Reach reach) {
  constexpr std::string_view names[reaches] = {"gpu", "switch", "socket", "host", "network"};
  return names[static_cast<std::size_t>(reach)];
}

RankPlace CollectiveMachine::place(std::int32_t slot) const {
  HEDDLE_CHECK(0 <= slot && slot < slots(), "slot {} of {}", slot, slots());
  RankPlace place;
  place.host = slot / ranks_per_host();
  const std::int32_t on_host = slot % ranks_per_host();
  place.socket = on_host / ranks_per_socket();
  if (gpus == 0) return place;
  const std::int32_t gpu = on_host / ranks;
  place.gpu = gpu;
  place.pci_switch = gpu / gpus;
  return place;
}

Reach CollectiveMachine::reach(const RankPlace& a, const RankPlace& b) {
  if (a.host != b.host) return Reach::network;
  if (a.socket != b.socket) return Reach::host;
  if (a.gpu == RankPlace::no_gpu || a.pci_switch != b.pci_switch) return Reach::socket;
  return a.gpu == b.gpu ? Reach::gpu : Reach::pci_switch;
}

CollectiveRates CollectiveMachine::rates() const {
  const auto level = [this](Reach reach) {
    const Way& one = way(reach);
    const double each_s = one.latency_s + 2 * message_s;
    return collectives::LevelRates{each_s, one.bytes_per_s, eager_bytes, each_s + rendezvous_s,
                                   one.bytes_per_s};
  };
  const bool has_switches = gpus > 0 && switches == 1;
  const Reach farthest = sockets > 1    ? Reach::host
                         : has_switches ? Reach::pci_switch
                                        : Reach::socket;
  CollectiveRates rates;
  rates.levels.at(static_cast<std::size_t>(Level::gpu)) = level(Reach::gpu);
  rates.levels.at(static_cast<std::size_t>(Level::socket)) = level(Reach::socket);
  rates.levels.at(static_cast<std::size_t>(Level::host)) = level(farthest);
  rates.levels.at(static_cast<std::size_t>(Level::network)) = level(Reach::network);
  rates.reduced_bytes_per_s = reduced_bytes_per_s;
  return rates;
}

bool CollectiveMachine::is_valid() const {
  const bool has_counts = hosts > 0 && sockets > 0 && switches > 0 && gpus >= 0 && ranks > 0;
  return has_counts && slots() <= ranks_max && 0 <= card_socket && card_socket < sockets;
}

std::vector<std::int32_t> slots_of_ranks(const CollectiveMachine& machine, std::int32_t ranks,
                                         RankMap map, std::uint64_t seed) {
  require(0 < ranks && ranks <= machine.slots(),
          "machine '{}' has {} hosts with {} ranks each: {} ranks do not fit", machine.name,
          machine.hosts, machine.ranks_per_host(), ranks);
  std::vector<std::int32_t> slots(static_cast<std::size_t>(ranks));
  std::iota(slots.begin(), slots.end(), 0);
  if (map == RankMap::by_node) {
    const std::int32_t of_host = machine.ranks_per_host();
    std::ranges::sort(slots, {}, [of_host](std::int32_t slot) {
      return std::pair(slot % of_host, slot / of_host);
    });
  } else if (map == RankMap::random) {
    // By hand: what std::shuffle makes of a seed is the standard library's business.
    for (std::size_t i = slots.size() - 1; i > 0; --i) {
      std::swap(slots[i], slots[mixed(seed, NodeId{0}, static_cast<std::int64_t>(i)) % (i + 1)]);
    }
  }
  return slots;
}

MachineLinks::MachineLinks(const CollectiveMachine& machine, LinkShares& shares)
    : machine_(machine), shares_(shares) {
  const std::int32_t switches = machine.sockets * machine.switches;
  const std::int32_t gpus = switches * machine.gpus;
  const CollectiveMachine::Links& rates = machine.links;
  add(Kind::gpu_memory, Direction::both, gpus, rates.gpu_memory);
  add(Kind::memory, Direction::both, machine.sockets, rates.memory);
  for (const Direction way : {Direction::out, Direction::in}) {
    add(Kind::gpu_lane, way, gpus, rates.gpu_lane);
    add(Kind::switch_lane, way, switches, rates.switch_lane);
    add(Kind::socket_link, way, machine.sockets, rates.socket_link);
    add(Kind::card, way, 1, rates.card);
  }
}

void MachineLinks::add(Kind kind, Direction direction, std::int32_t of_host, double bytes_per_s) {
  const Row row{kind, direction, bytes_per_s > 0 ? of_host : 0, LinkId{shares_.links()}};
  for (std::int32_t k = 0; k < row.of_host * machine_.hosts; ++k) {
    static_cast<void>(shares_.add_link(bytes_per_s));
  }
  rows_.push_back(row);
}

std::span<const LinkId> MachineLinks::path(const RankPlace& from, const RankPlace& to) {
  path_.clear();
  if (from.host != to.host) {
    leave(from);
    pass_sockets(from.host, from.socket, machine_.card_socket);
    pass(Kind::card, Direction::out, from.host, 0);
    pass(Kind::card, Direction::in, to.host, 0);
    pass_sockets(to.host, machine_.card_socket, to.socket);
    enter(to);
    return path_;
  }
  if (from.gpu != RankPlace::no_gpu && from.gpu == to.gpu) {
    pass(Kind::gpu_memory, Direction::both, from.host, from.gpu);
  } else if (from.gpu == RankPlace::no_gpu) {
    pass_sockets(from.host, from.socket, to.socket);
    pass(Kind::memory, Direction::both, to.host, to.socket);
  } else if (from.pci_switch == to.pci_switch) {
    pass(Kind::gpu_lane, Direction::out, from.host, from.gpu);
    pass(Kind::gpu_lane, Direction::in, to.host, to.gpu);
  } else {
    leave(from);
    pass_sockets(from.host, from.socket, to.socket);
    enter(to);
  }
  return path_;
}

/// From a GPU's memory to its socket.
void MachineLinks::leave(const RankPlace& from) {
  if (from.gpu == RankPlace::no_gpu) return;
  pass(Kind::gpu_lane, Direction::out, from.host, from.gpu);
  pass(Kind::switch_lane, Direction::out, from.host, from.pci_switch);
}

void MachineLinks::enter(const RankPlace& to) {
  if (to.gpu == RankPlace::no_gpu) return;
  pass(Kind::switch_lane, Direction::in, to.host, to.pci_switch);
  pass(Kind::gpu_lane, Direction::in, to.host, to.gpu);
}

void MachineLinks::pass_sockets(std::int32_t host, std::int32_t from, std::int32_t to) {
  if (from == to) return;
  pass(Kind::socket_link, Direction::out, host, from);
  pass(Kind::socket_link, Direction::in, host, to);
}

void MachineLinks::pass(Kind kind, Direction direction, std::int32_t host, std::int64_t index) {
  const auto row = std::ranges::find_if(
      rows_, [&](const Row& one) { return one.kind == kind && one.direction == direction; });
  if (row->of_host == 0) return;
  path_.push_back(row->first + host * row->of_host + static_cast<std::int32_t>(index));
}

std::string MachineLinks::describe(LinkId link) const {
  constexpr std::string_view kinds[] = {"memory of GPU",  "lane of GPU",      "lane of switch",
                                        "link of socket", "memory of socket", "card"};
  constexpr std::string_view directions[] = {", out", ", in", ""};
  for (const Row& row : rows_) {
    const std::int32_t number = link - row.first;
    if (number < 0 || number >= row.of_host * machine_.hosts) continue;
    std::string text(kinds[static_cast<std::size_t>(row.kind)]);
    if (row.kind != Kind::card) text += fmt::format(" {}", number % row.of_host);
    text += fmt::format(" of host {}{}", number / row.of_host,
                        directions[static_cast<std::size_t>(row.direction)]);
    return text;
  }
  HEDDLE_CHECK(false, "a link of number {}", link.value());
  return {};
}

}  // namespace heddle::replay
