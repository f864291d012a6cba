#include "node-runtime/collectives/schedule/exchange.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {
namespace {

constexpr std::array<std::string_view, exchange_ways> exchange_way_names{"neighbours", "aggregated",
                                                                         "alltoallv", "alltoall"};

/// Blocks that travel together, ascending.
struct ExchangeMessage {
  Rank peer;
  std::vector<ExchangeBlock> blocks;
};
using ExchangeMessages = std::vector<ExchangeMessage>;

/// The messages of one rank. Those between two ranks have one order, in both lists of the one and
/// the other: on a host gathered, direct and scattered ones.
struct MessagePlan {
  ExchangeMessages own;       ///< sends of this rank's blocks
  ExchangeMessages received;  ///< all receives
  ExchangeMessages passed;    ///< sends of blocks that have come before, perhaps with own ones
};

/// How far another rank is away.
using Distance = std::function<std::int32_t(Rank peer)>;

/// Messages by their peers, in the order of `distance` from this rank.
ExchangeMessages in_order_of(const Distance& distance, std::map<Rank, ExchangeMessage> by_peer) {
  ExchangeMessages made;
  for (auto& [peer, message] : by_peer) made.push_back(std::move(message));
  std::ranges::sort(made, {}, [&](const ExchangeMessage& m) { return distance(m.peer); });
  return made;
}

class MessagePlanner {
 public:
  MessagePlanner(Rank own, std::span<const ExchangeBlock> blocks, const Places& places)
      : own_(own), blocks_(blocks), places_(places), leaders_(host_leaders(places)) {}

  /// A message for each block.
  [[nodiscard]] MessagePlan direct() const {
    MessagePlan plan;
    add_direct(plan, [](const ExchangeBlock&) { return true; });
    return plan;
  }

  /// Within a host directly, between hosts by way of both leaders.
  [[nodiscard]] MessagePlan aggregated() const {
    MessagePlan plan;
    const Rank leader = leader_of(own_);
    const bool leads = leader == own_;
    const auto leaves = [&](const ExchangeBlock& b) {
      return leader_of(b.from) == leader && leader_of(b.to) != leader;
    };
    const auto comes = [&](const ExchangeBlock& b) {
      return leader_of(b.from) != leader && leader_of(b.to) == leader;
    };
    using Peers = std::map<Rank, ExchangeMessage>;
    Peers gathered;
    Peers sent;
    Peers received;
    Peers scattered;
    for (const ExchangeBlock& b : blocks_) {
      if (leaves(b)) {
        if (leads) add(sent, leader_of(b.to), b);
        if (leads && b.from != own_) add(gathered, b.from, b);
        if (!leads && b.from == own_) add(gathered, leader, b);
      } else if (comes(b)) {
        if (leads) add(received, leader_of(b.from), b);
        if (leads && b.to != own_) add(scattered, b.to, b);
        if (!leads && b.to == own_) add(scattered, leader, b);
      }
    }
    append(leads ? plan.received : plan.own, in_order_of(onwards(), std::move(gathered)));
    add_direct(plan, [&](const ExchangeBlock& b) { return leader_of(b.from) == leader_of(b.to); });
    append(plan.passed, in_order_of(onwards(), std::move(sent)));
    append(plan.received, in_order_of(backwards(), std::move(received)));
    append(leads ? plan.passed : plan.received, in_order_of(onwards(), std::move(scattered)));
    return plan;
  }

