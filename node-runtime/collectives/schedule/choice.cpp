#include "node-runtime/collectives/schedule/choice.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/core.h>

#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int32_t in_flight_usual = 4;
constexpr double fragments_considered[] = {32 << 10, 128 << 10, 512 << 10, 2 << 20};

constexpr std::string_view kind_names[] = {
    "barrier",    "broadcast",      "scatter",    "gather", "all_gather",    "reduce",
    "all_reduce", "reduce_scatter", "all_to_all", "scan",   "exclusive_scan"};
constexpr std::string_view all_reduce_names[] = {"reduce_broadcast", "scatter_gather"};
constexpr std::string_view all_to_all_names[] = {"pairwise", "leaders", "bruck"};
constexpr std::string_view device_way_names[] = {"direct", "gsb", "btb"};
constexpr std::string_view level_names[] = {"gpu", "socket", "host", "network"};

double rounds_of(std::int32_t size) {
  return static_cast<double>(std::bit_width(static_cast<std::uint32_t>(std::max(1, size) - 1)));
}

/// A pipeline's first fragment, and each other one.
struct Pace {
  double first = 0;
  double next = 0;

  [[nodiscard]] double of(double fragments) const { return first + (fragments - 1) * next; }
  Pace& operator+=(const Pace& other) {
    first += other.first;
    next += other.next;
    return *this;
  }
};

/// A tree over `size` members, each message of which takes `each`.
Pace pace_of(Tree tree, std::int32_t size, double each) {
  if (size <= 1) return {};
  if (size == 2) return {each, each};
  const auto others = static_cast<double>(size - 1);
  const double depth = std::floor(std::log2(static_cast<double>(size)));
  switch (tree) {
    case Tree::flat:
      return {others * each, others * each};
    case Tree::chain:
      return {others * each, each};
    case Tree::binomial:
      return {rounds_of(size) * each, rounds_of(size) * each};
    case Tree::binary:
      return {2 * depth * each, 2 * each};
    case Tree::split_binary:
      // A half down each side, then the other half from the partner.
      return {(depth + 1) * each, 1.5 * each};
  }
  return {};
}

class Chooser {
 public:
  Chooser(const CollectiveQuery& query, const CollectiveRates& rates,
          const CollectiveOverrides& overrides)
      : query_(query), rates_(rates), overrides_(overrides) {}

  [[nodiscard]] CollectiveChoice choose() {
    switch (query_.kind) {
      case CollectiveKind::barrier:
        consider_trees(0, 0, 2, "");
        break;
      case CollectiveKind::broadcast:
        consider_fragments(query_.bytes, 0, 1, "");
        break;
      case CollectiveKind::scatter:
      case CollectiveKind::gather:
        consider_blocks();
        break;
      case CollectiveKind::reduce:
        consider_fragments(query_.bytes, query_.bytes, 1, "");
        break;
      case CollectiveKind::all_reduce:
        consider_all_reduce();
        break;
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
        consider_rounds(query_.ranks - 1, query_.bytes);
        break;
      case CollectiveKind::all_to_all:
        consider_all_to_all();
        break;
      case CollectiveKind::scan:
      case CollectiveKind::exclusive_scan:
        consider_rounds(rounds_of(query_.ranks), query_.bytes);
        break;
    }
    std::ranges::stable_sort(made_, {}, &CollectiveChoice::seconds);
    CollectiveChoice chosen = made_.front();
    chosen.considered.clear();
    for (CollectiveChoice& one : made_) {
      chosen.considered.push_back(std::move(one.considered.front()));
    }
    return chosen;
  }

 private:
  [[nodiscard]] bool is_there(std::size_t level) const { return query_.sizes.at(level) > 1; }
  [[nodiscard]] double reduce_seconds(double bytes) const {
    return bytes / rates_.reduced_bytes_per_s;
  }
  void add(CollectiveChoice choice, double seconds, std::string text) {
    choice.seconds = seconds;
    choice.considered = {{std::move(text), seconds}};
    made_.push_back(std::move(choice));
  }

