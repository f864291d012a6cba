#include "replay/collective_figures.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "base/median.hpp"
#include "base/units.hpp"

namespace heddle::replay {
namespace {

/// An operation of all members.
struct Whole {
  const Collective* longest = nullptr;
  double bytes = 0;
};

}  // namespace

std::vector<CollectiveFigures> collective_figures(const RunTrace& run) {
  std::map<std::tuple<trace::NameId, std::int32_t, std::int64_t>, Whole> operations;
  for (const Collective& one : run.collectives) {
    Whole& whole = operations[{one.operation, one.group, one.number}];
    whole.bytes += static_cast<double>(one.bytes);
    if (whole.longest == nullptr || one.time.ns() > whole.longest->time.ns()) whole.longest = &one;
  }
  std::map<std::pair<trace::NameId, trace::NameId>,
           std::pair<CollectiveFigures, std::vector<double>>>
      kinds;
  for (const auto& [key, whole] : operations) {
    auto& [figures, us] = kinds[{whole.longest->operation, whole.longest->algorithm}];
    ++figures.count;
    figures.bytes += whole.bytes;
    figures.seconds += seconds_of(whole.longest->time.ns());
    us.push_back(static_cast<double>(whole.longest->time.ns()) * 1e-3);
  }
  std::vector<CollectiveFigures> all;
  for (auto& [names, kind] : kinds) {
    auto& [figures, us] = kind;
    figures.operation = run.names[names.first.value()];
    figures.algorithm = run.names[names.second.value()];
    figures.most_us = *std::ranges::max_element(us);
    figures.median_us = median(std::move(us));
    all.push_back(std::move(figures));
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &CollectiveFigures::seconds);
  return all;
}

}  // namespace heddle::replay