 private:
  static void add(std::map<Rank, ExchangeMessage>& to, Rank peer, const ExchangeBlock& block) {
    ExchangeMessage& message = to[peer];
    message.peer = peer;
    message.blocks.push_back(block);
  }
  static void append(ExchangeMessages& to, ExchangeMessages messages) {
    for (ExchangeMessage& one : messages) to.push_back(std::move(one));
  }
  [[nodiscard]] Rank leader_of(Rank rank) const {
    return leaders_[static_cast<std::size_t>(rank.value())];
  }
  /// How far a rank is behind this one in the order of places, and before it: sends and receives in
  /// these orders meet, and no rank is the first one of all.
  [[nodiscard]] Distance onwards() const {
    return [this](Rank peer) {
      return (places_.position(peer) - places_.position(own_) + places_.size()) % places_.size();
    };
  }
  [[nodiscard]] Distance backwards() const {
    return [this](Rank peer) {
      return (places_.position(own_) - places_.position(peer) + places_.size()) % places_.size();
    };
  }
  /// A message for each block that is `wanted`, does not stay here, and begins or ends here.
  template <class Wanted>
  void add_direct(MessagePlan& plan, const Wanted& wanted) const {
    ExchangeMessages sends;
    ExchangeMessages receives;
    for (const ExchangeBlock& b : blocks_) {
      if (b.from == b.to || !wanted(b)) continue;
      if (b.from == own_) sends.push_back({b.to, {b}});
      if (b.to == own_) receives.push_back({b.from, {b}});
    }
    const auto peer = [](const Distance& distance) {
      return [distance](const ExchangeMessage& m) { return distance(m.peer); };
    };
    std::ranges::stable_sort(sends, {}, peer(onwards()));
    std::ranges::stable_sort(receives, {}, peer(backwards()));
    append(plan.own, std::move(sends));
    append(plan.received, std::move(receives));
  }

  Rank own_;
  std::span<const ExchangeBlock> blocks_;
  const Places& places_;
  std::vector<Rank> leaders_;
};

/// Writes down the steps of one rank.
class ExchangeWriter {
 public:
  ExchangeWriter(Rank own, std::span<const ExchangeBlock> blocks, const ExchangeSides& sides)
      : own_(own), blocks_(blocks), sides_(sides), writer_(own) {}

  Schedule write(const MessagePlan& plan, Receives receives) {
    // Those of messages between hosts first, each message's together.
    for (const ExchangeMessages* list : {&plan.passed, &plan.received, &plan.own}) {
      for (const ExchangeMessage& message : *list) take_slots(message);
    }
    std::int32_t last_pack = Held::no_step;
    if (receives == Receives::early) {
      receive(plan.received);
      pack();
      send(plan.own);
    } else {
      last_pack = pack();
      send(plan.own);
      receive(plan.received);
    }
    send(plan.passed);
    unpack();
    Schedule made = writer_.take();
    for (Step& step : made.steps) {
      const bool waits = step.kind == Step::Kind::receive && last_pack != Held::no_step;
      if (waits) step.after.push_back(last_pack);
    }
    return made;
  }

 private:
  void take_slots(const ExchangeMessage& message) {
    const bool has_several = message.blocks.size() > 1;
    for (const ExchangeBlock& b : message.blocks) {
      const bool is_in_place = (b.from == own_ && !sides_.is_packed(b.number)) ||
                               (b.to == own_ && !sides_.is_unpacked(b.number));
      // Several blocks travel as one piece.
      if ((is_in_place && !has_several) || slots_.contains(b.number)) continue;
      slots_.emplace(b.number, writer_.new_slot());
    }
  }
  [[nodiscard]] std::optional<Spot> slot_of(const ExchangeBlock& block) const {
    const auto found = slots_.find(block.number);
    if (found == slots_.end()) return std::nullopt;
    return found->second;
  }

  void receive(const ExchangeMessages& messages) {
    for (const ExchangeMessage& message : messages) {
      Joined joined = Joined::no;
      for (const ExchangeBlock& b : message.blocks) {
        held_[b.number] =
            writer_.receive(message.peer, b.number, slot_of(b).value_or(Spot::in_output()),
                            std::exchange(joined, Joined::yes));
      }
    }
  }

  void send(const ExchangeMessages& messages) {
    for (const ExchangeMessage& message : messages) {
      Joined joined = Joined::no;
      for (const ExchangeBlock& b : message.blocks) {
        writer_.send(message.peer, b.number, held_[b.number], std::exchange(joined, Joined::yes));
      }
    }
  }