  /// The best tree of each level for a message in fragments, which passes the trees `passes` times.
  void consider_trees(double bytes, double fragment, double passes, const std::string& prefix,
                      double reduced = 0, CollectiveChoice choice = {}) {
    const double fragments = fragment > 0 ? std::max(1.0, std::ceil(bytes / fragment)) : 1;
    const double piece = bytes / fragments;
    Pace all;
    std::string text = prefix;
    for (std::size_t level = 0; level < query_.sizes.size(); ++level) {
      if (!is_there(level)) continue;
      // One of the passes is that of the reduction, whose messages may have several values.
      const auto each = [&](Tree tree) {
        return rates_.levels.at(level).seconds(piece) * (passes - 1) / passes +
               rates_.levels.at(level).seconds(piece * values(level, tree)) / passes +
               reduce_seconds(reduced / fragments);
      };
      const std::optional<Tree> wanted = wanted_tree(level);
      Tree best = wanted.value_or(Tree::binomial);
      Pace pace = pace_of(best, query_.sizes.at(level), each(best));
      for (const Tree tree : all_trees) {
        // For halves there must be something to halve.
        if (wanted || (tree == Tree::split_binary && bytes == 0)) continue;
        const Pace other = pace_of(tree, query_.sizes.at(level), each(tree));
        if (other.of(fragments) >= pace.of(fragments)) continue;
        best = tree;
        pace = other;
      }
      choice.trees.at(level) = best;
      all += pace;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", level_names[level], name_of(best));
    }
    if (text.empty()) text = "alone";
    choice.fragment_bytes = piece;
    if (fragments > 1) {
      choice.in_flight = in_flight_usual;
      text += fmt::format(", fragments of {}", format_bytes(static_cast<std::uint64_t>(piece)));
    }
    add(choice, passes * all.of(fragments), std::move(text));
  }

  void consider_fragments(double bytes, double reduced, double passes, const std::string& prefix,
                          const CollectiveChoice& choice = {}) {
    if (overrides_.fragment_bytes) {
      const auto wanted = static_cast<double>(*overrides_.fragment_bytes);
      return consider_trees(bytes, wanted, passes, prefix, reduced, choice);
    }
    consider_trees(bytes, 0, passes, prefix, reduced, choice);
    for (const double fragment : fragments_considered) {
      if (fragment < bytes) consider_trees(bytes, fragment, passes, prefix, reduced, choice);
    }
  }

  /// Down or up the trees, each time with all blocks that are behind.
  void consider_blocks() {
    CollectiveChoice choice;
    // Whoever does not know the blocks of others cannot pass them on.
    const std::vector<Tree> trees = !query_.is_known   ? std::vector{Tree::flat}
                                    : overrides_.tree  ? std::vector{*overrides_.tree}
                                    : overrides_.trees ? std::vector{Tree::binomial}
                                                       : std::vector{Tree::binomial, Tree::flat};
    for (const Tree tree : trees) {
      double seconds = 0;
      for (std::size_t level = 0; level < query_.sizes.size(); ++level) {
        if (!is_there(level)) continue;
        const Tree here = overrides_.trees ? overrides_.trees->at(level) : tree;
        choice.trees.at(level) = here;
        const LevelRates& rates = rates_.levels.at(level);
        const double others = query_.sizes.at(level) - 1;
        const double messages = here == Tree::flat ? others : rounds_of(query_.sizes.at(level));
        const double bytes = query_.bytes * others;
        seconds += messages * rates.seconds(bytes / std::max(1.0, messages));
      }
      if (!query_.is_known) choice.trees.fill(Tree::flat);
      choice.fragment_bytes = query_.bytes;
      add(choice, seconds, std::string(name_of(tree)));
    }
  }

  /// As many rounds of messages of `bytes`, on the slowest level.
  void consider_rounds(double rounds, double bytes) {
    CollectiveChoice choice;
    if (overrides_.tree) choice.trees.fill(*overrides_.tree);
    choice.fragment_bytes = bytes;
    const bool sends_values = query_.kind == CollectiveKind::reduce_scatter;
    const double message = sends_values ? slowest_of_values(bytes, choice.trees) : slowest(bytes);
    const double reduced = query_.kind == CollectiveKind::all_gather ? 0 : bytes;
    add(choice, rounds * (message + reduce_seconds(reduced)), "rounds");
  }

