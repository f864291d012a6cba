#include "replay/simulation/noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "base/assert.hpp"
#include "replay/simulation/mixed.hpp"

namespace heddle::replay {
namespace {

/// In (0, 1).
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;
}

}  // namespace

double NoisyJob::share(TaskKindId kind, NodeId node, std::int64_t order) const {
  const Spread& spread = spreads_[static_cast<std::size_t>(kind.value())];
  const std::uint64_t bits = mixed(seed_, node, order);
  if (!spread.shares.empty()) return spread.shares[bits % spread.shares.size()];
  if (spread.variation <= 0) return 1;
  // Box-Muller; the mean of the logarithm makes the mean share 1.
  const double radius = std::sqrt(-2 * std::log(uniform(bits)));
  const double angle = 2 * std::numbers::pi * uniform(mixed(bits, node, order));
  const double variance = std::log1p(spread.variation * spread.variation);
  return std::exp(std::sqrt(variance) * radius * std::cos(angle) - variance / 2);
}

namespace {

void shuffle(std::vector<double>& values, std::uint64_t seed, NodeId stream) {
  std::vector<std::pair<std::uint64_t, double>> keyed;
  keyed.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    keyed.emplace_back(mixed(seed, stream, static_cast<std::int64_t>(i)), values[i]);
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, values.begin(), [](const auto& one) { return one.second; });
}

}  // namespace

double mean_rate(std::span<const double> paces) {
  double rate = 0;
  for (const double pace : paces) rate += 1 / pace;
  return rate / static_cast<double>(paces.size());
}

std::vector<double> paces_of_rate(std::span<const double> paces, double rate) {
  std::vector<double> scaled(paces.begin(), paces.end());
  const double faster = mean_rate(paces) / rate;
  for (double& pace : scaled) pace *= faster;
  return scaled;
}

std::vector<double> dealt_paces(std::span<const double> seen, std::int32_t workers,
                                std::uint64_t seed) {
  HEDDLE_CHECK(!seen.empty(), "no paces to deal");
  std::vector<double> cards(seen.begin(), seen.end());
  shuffle(cards, seed, NodeId{0});  // the ones left over are random, too
  std::vector<double> paces(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < paces.size(); ++i) paces[i] = cards[i % cards.size()];
  shuffle(paces, seed, NodeId{1});
  return paces_of_rate(paces, mean_rate(seen));
}

}  // namespace heddle::replay