  /// All of this rank's blocks that do not leave from where they lie, and those that stay here. The
  /// last one's step.
  std::int32_t pack() {
    std::int32_t last = Held::no_step;
    for (const ExchangeBlock& b : blocks_) {
      if (b.from != own_) continue;
      Held held;
      if (b.to == own_) {
        if (sides_.is_packed(b.number) && sides_.is_unpacked(b.number)) {
          held = writer_.copy(b.number, held, writer_.new_slot());
        }
        last = writer_.copy(b.number, held, Spot::in_output()).step;
      } else if (const auto slot = slot_of(b)) {
        held = writer_.copy(b.number, held, *slot);
        last = held.step;
        held_[b.number] = held;
      }
    }
    return last;
  }

  void unpack() {
    for (const ExchangeBlock& b : blocks_) {
      if (b.to != own_ || b.from == own_ || !slot_of(b)) continue;
      writer_.copy(b.number, held_.at(b.number), Spot::in_output());
    }
  }

  Rank own_;
  std::span<const ExchangeBlock> blocks_;
  const ExchangeSides& sides_;
  ScheduleWriter writer_;
  std::map<std::int32_t, Spot> slots_;  ///< by block
  std::map<std::int32_t, Held> held_;   ///< by block
};

// ---- costs -------------------------------------------------------------------------------------

/// Seconds that each rank sends and receives.
class ExchangeTimes {
 public:
  ExchangeTimes(const Places& places, const CollectiveRates& rates)
      : places_(places), rates_(rates), both_(2 * static_cast<std::size_t>(places.size()), 0.0) {}

  void add(Rank from, Rank to, double bytes) {
    if (from == to) return;
    const bool is_near = places_[from].host == places_[to].host;
    const auto level = static_cast<std::size_t>(is_near ? Level::host : Level::network);
    const double seconds = rates_.levels.at(level).seconds(bytes);
    both_[2 * static_cast<std::size_t>(from.value())] += seconds;
    both_[2 * static_cast<std::size_t>(to.value()) + 1] += seconds;
  }
  [[nodiscard]] double longest() const { return std::ranges::max(both_); }

 private:
  const Places& places_;
  const CollectiveRates& rates_;
  std::vector<double> both_;
};

using PairBytes = std::map<std::pair<Rank, Rank>, double>;

PairBytes by_pairs(std::span<const ExchangeLoad> loads) {
  PairBytes pairs;
  for (const ExchangeLoad& load : loads) pairs[{load.from, load.to}] += load.bytes;
  return pairs;
}

double seconds_aggregated(std::span<const ExchangeLoad> loads, const Places& places,
                          const CollectiveRates& rates) {
  const std::vector<Rank> leaders = host_leaders(places);
  const auto leader_of = [&](Rank r) { return leaders[static_cast<std::size_t>(r.value())]; };
  PairBytes gathered;
  PairBytes sent;
  PairBytes scattered;
  ExchangeTimes first(places, rates);
  for (const ExchangeLoad& load : loads) {
    const Rank from = leader_of(load.from);
    const Rank to = leader_of(load.to);
    if (from == to) {
      first.add(load.from, load.to, load.bytes);
      continue;
    }
    gathered[{load.from, from}] += load.bytes;
    sent[{from, to}] += load.bytes;
    scattered[{to, load.to}] += load.bytes;
  }
  for (const auto& [pair, bytes] : gathered) first.add(pair.first, pair.second, bytes);
  double seconds = first.longest();
  for (const PairBytes* stage : {&sent, &scattered}) {
    ExchangeTimes times(places, rates);
    for (const auto& [pair, bytes] : *stage) times.add(pair.first, pair.second, bytes);
    seconds += times.longest();
  }
  return seconds;
}

/// Of messages from all ranks to all ranks.
double seconds_of_all(std::span<const ExchangeLoad> loads, const Places& places,
                      const CollectiveRates& rates, bool is_padded) {
  const PairBytes pairs = by_pairs(loads);
  double longest = 0;
  for (const auto& [pair, bytes] : pairs) longest = std::max(longest, bytes);
  ExchangeTimes times(places, rates);
  for (Rank from{0}; from < Rank{places.size()}; ++from) {
    for (Rank to{0}; to < Rank{places.size()}; ++to) {
      const auto found = pairs.find({from, to});
      const double bytes = found == pairs.end() ? 0 : found->second;
      times.add(from, to, is_padded ? longest : bytes);
    }
  }
  return times.longest();
}

double seconds_of(ExchangeWay way, std::span<const ExchangeLoad> loads, const Places& places,
                  const CollectiveRates& rates) {
  switch (way) {
    case ExchangeWay::neighbours: {
      ExchangeTimes times(places, rates);
      for (const ExchangeLoad& load : loads) times.add(load.from, load.to, load.bytes);
      return times.longest();
    }
    case ExchangeWay::aggregated:
      return seconds_aggregated(loads, places, rates);
    case ExchangeWay::alltoallv:
      return seconds_of_all(loads, places, rates, false);
    case ExchangeWay::alltoall:
      break;
  }
  return seconds_of_all(loads, places, rates, true);
}

}  // namespace

