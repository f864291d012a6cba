#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// A block of one rank's memory.
struct DirectPlace {
  Rank rank{0};
  bool is_output = false;
  std::int32_t block = 0;  ///< of that side; 0 where it has one alone
  friend auto operator<=>(const DirectPlace&, const DirectPlace&) = default;
};

/// `to` := the values of `from` in the Bracket over their number; one: a copy.
struct DirectJob {
  std::vector<DirectPlace> from;
  std::vector<DirectPlace> to;
};

/// Ranks that one kernel reads from and writes to.
constexpr std::int32_t direct_ranks_max = 16;

/// What an operation is where one device reaches the memory of all ranks (002 section 4: its
/// kernels read all inputs and write all outputs): jobs that write different memory, so that they
/// may be done in any order, cut at any element. An output is one of a job's own inputs at most.
/// Empty for a barrier. Pure.
[[nodiscard]] std::vector<DirectJob> direct_jobs(CollectiveKind kind, std::int32_t ranks, Rank root,
                                                 bool is_in_place);

}  // namespace heddle::collectives
