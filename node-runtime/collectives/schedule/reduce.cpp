#include "node-runtime/collectives/schedule/reduce.hpp"

#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/bracket.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

class Reduce {
 public:
  Reduce(Rank rank, std::int32_t ranks, const Levels& levels)
      : bracket_(ranks), levels_(levels), writer_(rank) {
    held_.emplace(RankRange{rank, rank + 1}, Held{});
  }

  /// Takes what comes from below in the group; the leader keeps it, others send it on.
  void take_part(const LevelGroup& group, Tree tree) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t position = group.position(writer_.rank());
    const TreeNeighbours neighbours = tree_neighbours(tree, position, size);
    for (const std::int32_t child : neighbours.children) {
      Joined joined = Joined::no;
      for (const RankRange& part : parts_below(group, tree, child)) {
        held_[part] = writer_.receive(group.at(child), 0, writer_.new_slot(),
                                      std::exchange(joined, Joined::yes));
      }
    }
    const std::vector<RankRange> own = parts_below(group, tree, position);
    for (const RankRange& part : own) static_cast<void>(value_of(part));
    if (!neighbours.parent) return;
    Joined joined = Joined::no;
    for (const RankRange& part : own) {
      writer_.send(group.at(*neighbours.parent), 0, value_of(part),
                   std::exchange(joined, Joined::yes));
    }
  }

  /// At the root, when all have come.
  [[nodiscard]] Schedule take() {
    if (bracket_.all().size() == 1) writer_.copy(0, Held{}, Spot::in_output());
    return writer_.take();
  }

 private:
  /// The values into which all that is below a position of a group, itself included, can be
  /// reduced there.
  [[nodiscard]] std::vector<RankRange> parts_below(const LevelGroup& group, Tree tree,
                                                   std::int32_t position) const {
    return bracket_.whole_parts(ranks_below(levels_, group, tree, position));
  }

  /// Reduces what is there to the value of a range, if it is not there yet. As deep as the bracket.
  Held value_of(const RankRange& range) {
    if (const auto found = held_.find(range); found != held_.end()) return found->second;
    HEDDLE_CHECK(range.size() > 1, "rank {} lacks the value of rank {}", writer_.rank().value(),
                 range.begin.value());
    const Held left = value_of(Bracket::left(range));
    const Held right = value_of(Bracket::right(range));
    const bool is_result = range == bracket_.all();
    const Spot to = is_result ? Spot::in_output() : writer_.new_slot();
    return held_[range] = writer_.reduce(0, left, right, to);
  }

  Bracket bracket_;
  const Levels& levels_;
  ScheduleWriter writer_;
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
