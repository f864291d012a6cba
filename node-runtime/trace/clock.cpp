#include "node-runtime/trace/clock.hpp"

#include <algorithm>
#include <cmath>

namespace heddle::trace {

void ClockBounds::add(std::int64_t first_came_ns, std::int64_t first_left_ns, std::int64_t came_ns,
                      std::int64_t left_ns) {
  // Both entered before either left.
  low_ = std::max(low_, first_came_ns - left_ns);
  high_ = std::min(high_, first_left_ns - came_ns);
}

std::int64_t ClockBounds::offset_ns() const {
  return low_ + (high_ - low_) / 2;
}

std::int64_t to_node0_ns(std::span<const ClockOffset> offsets, std::int64_t local_ns) {
  if (offsets.empty()) return local_ns;
  const auto after =
      std::upper_bound(offsets.begin(), offsets.end(), local_ns,
                       [](std::int64_t t, const ClockOffset& o) { return t < o.local_ns; });
  if (after == offsets.begin()) return local_ns + offsets.front().offset_ns;
  if (after == offsets.end()) return local_ns + offsets.back().offset_ns;
  const ClockOffset& before = *(after - 1);
  const double part = static_cast<double>(local_ns - before.local_ns) /
                      static_cast<double>(after->local_ns - before.local_ns);
  const double drift = part * static_cast<double>(after->offset_ns - before.offset_ns);
  return local_ns + before.offset_ns + std::llround(drift);
}

}  // namespace heddle::trace
