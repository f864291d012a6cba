#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "replay/collectives/link_shares.hpp"

namespace heddle::replay {

/// What a message between two ranks passes at most.
enum class Reach : std::uint8_t {
  gpu,         ///< both work on one GPU
  pci_switch,  ///< GPUs of a switch
  socket,      ///< GPUs of a socket, or cores of one
  host,        ///< sockets of a host
  network,
};
inline constexpr std::size_t reaches = 5;
[[nodiscard]] std::string_view name_of(Reach reach);

/// A cluster of equal hosts on which collectives run in virtual time.
///
/// A host has sockets, a socket has PCI switches, a switch has GPUs, and a GPU has ranks. Without
/// GPUs a socket has ranks. All ranks are numbered in this order: their slots.
struct CollectiveMachine {
  /// The most that a machine has, or a group takes.
  static constexpr std::int32_t ranks_max = 10'000;

  std::string name;
  std::int32_t hosts = 1;
  std::int32_t sockets = 1;      ///< of a host
  std::int32_t switches = 1;     ///< of a socket
  std::int32_t gpus = 0;         ///< of a switch
  std::int32_t ranks = 1;        ///< of a GPU; without GPUs, of a socket
  std::int32_t card_socket = 0;  ///< to which the network interface is attached

  /// One message that has its links to itself.
  struct Way {
    double latency_s = 0;
    double bytes_per_s = 1e9;
  };
  std::array<Way, reaches> ways{};  ///< by Reach

  /// Rates of what messages share, bytes per second; 0: it limits nobody. Those with directions
  /// have this rate in each.
  struct Links {
    double gpu_memory = 0;   ///< of a GPU: copies between its ranks
    double gpu_lane = 0;     ///< between a GPU and its switch, in each direction
    double switch_lane = 0;  ///< between a switch and its socket, in each direction
    double socket_link = 0;  ///< of a socket to the others, in each direction
    double memory = 0;       ///< of a socket: copies between ranks on its cores
    double card = 0;         ///< of a host, in each direction
  };
  Links links;

  double message_s = 0;              ///< the rank's core, at each send and each receive
  std::int64_t eager_bytes = 0;      ///< longer messages wait until they are received
  double rendezvous_s = 0;           ///< and take so much more
  double step_s = 0;                 ///< start of a copy or reduction
  double reduced_bytes_per_s = 1e9;  ///< of each input beyond the first one
  double copied_bytes_per_s = 1e9;

  [[nodiscard]] std::int32_t ranks_per_socket() const {
    return gpus > 0 ? switches * gpus * ranks : ranks;
  }
  [[nodiscard]] std::int32_t ranks_per_host() const { return sockets * ranks_per_socket(); }
  [[nodiscard]] std::int64_t slots() const { return std::int64_t{hosts} * ranks_per_host(); }
  [[nodiscard]] collectives::RankPlace place(std::int32_t slot) const;

  [[nodiscard]] static Reach reach(const collectives::RankPlace& a,
                                   const collectives::RankPlace& b);
  [[nodiscard]] const Way& way(Reach reach) const {
    return ways.at(static_cast<std::size_t>(reach));
  }
  /// What choices are made by: the rates that a node would measure here. Within a host those of the
  /// farthest ranks.
  [[nodiscard]] collectives::CollectiveRates rates() const;
  /// All counts are positive, and there are at most ranks_max slots.
  [[nodiscard]] bool is_valid() const;
};

/// In which order a group's ranks are dealt to the first slots of a machine.
enum class RankMap : std::uint8_t {
  by_core,  ///< host by host
  by_node,  ///< in turns over the hosts
  random,
};
/// The slot of each rank. `seed`: of a random map. Throws Error(usage) for more ranks than slots.
[[nodiscard]] std::vector<std::int32_t> slots_of_ranks(const CollectiveMachine& machine,
                                                       std::int32_t ranks, RankMap map,
                                                       std::uint64_t seed);

/// The links of a machine's hosts, and which of them a message passes.
class MachineLinks {
 public:
  /// Adds the links to `shares`, which is empty and outlives it.
  MachineLinks(const CollectiveMachine& machine, LinkShares& shares);

  /// From the memory of one rank to that of another; links that limit nobody are left out. Valid
  /// until the next call.
  [[nodiscard]] std::span<const LinkId> path(const collectives::RankPlace& from,
                                             const collectives::RankPlace& to);
  /// "card of host 3, out".
  [[nodiscard]] std::string describe(LinkId link) const;

 private:
  enum class Kind : std::uint8_t { gpu_memory, gpu_lane, switch_lane, socket_link, memory, card };
  enum class Direction : std::uint8_t { out, in, both };
  struct Row {
    Kind kind;
    Direction direction;
    std::int32_t of_host;  ///< links of that row on each host; 0: they limit nobody
    LinkId first;          ///< of host 0
  };
  void add(Kind kind, Direction direction, std::int32_t of_host, double bytes_per_s);
  void pass(Kind kind, Direction direction, std::int32_t host, std::int64_t index);
  void leave(const collectives::RankPlace& from);
  void enter(const collectives::RankPlace& to);
  void pass_sockets(std::int32_t host, std::int32_t from, std::int32_t to);

  const CollectiveMachine& machine_;
  LinkShares& shares_;
  std::vector<Row> rows_;
  std::vector<LinkId> path_;
};

}  // namespace heddle::replay
