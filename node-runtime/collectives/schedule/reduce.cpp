#include "node-runtime/collectives/schedule/reduce.hpp"

#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/bracket.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

std::vector<std::int32_t> after(std::initializer_list<Held> all) {
  std::vector<std::int32_t> steps;
  for (const Held& one : all) one.precede(steps);
  return steps;
}

class Reduce {
 public:
  Reduce(Rank rank, std::int32_t ranks, const Levels& levels) : bracket_(ranks), levels_(levels) {
    schedule_.rank = rank;
    held_.emplace(RankRange{rank, rank + 1}, Held{});
  }

  /// Takes what comes from below in the group; the leader keeps it, others send it on.
  void take_part(const LevelGroup& group, Tree tree) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t position = group.position(schedule_.rank);
    const TreeNeighbours neighbours = tree_neighbours(tree, position, size);
    for (const std::int32_t child : neighbours.children) {
      for (const RankRange& part : parts_below(group, tree, child)) receive(group.at(child), part);
    }
    const std::vector<RankRange> own = parts_below(group, tree, position);
    for (const RankRange& part : own) static_cast<void>(value_of(part));
    if (!neighbours.parent) return;
    for (const RankRange& part : own) send(group.at(*neighbours.parent), part);
  }

  /// At the root, when all have come.
  [[nodiscard]] Schedule take() {
    if (bracket_.all().size() == 1) {
      add({Step::Kind::copy, 0, Rank{-1}, {Spot::in_input()}, Spot::in_output(), {}});
    }
    return std::move(schedule_);
  }

 private:
  std::int32_t add(Step step) {
    schedule_.steps.push_back(std::move(step));
    return static_cast<std::int32_t>(schedule_.steps.size()) - 1;
  }

  /// The values into which all that is below a position of a group, itself included, can be
  /// reduced there.
  [[nodiscard]] std::vector<RankRange> parts_below(const LevelGroup& group, Tree tree,
                                                   std::int32_t position) const {
    return bracket_.whole_parts(ranks_below(levels_, group, tree, position));
  }

  void receive(Rank from, const RankRange& part) {
    const Spot slot = Spot::in_slot(schedule_.slots++);
    held_[part] = {slot, add({Step::Kind::receive, 0, from, {}, slot, {}})};
  }
  void send(Rank to, const RankRange& part) {
    const Held value = value_of(part);
    add({Step::Kind::send, 0, to, {value.spot}, {}, after({value})});
  }

  /// Reduces what is there to the value of a range, if it is not there yet. As deep as the bracket.
  Held value_of(const RankRange& range) {
    if (const auto found = held_.find(range); found != held_.end()) return found->second;
    HEDDLE_CHECK(range.size() > 1, "rank {} lacks the value of rank {}", schedule_.rank.value(),
                 range.begin.value());
    const Held left = value_of(Bracket::left(range));
    const Held right = value_of(Bracket::right(range));
    const bool is_result = range == bracket_.all();
    const Spot to = is_result ? Spot::in_output() : Spot::in_slot(schedule_.slots++);
    const std::int32_t step =
        add({Step::Kind::reduce, 0, Rank{-1}, {left.spot, right.spot}, to, after({left, right})});
    return held_[range] = {to, step};
  }

  Bracket bracket_;
  const Levels& levels_;
  Schedule schedule_;
  std::map<RankRange, Held> held_;
};

}  // namespace

Schedule make_reduce(Rank rank, Rank root, const Levels& levels, const LevelTrees& trees) {
  Reduce reduce(rank, levels.size(), levels);
  for (const LevelGroup& group : levels.groups_of(rank, root)) {
    reduce.take_part(group, unsplit(trees.at(static_cast<std::size_t>(group.level))));
  }
  return reduce.take();
}

}  // namespace heddle::collectives
