#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/transport/probe/pair_report.hpp"

namespace heddle {

/// A way that some pairs do not have, and why.
struct RefusedWay {
  Way way = Way::host;
  std::string reason;          ///< of the first of these pairs
  std::size_t like_count = 0;  ///< pairs whose reason has the same words, this one included
  std::size_t different = 0;   ///< reasons among them that differ in numbers
};

/// Smallest, middle and largest value over the pairs of a group.
struct Spread {
  double min = 0;
  double median = 0;
  double max = 0;
};

/// Pairs of places to which the same applies: as near, of the same kind, with the same best way,
/// and without the better ones for the same reasons.
struct PairGroup {
  Nearness nearness = Nearness::node;
  std::int32_t hosts = 0;   ///< ends of each pair that are hosts: 0, 1 or 2
  std::optional<Way> best;  ///< unset: there is none
  Spread latency_us;
  Spread rate;
  std::vector<RefusedWay> refused;  ///< the better ways, best first
  std::vector<const PairReport*> pairs;
  std::size_t kind_count = 0;  ///< pairs as near and of this kind in all groups
};

/// Groups of `pairs`, which they point into: the near before the far, then by kind, then by size.
[[nodiscard]] std::vector<PairGroup> group_pairs(std::span<const PairReport> pairs);

/// "0..2, 5" of rising numbers.
[[nodiscard]] std::string ranges(const std::vector<std::int32_t>& numbers);

/// `text` without what tells like cases apart: numbers, in any base, become '#'.
[[nodiscard]] std::string without_numbers(const std::string& text);

/// The places of a group: "devices 0..2 of nodes 0..3" where the group is all there is, else its
/// two sides as far as they can be told apart: "device 0 of node 1 - devices 0..2 of nodes
/// 0, 2..3".
[[nodiscard]] std::string places_of(const PairGroup& group);

}  // namespace heddle
