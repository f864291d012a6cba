#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/clock.hpp"

namespace heddle::trace {

/// The clock of all traces.
using heddle::now_ns;

/// A comparison of clocks: at `local_ns` on this node, node 0's clock showed `local_ns +
/// offset_ns`.
struct ClockOffset {
  std::int64_t local_ns = 0;
  std::int64_t offset_ns = 0;
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// Bounds on the offset between this node's clock and node 0's, from synchronisations that no node
/// leaves before all have entered.
class ClockBounds {
 public:
  /// Adds a synchronisation: when node 0 entered and left, by its clock, and when this node did, by
  /// its own.
  void add(std::int64_t first_came_ns, std::int64_t first_left_ns, std::int64_t came_ns,
           std::int64_t left_ns);
  /// Midpoint of the possible offsets; its error is at most half the shortest synchronisation.
  [[nodiscard]] std::int64_t offset_ns() const;

 private:
  std::int64_t low_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t high_ = std::numeric_limits<std::int64_t>::max() / 2;
};

/// Node 0's time when this node's clock showed `local_ns`. `offsets` are ordered by time; they are
/// interpolated linearly and constant outside. No offsets: the clocks agree.
[[nodiscard]] std::int64_t to_node0_ns(std::span<const ClockOffset> offsets, std::int64_t local_ns);

}  // namespace heddle::trace
