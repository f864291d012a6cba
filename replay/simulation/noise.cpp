#include "replay/simulation/noise.hpp"

#include <cmath>
#include <numbers>

#include "replay/simulation/mixed.hpp"

namespace heddle::replay {
namespace {

/// Above 0, below 1.
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;
}

}  // namespace

double NoisyJob::share(TaskKindId kind, NodeId node, std::int64_t order) const {
  const Spread& spread = spreads_[static_cast<std::size_t>(kind.value())];
  const std::uint64_t bits = mixed(seed_, node, order);
  if (!spread.shares.empty()) return spread.shares[bits % spread.shares.size()];
  if (spread.variation <= 0) return 1;
  // Box and Muller; the logarithm's mean is such that that of the shares is 1.
  const double radius = std::sqrt(-2 * std::log(uniform(bits)));
  const double angle = 2 * std::numbers::pi * uniform(mixed(bits, node, order));
  const double variance = std::log1p(spread.variation * spread.variation);
  return std::exp(std::sqrt(variance) * radius * std::cos(angle) - variance / 2);
}

}  // namespace heddle::replay
