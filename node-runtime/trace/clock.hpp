#pragma once

#include <cstdint>
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

/// The time of node 0's clock when this node's showed `local_ns`. `offsets` are ordered by time;
/// between two of them the offset is interpolated, before the first and after the last it is
/// theirs; none at all means that the clocks agree.
[[nodiscard]] std::int64_t to_node0_ns(std::span<const ClockOffset> offsets, std::int64_t local_ns);

}  // namespace heddle::trace
