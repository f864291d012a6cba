#include "node-runtime/collectives/schedule/reduce.hpp"

#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"
#include "node-runtime/collectives/schedule/reduction_order.hpp"

namespace heddle::collectives {
namespace {

class Reduce {
 public:
  Reduce(Rank rank, const Levels& levels, Order order)
      : bracket_(levels, order), levels_(levels), writer_(rank) {
    const Rank own = bracket_.position(rank);
    held_.emplace(RankRange{own, own + 1}, Held{});
  }

  /// Takes what comes from below in the group; the leader keeps it, others send it on.
  void take_part(const LevelGroup& group, Tree tree) {
    const ReductionNeighbours neighbours =
        reduction_neighbours(levels_, group, tree, bracket_.order(), writer_.rank());
    for (const GroupPart& child : neighbours.children) {
      Joined joined = Joined::no;
      for (const RankRange& part : bracket_.whole_parts(child.ranks)) {
        held_[part] = writer_.receive(child.member, 0, writer_.new_slot(),
                                      std::exchange(joined, Joined::yes));
      }
    }
    // The values into which all that is below can be reduced here.
    const std::vector<RankRange> own = bracket_.whole_parts(neighbours.ranks);
    for (const RankRange& part : own) static_cast<void>(value_of(part));
    if (!neighbours.parent) return;
    Joined joined = Joined::no;
    for (const RankRange& part : own) {
      writer_.send(*neighbours.parent, 0, value_of(part), std::exchange(joined, Joined::yes));
    }
  }

  /// At the root, when all have come.
  [[nodiscard]] Schedule take() {
    if (bracket_.all().size() == 1) writer_.copy(0, Held{}, Spot::in_output());
    return writer_.take();
  }

 private:
  /// Reduces what is there to the value of a range, if it is not there yet. As deep as the bracket.
  Held value_of(const RankRange& range) {
    if (const auto found = held_.find(range); found != held_.end()) return found->second;
    HEDDLE_CHECK(range.size() > 1, "rank {} lacks the value of position {}", writer_.rank().value(),
                 range.begin.value());
    const Held left = value_of(bracket_.left(range));
    const Held right = value_of(bracket_.right(range));
    const bool is_result = range == bracket_.all();
    const Spot to = is_result ? Spot::in_output() : writer_.new_slot();
    return held_[range] = writer_.reduce(0, left, right, to);
  }

  ReductionOrder bracket_;
  const Levels& levels_;
  ScheduleWriter writer_;
  std::map<RankRange, Held> held_;
};

}  // namespace

Schedule make_reduce(Rank rank, Rank root, const Levels& levels, const LevelTrees& trees,
                     Order order) {
  Reduce reduce(rank, levels, order);
  for (const LevelGroup& group : levels.groups_of(rank, root)) {
    reduce.take_part(group, unsplit(trees.at(static_cast<std::size_t>(group.level))));
  }
  return reduce.take();
}

}  // namespace heddle::collectives
