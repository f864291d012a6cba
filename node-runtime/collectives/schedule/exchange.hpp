#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// Exchanges between neighbours: the steps of one round, and which way is the fastest (003 sections
/// 2.3 and 2.4). Pure, and the same on all ranks for the same arguments.
namespace heddle::collectives {

enum class ExchangeWay : std::uint8_t {
  neighbours,  ///< a message for each block, between ranks that have blocks for each other only
  aggregated,  ///< one message from host to host: leaders gather it, and scatter what has come
  alltoallv,   ///< a message from each rank to each other one, whether it has elements or not
  alltoall,    ///< likewise, all of them as long as the longest
};
inline constexpr std::size_t exchange_ways = 4;
[[nodiscard]] std::string_view name_of(ExchangeWay way);
/// "auto" gives none. Throws Error(usage) for another name.
[[nodiscard]] std::optional<ExchangeWay> exchange_way_of(std::string_view name);

/// When a rank makes its receives known: before it packs what it sends, so that nothing that comes
/// has to wait for that, or afterwards.
enum class Receives : std::uint8_t { early, late };
[[nodiscard]] Receives receives_of(std::string_view name);

/// What one rank has for another one, or for itself.
struct ExchangeBlock {
  std::int32_t number = 0;  ///< the same on all ranks; blocks of a pair count upwards
  Rank from;
  Rank to;
};

/// Whether a rank's own block has to be packed into a slot before it is sent, or unpacked from one.
struct ExchangeSides {
  std::function<bool(std::int32_t number)> is_packed;
  std::function<bool(std::int32_t number)> is_unpacked;
};

/// One round, with one fragment. `blocks`: at least those that begin or end at the rank, for
/// `aggregated` on its host; ascending by number. alltoallv and alltoall are given a block for each
/// pair.
///
/// A copy from the input to a slot packs a block, and one from a slot to the output unpacks it. A
/// rank has a block in one slot at most, and slots of a message between hosts are numbered one
/// behind the other, as are those of one that has several blocks.
[[nodiscard]] Schedule make_exchange(Rank rank, std::span<const ExchangeBlock> blocks,
                                     const Places& places, ExchangeWay way, Receives receives,
                                     const ExchangeSides& sides);

/// The rank that gathers and scatters for a host: its lowest one. O(ranks).
[[nodiscard]] std::vector<Rank> host_leaders(const Places& places);

/// A message that there is without an exchange's help: a part.
struct ExchangeLoad {
  Rank from;
  Rank to;
  double bytes = 0;
};

struct ExchangeChoice {
  ExchangeWay way = ExchangeWay::neighbours;
  double seconds = 0;  ///< predicted, of a round
  /// The ways that could have been taken: the fastest first.
  std::vector<CollectiveChoice::Candidate> considered;
};

/// The faster one of `neighbours` and `aggregated`, or the one that is wanted. A rank's messages
/// follow each other; sends and receives go on at the same time. O(loads + ranks).
[[nodiscard]] ExchangeChoice choose_exchange(std::span<const ExchangeLoad> loads,
                                             const Places& places, const CollectiveRates& rates,
                                             std::optional<ExchangeWay> wanted);

}  // namespace heddle::collectives
