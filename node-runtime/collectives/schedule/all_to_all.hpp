#pragma once

#include <cstdint>

#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::collectives {

/// How blocks for all come to all.
enum class AllToAll : std::uint8_t {
  pairwise,  ///< each rank sends to each other one, neighbours in place first
  leaders,   ///< what leaves a group goes by way of leaders, which exchange in pairs
  bruck,     ///< likewise, and they exchange in as many rounds as the logarithm of their number
};

/// The block that rank `from` has for rank `to`; numbers below ranks^2, which fits for at most
/// 46,340 ranks.
[[nodiscard]] std::int32_t all_to_all_block(Rank from, Rank to, std::int32_t ranks);

/// One rank's part in bringing block (from, to) of the input of each rank `from` to the output of
/// each rank `to`. All but `pairwise` need a slot for each block of others that passes by. Throws
/// Error(usage) for too many ranks. O(blocks that pass by).
[[nodiscard]] Schedule make_all_to_all(Rank rank, const Places& places, const Levels& levels,
                                       AllToAll way);

}  // namespace heddle::collectives
