#include "node-runtime/placement/placement_policy.hpp"

namespace heddle {

std::size_t StaticPlacement::choose(std::span<const PlaceOffer> /*offers*/) const {
  return 0;
}

std::size_t DynamicPlacement::choose(std::span<const PlaceOffer> offers) const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < offers.size(); ++i) {
    if (least_worth * offers[i].kind_seconds > offers.front().kind_seconds) continue;
    if (offers[i].end_seconds() < offers[best].end_seconds()) best = i;
  }
  return best;
}

}  // namespace heddle
