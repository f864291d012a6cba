#include "node-runtime/threads/fine_graphs.hpp"

#include <algorithm>
#include <functional>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// Makes the graph of each task that may be divided.
class FineListener final : public ProgramListener {
 public:
  FineListener(FineGraphs& graphs, const DividedTasks& tasks) : graphs_(graphs), tasks_(tasks) {}

  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const protocol::Access> accesses) override {
    const Location home = accesses.front().home;
    if (home.node != tasks_.node || kernel.fine == nullptr) return;
    if (home.place != host_place && !tasks_.has_devices_tasks) return;
    std::array<OperandShape, FineTask::accesses_max> shapes;
    if (accesses.size() > shapes.size()) return;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      shapes[i] = tasks_.shape_of(accesses[i].tile);
    }
    const KernelCase what{&kernel, options.parameters, {shapes.data(), accesses.size()}};
    largest_ = std::max(largest_, graphs_.of(what, tasks_.small).size());
  }
  void announce(const protocol::Access& /*access*/, NodeId /*reader*/,
                std::int32_t /*priority*/) override {}
  void release(const protocol::Access& /*access*/) override {}

  [[nodiscard]] std::int32_t largest() const { return largest_; }

 private:
  FineGraphs& graphs_;
  const DividedTasks& tasks_;
  std::int32_t largest_ = 0;
};

}  // namespace

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

std::int32_t FineGraphs::prepare(const DividedTasks& tasks) {
  FineListener listener(*this, tasks);
  TaskStream stream(listener, tasks.node);
  Program walk = tasks.program(stream);
  while (walk.resume()) {
  }
  return listener.largest();
}

std::size_t FineGraphs::count() {
  const std::lock_guard lock(mutex_);
  return graphs_.size();
}

}  // namespace heddle