  void consider_all_reduce() {
    const double bytes = query_.bytes;
    if (overrides_.all_reduce != AllReduce::scatter_gather) {
      CollectiveChoice choice;
      choice.all_reduce = AllReduce::reduce_broadcast;
      consider_fragments(bytes, bytes / 2, 2, std::string(all_reduce_names[0]), choice);
    }
    if (overrides_.all_reduce == AllReduce::reduce_broadcast || overrides_.tree) return;
    const double block = bytes / query_.ranks;
    if (overrides_.fragment_bytes) {
      return consider_ring(block, static_cast<double>(*overrides_.fragment_bytes));
    }
    consider_ring(block, block);
    // Each fragment is a message to and from every other rank: few of them.
    constexpr double least = 512 << 10;
    for (const double fragment : fragments_considered) {
      if (least <= fragment && fragment < block) consider_ring(block, fragment);
    }
  }

  /// All send to all others, before the reductions and behind them; fragments overlap.
  void consider_ring(double block, double fragment) {
    CollectiveChoice choice;
    choice.all_reduce = AllReduce::scatter_gather;
    choice.trees.fill(Tree::flat);
    const double fragments = fragment > 0 ? std::max(1.0, std::ceil(block / fragment)) : 1;
    const double piece = block / fragments;
    choice.fragment_bytes = piece;
    const auto messages = [&](double of) {
      return slowest_of_values(of, choice.trees) + slowest(of);
    };
    const auto others = static_cast<double>(query_.ranks - 1);
    const double first = others * (messages(piece) + reduce_seconds(piece));
    std::string text(all_reduce_names[1]);
    if (fragments > 1) {
      choice.in_flight = in_flight_usual;
      text += fmt::format(", fragments of {}", format_bytes(static_cast<std::uint64_t>(piece)));
    }
    const double bytes_alone = others * (messages(2 * piece) - messages(piece));
    const double next = std::max(first / in_flight_usual, bytes_alone);
    add(choice, first + (fragments - 1) * next, std::move(text));
  }

  void consider_all_to_all() {
    const auto others = static_cast<double>(query_.ranks - 1);
    for (const AllToAll way : {AllToAll::pairwise, AllToAll::leaders, AllToAll::bruck}) {
      if (overrides_.all_to_all && *overrides_.all_to_all != way) continue;
      if (!query_.is_known && way != AllToAll::pairwise) continue;
      CollectiveChoice choice;
      choice.all_to_all = way;
      choice.fragment_bytes = query_.bytes;
      double seconds = others * slowest(query_.bytes);
      if (way != AllToAll::pairwise) {
        // All that a group has goes by its leader.
        double inner = 1;
        seconds = 0;
        for (std::size_t level = 0; level + 1 < query_.sizes.size(); ++level) {
          if (!is_there(level)) continue;
          const double below = query_.sizes.at(level) - 1;
          seconds += 2 * below * rates_.levels.at(level).seconds(query_.bytes * others * inner);
          inner *= query_.sizes.at(level);
        }
        const std::int32_t hosts = query_.sizes.back();
        const LevelRates& network = rates_.levels.back();
        const double pair = query_.bytes * inner * inner;
        if (way == AllToAll::leaders) {
          seconds += (hosts - 1) * network.seconds(pair);
        } else {
          seconds += rounds_of(hosts) * network.seconds(pair * hosts / 2);
        }
      }
      add(choice, seconds, std::string(all_to_all_names[static_cast<std::size_t>(way)]));
    }
    if (made_.empty()) {
      throw Error(ErrorCode::usage,
                  "all_to_all with a buffer for each rank goes pairwise: other ways would need all "
                  "counts on all ranks");
    }
  }

  [[nodiscard]] std::optional<Tree> wanted_tree(std::size_t level) const {
    return overrides_.trees ? std::optional(overrides_.trees->at(level)) : overrides_.tree;
  }
  [[nodiscard]] double values(std::size_t level, Tree tree) const {
    return query_.values.at(level).at(static_cast<std::size_t>(tree));
  }
  /// The slowest message of a reduction, whatever its level.
  [[nodiscard]] double slowest_of_values(double bytes, const LevelTrees& trees) const {
    double seconds = 0;
    for (std::size_t level = 0; level < query_.sizes.size(); ++level) {
      if (!is_there(level)) continue;
      const double sent = bytes * values(level, trees.at(level));
      seconds = std::max(seconds, rates_.levels.at(level).seconds(sent));
    }
    return seconds;
  }
  [[nodiscard]] double slowest(double bytes) const {
    double seconds = 0;
    for (std::size_t level = 0; level < query_.sizes.size(); ++level) {
      if (is_there(level)) seconds = std::max(seconds, rates_.levels.at(level).seconds(bytes));
    }
    return seconds;
  }

