#include "apps/simulation/rehearsed_turn.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace heddle {
namespace {

/// By kind, the variance of a task's time over the square of what is usual, beside what its worker
/// is slower or faster by in its turn.
std::vector<double> variances_of(std::span<const RehearsedTurn> turns, const FittedTimes& fitted) {
  const std::size_t kinds = fitted.usual.size();
  std::vector<double> squares(kinds, 0);
  std::vector<double> degrees(kinds, 0);
  for (const RehearsedTurn& turn : turns) {
    for (const std::vector<RehearsedTime>& worker : turn) {
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        const RehearsedTime& time = worker[kind];
        if (time.count < 2) continue;
        const auto count = static_cast<double>(time.count);
        squares[kind] += std::max(0.0, time.squares - time.seconds * time.seconds / count);
        degrees[kind] += count - 1;
      }
    }
  }
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const double usual = fitted.usual[kind];
    squares[kind] =
        degrees[kind] > 0 && usual > 0 ? squares[kind] / degrees[kind] / (usual * usual) : 0;
  }
  return squares;
}

/// What a worker's pace is, and the variance that it would have by its tasks alone.
struct Pace {
  double logarithm = 0;
  double variance = 0;
};

/// Their logarithms as far apart as leaves out what is expected from tasks alone.
std::vector<double> less_chance(std::span<const Pace> paces) {
  const auto count = static_cast<double>(paces.size());
  double mean = 0;
  double expected = 0;
  for (const Pace& pace : paces) {
    mean += pace.logarithm / count;
    expected += pace.variance / count;
  }
  double seen = 0;
  const double others = std::max(1.0, count - 1);
  for (const Pace& pace : paces) seen += std::pow(pace.logarithm - mean, 2) / others;
  const double share = seen > expected ? std::sqrt(1 - expected / seen) : 0;
  std::vector<double> result;
  for (const Pace& pace : paces) {
    result.push_back(std::exp(mean + share * (pace.logarithm - mean)));
  }
  return result;
}

}  // namespace

std::vector<RehearsedTime> sums_of(const RehearsedTurn& turn, std::size_t kinds) {
  std::vector<RehearsedTime> sums(kinds);
  for (const std::vector<RehearsedTime>& worker : turn) {
    for (std::size_t kind = 0; kind < kinds; ++kind) sums[kind].add(worker[kind]);
  }
  return sums;
}

std::vector<std::vector<double>> worker_paces(std::span<const RehearsedTurn> turns,
                                              const FittedTimes& fitted) {
  const std::vector<double> variances = variances_of(turns, fitted);
  std::vector<std::vector<double>> all;
  for (std::size_t t = 0; t < turns.size(); ++t) {
    std::vector<Pace> paces;
    for (const std::vector<RehearsedTime>& worker : turns[t]) {
      double took = 0;
      double usual = 0;
      double squares = 0;
      for (std::size_t kind = 0; kind < variances.size(); ++kind) {
        const double each = fitted.usual[kind] * fitted.paces[t];
        const auto count = static_cast<double>(worker[kind].count);
        if (each <= 0) continue;
        took += worker[kind].seconds;
        usual += count * each;
        squares += count * variances[kind] * each * each;
      }
      if (took <= 0 || usual <= 0) continue;
      paces.push_back({std::log(took / usual), squares / (usual * usual)});
    }
    if (!paces.empty()) all.push_back(less_chance(paces));
  }
  return all;
}

}  // namespace heddle