std::string_view name_of(ExchangeWay way) {
  return exchange_way_names.at(static_cast<std::size_t>(way));
}

std::optional<ExchangeWay> exchange_way_of(std::string_view name) {
  if (name == "auto") return std::nullopt;
  const auto found = std::ranges::find(exchange_way_names, name);
  require(found != exchange_way_names.end(),
          "'{}' is no method of exchanges; there are auto, neighbours, aggregated, alltoallv and "
          "alltoall",
          name);
  return static_cast<ExchangeWay>(found - exchange_way_names.begin());
}

Receives receives_of(std::string_view name) {
  require(name == "early" || name == "late", "receives are posted 'early' or 'late', and not '{}'",
          name);
  return name == "early" ? Receives::early : Receives::late;
}

std::vector<Rank> host_leaders(const Places& places) {
  std::map<std::int32_t, Rank> lowest;
  std::vector<Rank> leaders;
  for (Rank r{0}; r < Rank{places.size()}; ++r) {
    leaders.push_back(lowest.try_emplace(places[r].host, r).first->second);
  }
  return leaders;
}

Schedule make_exchange(Rank rank, std::span<const ExchangeBlock> blocks, const Places& places,
                       ExchangeWay way, Receives receives, const ExchangeSides& sides) {
  const MessagePlanner planner(rank, blocks, places);
  const MessagePlan plan = way == ExchangeWay::aggregated ? planner.aggregated() : planner.direct();
  return ExchangeWriter(rank, blocks, sides).write(plan, receives);
}

ExchangeChoice choose_exchange(std::span<const ExchangeLoad> loads, const Places& places,
                               const CollectiveRates& rates, std::optional<ExchangeWay> wanted) {
  std::vector<ExchangeWay> ways{ExchangeWay::neighbours, ExchangeWay::aggregated};
  if (wanted && std::ranges::find(ways, *wanted) == ways.end()) ways.push_back(*wanted);
  std::vector<std::pair<double, ExchangeWay>> times;
  for (const ExchangeWay way : ways) times.emplace_back(seconds_of(way, loads, places, rates), way);
  // Of equals the simpler one.
  std::ranges::stable_sort(times, {}, [](const auto& one) { return one.first; });
  ExchangeChoice choice;
  choice.way = wanted.value_or(times.front().second);
  for (const auto& [seconds, way] : times) {
    choice.considered.push_back({std::string(name_of(way)), seconds});
    if (way == choice.way) choice.seconds = seconds;
  }
  return choice;
}

}  // namespace heddle::collectives
