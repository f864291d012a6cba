#include "node-runtime/threads/fine_graphs.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle {

std::size_t FineGraphs::Hash::operator()(const Key& key) const {
  return DividedCases::Hash{}(key.of) ^ static_cast<std::size_t>(key.small) * 0x9e3779b97f4a7c15U;
}

const FineGraph& FineGraphs::of(const KernelCase& what, std::int64_t small) {
  Key key{{what.kernel, what.parameters, {}, what.operands.size(), {}}, small};
  HEDDLE_CHECK(what.operands.size() <= key.of.shapes.size(), "{} operands", what.operands.size());
  std::copy(what.operands.begin(), what.operands.end(), key.of.shapes.begin());
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const FineGraph>& graph = graphs_[key];
  if (graph == nullptr) graph = std::make_unique<FineGraph>(fine_form(what, small));
  return *graph;
}

std::int32_t FineGraphs::prepare(const DividedCases& cases, std::int64_t small,
                                 const std::function<bool(const KernelCase&, PlaceId)>& may_come) {
  std::int32_t largest = 0;
  for (const DividedCases::Case& one : cases.all()) {
    if (one.place != host_place && !may_come(one.what(), one.place)) continue;
    largest = std::max(largest, of(one.what(), small).size());
  }
  return largest;
}

std::size_t FineGraphs::count() {
  const std::lock_guard lock(mutex_);
  return graphs_.size();
}

}  // namespace heddle