  const CollectiveQuery& query_;
  const CollectiveRates& rates_;
  const CollectiveOverrides& overrides_;
  std::vector<CollectiveChoice> made_;
};

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(DeviceWay way) {
  return device_way_names[static_cast<std::size_t>(way)];
}

double LevelRates::seconds(double bytes) const {
  return bytes <= static_cast<double>(short_bytes) ? short_s + bytes / short_bytes_per_s
                                                   : long_s + bytes / long_bytes_per_s;
}

CollectiveOverrides overrides_of(std::string_view algorithm) {
  CollectiveOverrides overrides;
  if (algorithm.empty() || algorithm == "auto") return overrides;
  std::string known = "auto";
  for (const Tree tree : all_trees) {
    if (name_of(tree) == algorithm) overrides.tree = tree;
    known += fmt::format(", {}", name_of(tree));
  }
  for (const AllReduce way : {AllReduce::reduce_broadcast, AllReduce::scatter_gather}) {
    const std::string_view name = all_reduce_names[static_cast<std::size_t>(way)];
    if (name == algorithm) overrides.all_reduce = way;
    known += fmt::format(", {}", name);
  }
  for (const AllToAll way : {AllToAll::pairwise, AllToAll::leaders, AllToAll::bruck}) {
    const std::string_view name = all_to_all_names[static_cast<std::size_t>(way)];
    if (name == algorithm) overrides.all_to_all = way;
    known += fmt::format(", {}", name);
  }
  for (const DeviceWay way : device_ways) {
    if (name_of(way) == algorithm) overrides.device_way = way;
    known += fmt::format(", {}", name_of(way));
  }
  if (overrides.tree || overrides.all_reduce || overrides.all_to_all || overrides.device_way) {
    return overrides;
  }
  throw Error(ErrorCode::usage,
              fmt::format("'{}' is no algorithm of collectives; there are {}", algorithm, known));
}

double CollectiveChoice::seconds_by(std::string_view way) const {
  const auto named = [&](std::string_view name) {
    return std::ranges::find(on_devices, name, &DeviceCandidate::way);
  };
  auto found = way.empty() ? named(is_on_device ? "steps" : "") : named(way);
  if (way.starts_with("gsb")) found = named("gsb");
  return found == on_devices.end() ? seconds : found->seconds;
}

std::string CollectiveChoice::text() const {
  return considered.front().text;
}

CollectiveChoice choose_collective(const CollectiveQuery& query, const CollectiveRates& rates,
                                   const CollectiveOverrides& overrides) {
  return Chooser(query, rates, overrides).choose();
}

CollectiveChoice choose_in_order(CollectiveQuery query, const CollectiveRates& rates,
                                 const CollectiveOverrides& overrides, const OrderQuery& order) {
  if (order.values == nullptr) return choose_collective(query, rates, overrides);
  const auto choose = [&](Order in) {
    query.values = order.values->at(static_cast<std::size_t>(in));
    CollectiveChoice choice = choose_collective(query, rates, overrides);
    choice.order = in;
    return choice;
  };
  const Order unwanted = order.wanted == Order::ranks ? Order::places : Order::ranks;
  CollectiveChoice chosen = choose(order.wanted);
  chosen.seconds_in_order.fill(chosen.seconds);
  if (order.values->front() == order.values->back()) return chosen;
  CollectiveChoice other = choose(unwanted);
  const double seconds = other.seconds;
  other.seconds_in_order = chosen.seconds_in_order;
  if (order.is_exact && seconds < chosen.seconds) chosen = std::move(other);
  chosen.seconds_in_order.at(static_cast<std::size_t>(unwanted)) = seconds;
  return chosen;
}

}  // namespace heddle::collectives
