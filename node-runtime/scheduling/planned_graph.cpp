#include "node-runtime/scheduling/planned_graph.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle {

void PlannedGraph::begin_node() {
  ++node_;
  first_of_node_.push_back(std::ssize(tasks_));
  for (auto& [matrix, tiles] : matrices_) std::ranges::fill(tiles.writes, 0);
}

void PlannedGraph::append(std::int32_t kind, std::span<const protocol::Access> accesses) {
  if (!is_complete()) return;
  const Location home = accesses.front().home;
  const bool keeps = home.node == node_;
  if (keeps && ++count_ > tasks_max_) return drop();
  if (keeps) tasks_.push_back({std::ssize(needs_), kind, home});
  for (const protocol::Access& access : accesses) {
    Tiles& tiles = matrices_[access.tile.matrix.value()];
    const auto tile = access.tile.position();
    if (tiles.writes.size() <= tile) {
      tiles.writes.resize(tile + 1, 0);
      tiles.writers.resize(tile + 1);
    }
    const Version version =
        access.version == protocol::count_here ? Version{tiles.writes[tile]} : access.version;
    if (keeps && access.mode != protocol::AccessMode::write)
      needs_.push_back({access.tile, version});
    if (access.mode == protocol::AccessMode::read) continue;
    ++tiles.writes[tile];
    if (!keeps) continue;
    std::vector<std::int32_t>& writers = tiles.writers[tile];
    const auto at = static_cast<std::size_t>(version.value());
    if (writers.size() <= at) writers.resize(at + 1, -1);
    writers[at] = static_cast<std::int32_t>(tasks_.size()) - 1;
  }
}

void PlannedGraph::end() {
  first_of_node_.push_back(std::ssize(tasks_));
}

void PlannedGraph::drop() {
  tasks_ = {};
  needs_ = {};
  matrices_ = {};
}

std::span<const PlannedGraph::Need> PlannedGraph::needs(std::size_t task) const {
  const std::int64_t end =
      task + 1 < tasks_.size() ? tasks_[task + 1].first_need : std::ssize(needs_);
  return {needs_.begin() + tasks_[task].first_need, needs_.begin() + end};
}

std::int32_t PlannedGraph::writer(const Need& need) const {
  if (need.version.value() == 0) return -1;
  const Tiles& tiles = matrices_.at(need.tile.matrix.value());
  const std::vector<std::int32_t>& writers = tiles.writers[need.tile.position()];
  const auto replaced = static_cast<std::size_t>(need.version.value()) - 1;
  return replaced < writers.size() ? writers[replaced] : -1;
}

/// From the last tasks to the first: a task follows when all its readers are done.
std::vector<double> PlannedGraph::levels(const Cost& cost, const Transfer& transfer) const {
  HEDDLE_CHECK(is_complete(), "{} tasks", count_);
  std::vector<double> levels(tasks_.size(), 0);
  std::vector<std::int32_t> open(tasks_.size(), 0);
  for (const Need& need : needs_) {
    const std::int32_t maker = writer(need);
    if (maker >= 0) ++open[static_cast<std::size_t>(maker)];
  }
  std::vector<std::size_t> next;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    if (open[task] == 0) next.push_back(task);
  }
  std::size_t done = 0;
  for (; !next.empty(); ++done) {
    const std::size_t task = next.back();
    next.pop_back();
    levels[task] += cost(tasks_[task].kind, tasks_[task].home.place);
    for (const Need& need : needs(task)) {
      const std::int32_t number = writer(need);
      if (number < 0) continue;
      const auto maker = static_cast<std::size_t>(number);
      double behind = levels[task];
      if (transfer && tasks_[maker].home != tasks_[task].home) {
        behind += transfer(tasks_[maker].home, tasks_[task].home, need.tile, need.version);
      }
      levels[maker] = std::max(levels[maker], behind);
      if (--open[maker] == 0) next.push_back(maker);
    }
  }
  HEDDLE_CHECK(done == tasks_.size(), "{} of {} tasks", done, tasks_.size());
  return levels;
}

std::vector<std::int16_t> ranks_of(const std::vector<double>& values, std::int32_t levels) {
  std::vector<double> different(values);
  std::ranges::sort(different);
  const double least = different.empty() ? 0 : 1e-9 * different.back();
  const auto last = std::unique(different.begin(), different.end(),
                                [&](double a, double b) { return b - a <= least; });
  different.erase(last, different.end());
  const auto count = std::max<std::int64_t>(1, std::ssize(different) - 1);
  const std::int64_t highest = levels - 1;
  std::vector<std::int16_t> ranks;
  ranks.reserve(values.size());
  for (const double value : values) {
    const auto above = std::ranges::upper_bound(different, value);
    const std::int64_t rank = std::max<std::int64_t>(0, above - different.begin() - 1);
    ranks.push_back(static_cast<std::int16_t>(count <= highest ? rank : rank * highest / count));
  }
  return ranks;
}

}  // namespace heddle
