#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/clock.hpp"

namespace heddle::trace {

/// The one clock of all traces.
using heddle::now_ns;

/// One comparison of this node's clock with node 0's: at `local_ns` of this node, node 0's clock
/// showed `local_ns + offset_ns`.
struct ClockOffset {
  std::int64_t local_ns = 0;
  std::int64_t offset_ns = 0;
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// What is known of this node's clock against node 0's from moments at which both took part in
/// something that nobody leaves before all have come.
class ClockBounds {
 public:
  /// One such: when node 0 came and left, by its clock, and when this node did, by its own.
  void add(std::int64_t first_came_ns, std::int64_t first_left_ns, std::int64_t came_ns,
           std::int64_t left_ns);
  /// In the middle of what is possible; wrong by half of the shortest such moment at most.
  [[nodiscard]] std::int64_t offset_ns() const;

 private:
  std::int64_t low_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t high_ = std::numeric_limits<std::int64_t>::max() / 2;
};

/// The time of node 0's clock when this node's showed `local_ns`. `offsets` are ordered by time;
/// between two of them the offset is interpolated, before the first and after the last it is
/// theirs; none at all means that the clocks agree.
[[nodiscard]] std::int64_t to_node0_ns(std::span<const ClockOffset> offsets, std::int64_t local_ns);

}  // namespace heddle::trace
