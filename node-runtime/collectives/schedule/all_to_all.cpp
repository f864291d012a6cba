#include "node-runtime/collectives/schedule/all_to_all.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "base/require.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int32_t ranks_max = 46340;

/// What one rank does with blocks of pairs.
class Exchange {
 public:
  Exchange(Rank rank, const Levels& levels) : writer_(rank), levels_(levels) {
    for (Rank to{0}; to < Rank{levels.size()}; ++to) held_.emplace(block(rank, to), Held{});
    held_[block(rank, rank)] = writer_.copy(block(rank, rank), Held{}, Spot::in_output());
  }

  [[nodiscard]] Schedule take() { return writer_.take(); }

  /// Directly, from all ranks to all ranks, in the order of places.
  void exchange_all(const Places& places) {
    const std::int32_t size = places.size();
    const std::int32_t own = places.position(rank());
    for (std::int32_t k = 1; k < size; ++k) {
      const Rank to = places.order()[static_cast<std::size_t>((own + k) % size)];
      const Rank from = places.order()[static_cast<std::size_t>((own + size - k) % size)];
      send(to, {rank()}, {to});
      receive(from, {from}, {rank()});
    }
  }

  /// Members exchange what they have for each other's ranks; the leader gets what leaves the group.
  void exchange(const LevelGroup& group) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t own = group.position(rank());
    const std::vector<Rank> outside = others_than(group);
    const auto wanted_by = [&](std::int32_t position) {
      std::vector<Rank> ranks = below(group, position);
      if (position == 0) ranks.insert(ranks.end(), outside.begin(), outside.end());
      return ranks;
    };
    for (std::int32_t k = 1; k < size; ++k) {
      const std::int32_t to = (own + k) % size;
      const std::int32_t from = (own + size - k) % size;
      send(group.at(to), below(group, own), wanted_by(to));
      receive(group.at(from), below(group, from), wanted_by(own));
    }
  }

  /// Bruck: in round k a member has blocks that go on by 2^k members.
  void exchange_in_rounds(const LevelGroup& group) {
    const auto size = static_cast<std::int32_t>(group.members.size());
    const std::int32_t own = group.position(rank());
    for (std::int32_t step = 1; step < size; step *= 2) {
      const auto round = [&](std::int32_t holder, const auto& act) {
        for (std::int32_t way = step; way < size; ++way) {
          if ((way & step) == 0) continue;
          const std::int32_t from = (holder - (way & (step - 1)) + size) % size;
          act(below(group, from), below(group, (from + way) % size));
        }
      };
      Joined joined = Joined::no;
      round(own, [&](const std::vector<Rank>& from, const std::vector<Rank>& to) {
        send(group.at((own + step) % size), from, to, joined);
      });
      joined = Joined::no;
      const std::int32_t before = (own + size - step) % size;
      round(before, [&](const std::vector<Rank>& from, const std::vector<Rank>& to) {
        receive(group.at(before), from, to, joined);
      });
    }
  }

  /// The leader gives the others what has come for their ranks from outside.
  void hand_down(const LevelGroup& group) {
    const std::vector<Rank> outside = others_than(group);
    const std::int32_t own = group.position(rank());
    if (own > 0) return receive(group.leader, outside, below(group, own));
    for (std::int32_t m = 1; m < static_cast<std::int32_t>(group.members.size()); ++m) {
      send(group.at(m), outside, below(group, m));
    }
  }

 private:
  [[nodiscard]] Rank rank() const { return writer_.rank(); }
  [[nodiscard]] std::int32_t block(Rank from, Rank to) const {
    return all_to_all_block(from, to, levels_.size());
  }
  [[nodiscard]] std::vector<Rank> below(const LevelGroup& group, std::int32_t position) const {
    const std::span<const Rank> ranks = levels_.stands_for(group.level, group.at(position));
    return {ranks.begin(), ranks.end()};
  }
  /// Ranks that no member stands for.
  [[nodiscard]] std::vector<Rank> others_than(const LevelGroup& group) const {
    const std::vector<Rank> inside = ranks_below(levels_, group, Tree::flat, 0);
    std::vector<Rank> others;
    for (Rank other{0}; other < Rank{levels_.size()}; ++other) {
      if (!std::ranges::binary_search(inside, other)) others.push_back(other);
    }
    return others;
  }

  /// The blocks of all pairs of `from` and `to`, in one message with what was sent before if
  /// `joined` says so.
  void send(Rank peer, const std::vector<Rank>& from, const std::vector<Rank>& to, Joined& joined) {
    for (const Rank source : from) {
      for (const Rank target : to) {
        const std::int32_t b = block(source, target);
        writer_.send(peer, b, held_.at(b), std::exchange(joined, Joined::yes));
      }
    }
  }
  void receive(Rank peer, const std::vector<Rank>& from, const std::vector<Rank>& to,
               Joined& joined) {
    for (const Rank source : from) {
      for (const Rank target : to) {
        const Spot spot = target == rank() ? Spot::in_output() : writer_.new_slot();
        const std::int32_t b = block(source, target);
        held_[b] = writer_.receive(peer, b, spot, std::exchange(joined, Joined::yes));
      }
    }
  }
  void send(Rank peer, const std::vector<Rank>& from, const std::vector<Rank>& to) {
    Joined joined = Joined::no;
    send(peer, from, to, joined);
  }
  void receive(Rank peer, const std::vector<Rank>& from, const std::vector<Rank>& to) {
    Joined joined = Joined::no;
    receive(peer, from, to, joined);
  }

  ScheduleWriter writer_;
  const Levels& levels_;
  std::map<std::int32_t, Held> held_;  ///< by block
};

}  // namespace

std::int32_t all_to_all_block(Rank from, Rank to, std::int32_t ranks) {
  require(ranks <= ranks_max,
          "all_to_all: {} ranks; at most {} can have a block for each other one", ranks, ranks_max);
  return from.value() * ranks + to.value();
}

Schedule make_all_to_all(Rank rank, const Places& places, const Levels& levels, AllToAll way) {
  Exchange exchange(rank, levels);
  if (way == AllToAll::pairwise) {
    exchange.exchange_all(places);
    return exchange.take();
  }
  const std::vector<LevelGroup> groups = levels.groups_of(rank);
  for (const LevelGroup& group : groups) {
    const bool is_last = levels.is_outermost(group);
    way == AllToAll::bruck&& is_last ? exchange.exchange_in_rounds(group)
                                     : exchange.exchange(group);
  }
  for (const LevelGroup& group : groups | std::views::reverse) {
    if (!levels.is_outermost(group)) exchange.hand_down(group);
  }
  return exchange.take();
}

}  // namespace heddle::collectives
