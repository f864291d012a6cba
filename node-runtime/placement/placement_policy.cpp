#include "node-runtime/placement/placement_policy.hpp"

#include <algorithm>

namespace heddle {

std::size_t StaticPlacement::choose(std::span<const PlaceOffer> /*offers*/) const {
  return 0;
}

std::size_t DynamicPlacement::choose(std::span<const PlaceOffer> offers) const {
  // The first of equal ones.
  const auto least = std::ranges::min_element(offers, {}, &PlaceOffer::end_seconds);
  return static_cast<std::size_t>(least - offers.begin());
}

}  // namespace heddle
