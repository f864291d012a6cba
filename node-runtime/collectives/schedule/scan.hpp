#pragma once

#include <cstdint>

#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::collectives {

enum class Scan : std::uint8_t {
  inclusive,  ///< the values of ranks 0 to r
  exclusive,  ///< those of ranks before r; the output of rank 0 stays as it is
};

/// One rank's part in reducing the inputs of the first ranks to the output of each rank r, in the
/// Bracket over these alone: its left parts are blocks of ranks that begin at a multiple of their
/// size, a power of two, and so are common to all ranks behind them. In round k ranks that differ
/// in bit k exchange the values of their blocks of 2^k ranks. The message is one block. O(log
/// ranks).
[[nodiscard]] Schedule make_scan(Rank rank, std::int32_t ranks, Scan kind);

}  // namespace heddle::collectives
