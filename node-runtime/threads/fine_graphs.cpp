#include "node-runtime/threads/fine_graphs.hpp"

#include <algorithm>
#include <functional>

#include "base/assert.hpp"

namespace heddle {

std::size_t FineGraphs::Hash::operator()(const Key& key) const {
  std::size_t hash = std::hash<const void*>{}(key.kernel);
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  };
  mix(key.small);
  for (const std::int64_t value : key.parameters.as<std::array<std::int64_t, 4>>()) mix(value);
  for (const OperandShape& shape : key.shapes) {
    mix(shape.rows);
    mix(shape.columns);
  }
  return hash;
}

const FineGraph& FineGraphs::of(const KernelCase& what, std::int64_t small) {
  Key key{what.kernel, small, what.parameters, {}};
  HEDDLE_CHECK(what.operands.size() <= key.shapes.size(), "{} operands", what.operands.size());
  std::copy(what.operands.begin(), what.operands.end(), key.shapes.begin());
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const FineGraph>& graph = graphs_[key];
  if (graph == nullptr) graph = std::make_unique<FineGraph>(fine_form(what, small));
  return *graph;
}

}  // namespace heddle
