#include "node-runtime/collectives/schedule/all_gather.hpp"

#include <algorithm>
#include <span>
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
      : writer_(std::move(so_far)), levels_(levels), trees_(trees), held_(levels.size(), Held{}) {
    held_[writer_.rank()] = own;
  }

  [[nodiscard]] Schedule run() {
    const std::vector<LevelGroup> groups = levels_.groups_of(writer_.rank());
    std::size_t inner = groups.size();
    if (!groups.empty() && levels_.is_outermost(groups.back())) --inner;
    for (std::size_t g = 0; g < inner; ++g) collect(groups[g]);
    if (inner < groups.size()) pass_round(groups.back());
    for (std::size_t g = inner; g-- > 0;) hand_down(groups[g]);
    return writer_.take();
  }

 private:
  [[nodiscard]] Tree tree_of(const LevelGroup& group) const {
    return unsplit(trees_.at(static_cast<std::size_t>(group.level)));
  }
  [[nodiscard]] std::vector<Rank> below(const LevelGroup& group, std::int32_t position) const {
    return ranks_below(levels_, group, tree_of(group), position);
  }
  [[nodiscard]] TreeNeighbours neighbours(const LevelGroup& group) const {
    return tree_neighbours(tree_of(group), group.position(writer_.rank()),
                           static_cast<std::int32_t>(group.members.size()));
  }

  /// In one message.
  void receive(Rank from, std::span<const Rank> blocks) {
    Joined joined = Joined::no;
    for (const Rank block : blocks) {
      held_[block] = writer_.receive(from, block.value(), Spot::in_output(),
                                     std::exchange(joined, Joined::yes));
    }
  }
  void send(Rank to, std::span<const Rank> blocks) {
    Joined joined = Joined::no;
    for (const Rank block : blocks) {
      writer_.send(to, block.value(), held_[block], std::exchange(joined, Joined::yes));
    }
  }

  /// Blocks from below, and on to the parent.
  void collect(const LevelGroup& group) {
    const TreeNeighbours near = neighbours(group);
    for (const std::int32_t child : near.children) {
      receive(group.at(child), below(group, child));
    }
    if (!near.parent) return;
    send(group.at(*near.parent), below(group, group.position(writer_.rank())));
  }

  /// Each member gives its neighbour what it has had for the shortest time.
  void pass_round(const LevelGroup& group) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t position = group.position(writer_.rank());
    const Rank next = group.at((position + 1) % size);
    const Rank previous = group.at((position + size - 1) % size);
    const auto blocks_of = [&](std::int32_t member) {
      return levels_.stands_for(group.level, group.at((member + size) % size));
    };
    for (std::int32_t round = 0; round + 1 < size; ++round) {
      send(next, blocks_of(position - round));
      receive(previous, blocks_of(position - round - 1));
    }
  }

  /// All that is not from below comes from the parent, and goes to the children.
  void hand_down(const LevelGroup& group) {
    const TreeNeighbours near = neighbours(group);
    const auto all_but = [&](std::int32_t position) {
      const std::vector<Rank> known = below(group, position);
      std::vector<Rank> others;
      for (Rank block{0}; block < Rank{levels_.size()}; ++block) {
        if (!std::ranges::binary_search(known, block)) others.push_back(block);
      }
      return others;
    };
    if (near.parent) {
      receive(group.at(*near.parent), all_but(group.position(writer_.rank())));
    }
    for (const std::int32_t child : near.children) send(group.at(child), all_but(child));
  }

  ScheduleWriter writer_;
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
  ScheduleWriter writer(rank);
  writer.copy(rank.value(), Held{}, Spot::in_output());
  return AllGather(writer.take(), levels, trees, Held{}).run();
}

Schedule make_reduce_scatter(Rank rank, const Levels& levels, const LevelTrees& trees,
                             Order order) {
  Schedule schedule;
  schedule.rank = rank;
  for (Rank root{0}; root < Rank{levels.size()}; ++root) {
    append(schedule, make_reduce(rank, root, levels, trees, order), root.value());
  }
  return schedule;
}

std::int32_t all_reduce_blocks(AllReduce way, std::int32_t ranks, const LevelTrees& trees) {
  return way == AllReduce::scatter_gather ? ranks : broadcast_blocks(trees);
}

Schedule make_all_reduce(Rank rank, const Levels& levels, const LevelTrees& trees, AllReduce way,
                         Order order) {
  if (way == AllReduce::scatter_gather) {
    Schedule schedule = make_reduce_scatter(rank, levels, trees, order);
    const Held own = result_of(schedule, rank.value());
    return AllGather(std::move(schedule), levels, trees, own).run();
  }
  Schedule schedule;
  schedule.rank = rank;
  std::vector<Held> results;
  for (std::int32_t block = 0; block < broadcast_blocks(trees); ++block) {
    append(schedule, make_reduce(rank, Rank{0}, levels, trees, order), block);
    results.push_back(result_of(schedule, block));
  }
  return add_broadcast(std::move(schedule), Rank{0}, levels, trees, std::move(results));
}

}  // namespace heddle::collectives
