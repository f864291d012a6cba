#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// Hosts of two sockets with two switches each, GPUs that ranks share, and ranks without one; the
/// ranks are numbered as chance has it.
inline std::vector<RankPlace> random_places(std::mt19937& random, std::int32_t ranks) {
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(n));
  };
  const std::int32_t hosts = 1 + below(ranks);
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < ranks; ++r) {
    RankPlace place{.host = below(hosts), .socket = below(2)};
    if (below(4) != 0) {
      place.pci_switch = 2 * place.socket + below(2);
      place.gpu = 2 * place.pci_switch + below(2);
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace heddle::collectives
