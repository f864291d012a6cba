#include "node-runtime/collectives/schedule/all_gather.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/indexed_vector.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"

namespace heddle::collectives {
namespace {

/// Adds what one rank does with blocks that all are to have.
class AllGather {
 public:
  /// `own`: where the rank's block is.
  AllGather(Schedule so_far, const Levels& levels, const LevelTrees& trees, const Held& own)
      : schedule_(std::move(so_far)), levels_(levels), trees_(trees), held_(levels.size(), Held{}) {
    held_[schedule_.rank] = own;
  }

  [[nodiscard]] Schedule run() {
    const std::vector<LevelGroup> groups = levels_.groups_of(schedule_.rank);
    std::size_t inner = groups.size();
    if (!groups.empty() && is_outermost(groups.back())) --inner;
    for (std::size_t g = 0; g < inner; ++g) collect(groups[g]);
    if (inner < groups.size()) pass_round(groups.back());
    for (std::size_t g = inner; g-- > 0;) hand_down(groups[g]);
    return std::move(schedule_);
  }

 private:
  [[nodiscard]] Tree tree_of(const LevelGroup& group) const {
    return unsplit(trees_.at(static_cast<std::size_t>(group.level)));
  }
  [[nodiscard]] std::vector<Rank> below(const LevelGroup& group, std::int32_t position) const {
    return ranks_below(levels_, group, tree_of(group), position);
  }
  [[nodiscard]] bool is_outermost(const LevelGroup& group) const {
    return static_cast<std::int32_t>(below(group, 0).size()) == levels_.size();
  }
  [[nodiscard]] TreeNeighbours neighbours(const LevelGroup& group) const {
    return tree_neighbours(tree_of(group), group.position(schedule_.rank),
                           static_cast<std::int32_t>(group.members.size()));
  }

  void receive(Rank from, Rank block) {
    held_[block] = {Spot::in_output(), static_cast<std::int32_t>(schedule_.steps.size())};
    schedule_.steps.push_back(
        {Step::Kind::receive, block.value(), from, {}, Spot::in_output(), {}});
  }
  void send(Rank to, Rank block) {
    std::vector<std::int32_t> after;
    held_[block].precede(after);
    schedule_.steps.push_back(
        {Step::Kind::send, block.value(), to, {held_[block].spot}, {}, std::move(after)});
  }

  /// Blocks from below, and on to the parent.
  void collect(const LevelGroup& group) {
    const TreeNeighbours near = neighbours(group);
    for (const std::int32_t child : near.children) {
      for (const Rank block : below(group, child)) receive(group.at(child), block);
    }
    if (!near.parent) return;
    for (const Rank block : below(group, group.position(schedule_.rank))) {
      send(group.at(*near.parent), block);
    }
  }

  /// Each member gives its neighbour what it has had for the shortest time.
  void pass_round(const LevelGroup& group) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t position = group.position(schedule_.rank);
    const Rank next = group.at((position + 1) % size);
    const Rank previous = group.at((position + size - 1) % size);
    const auto blocks_of = [&](std::int32_t member) {
      return levels_.stands_for(group.level, group.at((member + size) % size));
    };
    for (std::int32_t round = 0; round + 1 < size; ++round) {
      for (const Rank block : blocks_of(position - round)) send(next, block);
      for (const Rank block : blocks_of(position - round - 1)) receive(previous, block);
    }
  }

  /// All that is not from below comes from the parent, and goes to the children.
  void hand_down(const LevelGroup& group) {
    const TreeNeighbours near = neighbours(group);
    const auto for_others = [&](std::int32_t position, const auto& act) {
      const std::vector<Rank> known = below(group, position);
      for (Rank block{0}; block < Rank{levels_.size()}; ++block) {
        if (!std::ranges::binary_search(known, block)) act(block);
      }
    };
    if (near.parent) {
      for_others(group.position(schedule_.rank),
                 [&](Rank block) { receive(group.at(*near.parent), block); });
    }
    for (const std::int32_t child : near.children) {
      for_others(child, [&](Rank block) { send(group.at(child), block); });
    }
  }

  Schedule schedule_;
  const Levels& levels_;
  const LevelTrees& trees_;
  IndexedVector<Rank, Held> held_;
};

/// `more`, about block `block`, behind what is in `schedule`.
void append(Schedule& schedule, Schedule more, std::int32_t block) {
  const auto steps = static_cast<std::int32_t>(schedule.steps.size());
  const auto shift = [&](Spot& spot) {
    if (spot.memory == Spot::Memory::slot) spot.slot += schedule.slots;
  };
  for (Step& step : more.steps) {
    step.block = block;
    for (Spot& spot : step.from) shift(spot);
    shift(step.to);
    for (std::int32_t& earlier : step.after) earlier += steps;
    schedule.steps.push_back(std::move(step));
  }
  schedule.slots += more.slots;
}

/// The step that wrote a block of the output.
Held result_of(const Schedule& schedule, std::int32_t block) {
  const auto writes = [block](const Step& step) {
    return step.kind != Step::Kind::send && step.block == block && step.to == Spot::in_output();
  };
  const auto found = std::ranges::find_if(schedule.steps, writes);
  if (found == schedule.steps.end()) return {Spot::in_output(), Held::no_step};
  return {Spot::in_output(), static_cast<std::int32_t>(found - schedule.steps.begin())};
}

}  // namespace

Schedule make_all_gather(Rank rank, const Levels& levels, const LevelTrees& trees) {
  Schedule schedule;
  schedule.rank = rank;
  schedule.steps.push_back(
      {Step::Kind::copy, rank.value(), Rank{-1}, {Spot::in_input()}, Spot::in_output(), {}});
  return AllGather(std::move(schedule), levels, trees, Held{}).run();
}

Schedule make_reduce_scatter(Rank rank, const Levels& levels, const LevelTrees& trees) {
  Schedule schedule;
  schedule.rank = rank;
  for (Rank root{0}; root < Rank{levels.size()}; ++root) {
    append(schedule, make_reduce(rank, root, levels, trees), root.value());
  }
  return schedule;
}

std::int32_t all_reduce_blocks(AllReduce way, std::int32_t ranks, const LevelTrees& trees) {
  return way == AllReduce::scatter_gather ? ranks : broadcast_blocks(trees);
}

Schedule make_all_reduce(Rank rank, const Levels& levels, const LevelTrees& trees, AllReduce way) {
  if (way == AllReduce::scatter_gather) {
    Schedule schedule = make_reduce_scatter(rank, levels, trees);
    const Held own = result_of(schedule, rank.value());
    return AllGather(std::move(schedule), levels, trees, own).run();
  }
  Schedule schedule;
  schedule.rank = rank;
  std::vector<Held> results;
  for (std::int32_t block = 0; block < broadcast_blocks(trees); ++block) {
    append(schedule, make_reduce(rank, Rank{0}, levels, trees), block);
    results.push_back(result_of(schedule, block));
  }
  return add_broadcast(std::move(schedule), Rank{0}, levels, trees, std::move(results));
}

}  // namespace heddle::collectives
