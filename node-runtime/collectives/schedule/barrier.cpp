#include "node-runtime/collectives/schedule/barrier.hpp"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

/// One rank's messages: each goes out after all that have come before it.
class Barrier {
 public:
  explicit Barrier(Rank rank) { schedule_.rank = rank; }

  void receive(Rank from) {
    come_.push_back(static_cast<std::int32_t>(schedule_.steps.size()));
    schedule_.steps.push_back(
        {Step::Kind::receive, 0, from, {}, Spot::in_slot(schedule_.slots++), {}});
  }
  void send(Rank to) {
    schedule_.steps.push_back({Step::Kind::send, 0, to, {Spot::in_input()}, {}, come_});
  }
  [[nodiscard]] Schedule take() { return std::move(schedule_); }

 private:
  Schedule schedule_;
  std::vector<std::int32_t> come_;
};

}  // namespace

Schedule make_barrier(Rank rank, const Levels& levels, const LevelTrees& trees) {
  Barrier barrier(rank);
  const std::vector<LevelGroup> groups = levels.groups_of(rank);
  const auto neighbours_in = [&](const LevelGroup& group) {
    return tree_neighbours(unsplit(trees.at(static_cast<std::size_t>(group.level))),
                           group.position(rank), static_cast<std::int32_t>(group.members.size()));
  };
  for (const LevelGroup& group : groups) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    if (levels.is_outermost(group)) {
      const std::int32_t own = group.position(rank);
      for (std::int32_t step = 1; step < size; step *= 2) {
        barrier.send(group.at((own + step) % size));
        barrier.receive(group.at((own + size - step) % size));
      }
      continue;
    }
    const TreeNeighbours near = neighbours_in(group);
    for (const std::int32_t child : near.children) barrier.receive(group.at(child));
    if (near.parent) barrier.send(group.at(*near.parent));
  }
  for (const LevelGroup& group : groups | std::views::reverse) {
    if (levels.is_outermost(group)) continue;
    const TreeNeighbours near = neighbours_in(group);
    if (near.parent) barrier.receive(group.at(*near.parent));
    for (const std::int32_t child : near.children) barrier.send(group.at(child));
  }
  return barrier.take();
}

}  // namespace heddle::collectives
