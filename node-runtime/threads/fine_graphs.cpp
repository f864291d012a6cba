#include "node-runtime/threads/fine_graphs.hpp"

#include <algorithm>

namespace heddle {

const FineGraph& FineGraphs::of(const KernelCase& what, std::int64_t small) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const FineGraph>& graph = graphs_[{CaseKey::of(what), small}];
  if (graph == nullptr) graph = std::make_unique<FineGraph>(fine_form(what, small));
  return *graph;
}

std::int32_t FineGraphs::prepare(const DividedCases& cases, std::int64_t small,
                                 const std::function<bool(const KernelCase&, PlaceId)>& may_come) {
  std::int32_t largest = 0;
  for (const DividedCases::Case& one : cases.all()) {
    if (one.place != host_place && !may_come(one.of.what(), one.place)) continue;
    largest = std::max(largest, of(one.of.what(), small).size());
  }
  return largest;
}

std::size_t FineGraphs::count() {
  const std::lock_guard lock(mutex_);
  return graphs_.size();
}

}  // namespace heddle
