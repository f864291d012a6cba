#include "tests/collectives/simulation/program.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <random>

#include "tests/collectives/schedule/random_places.hpp"
#include "tests/collectives/simulation/cells.hpp"

namespace heddle::testing {
namespace {

constexpr std::array<std::string_view, forms> form_names{"barrier",
                                                         "broadcast",
                                                         "scatter",
                                                         "gather",
                                                         "all_gather",
                                                         "all_gather in place",
                                                         "reduce",
                                                         "all_reduce",
                                                         "all_reduce in place",
                                                         "reduce_scatter",
                                                         "all_to_all",
                                                         "scan",
                                                         "scan in place",
                                                         "exclusive_scan",
                                                         "scatter with lists",
                                                         "gather with lists",
                                                         "all_gather with lists",
                                                         "all_to_all with lists",
                                                         "reduce_scatter with counts"};

/// Those of real numbers, and behind them those of integers only.
constexpr std::uint32_t real_operations = 4;
constexpr std::uint32_t all_operations = 10;
/// Larger programs take long enough without.
constexpr std::int32_t nodes_with_devices_max = 12;

class Maker {
 public:
  Maker(std::uint64_t seed, Fault fault) : random_(static_cast<std::uint32_t>(seed * 4 + 1)) {
    made_.fault = fault;
  }

  Program make() {
    choose_nodes();
    choose_rates();
    choose_devices();
    make_groups();
    const std::int32_t nodes = made_.nodes();
    const std::int32_t most = nodes <= 16 ? 24 : nodes <= 64 ? 8 : 3;
    const std::int32_t actions = 1 + below(most);
    made_.under_way_max = chance(4) ? 64 : 1 + below(8);
    made_.lateness = chance(3) ? 0 : 1U << below(12);
    for (std::int32_t a = 0; a < actions; ++a) add_action();
    if (made_.fault == Fault::wrong_call || made_.fault == Fault::misfit) add_fault();
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(n));
  }
  /// 1 of n.
  [[nodiscard]] bool chance(std::int32_t n) { return below(n) == 0; }

  void choose_nodes() {
    const std::int32_t kind = below(1000);
    std::int32_t nodes = 1 + below(12);
    if (kind < 60) nodes = 13 + below(20);
    if (kind < 12) nodes = 33 + below(32);
    if (kind < 2) nodes = 256;
    if (made_.fault != Fault::none) nodes = std::max(2, nodes);
    if (made_.fault == Fault::device) nodes = std::min(nodes, nodes_with_devices_max);
    made_.places = collectives::random_places(random_, nodes);
    if (nodes <= 16 && chance(4)) {
      for (collectives::RankPlace& place : made_.places) place.host = 0;
    }
  }

  /// Any: so that any algorithm is chosen.
  void choose_rates() {
    const auto times = [&](double least) { return least * static_cast<double>(1 << below(12)); };
    for (collectives::LevelRates& level : made_.rates.levels) {
      level = {times(1e-7), times(1e7), 64 << below(8), times(1e-7), times(1e7)};
    }
    made_.rates.reduced_bytes_per_s = times(1e7);
  }

  void choose_devices() {
    const bool must_have = made_.fault == Fault::device;
    if (made_.nodes() > nodes_with_devices_max || (!must_have && !chance(4))) return;
    made_.have_devices = must_have || !chance(4);
    for (std::int32_t n = 0; n < made_.nodes(); ++n) {
      made_.devices.push_back(made_.have_devices ? 1 : below(2));
      if (made_.devices.back() == 1 && chance(6)) made_.devices.back() = 2;
    }
    made_.refuses_mappings = chance(4);
    if (chance(2)) return;
    // Any: so that any way is chosen.
    const auto rate = [&] { return 1e7 * static_cast<double>(1 << below(16)); };
    collectives::DeviceRates& rates = made_.rates.devices;
    rates.peer_bytes_per_s = rate();
    rates.to_host_bytes_per_s = rates.to_device_bytes_per_s = rate();
    rates.host_bytes_per_s = rate();
    rates.turn_s = chance(2) ? 0 : 1e-4;
  }

  void make_groups() {
    GroupPlan world;
    for (std::int32_t n = 0; n < made_.nodes(); ++n) world.nodes.push_back(n);
    made_.groups.push_back(world);
    const std::int32_t makings = made_.nodes() > 64 ? below(2) : below(4);
    made_.lanes = 1 + below(3);
    for (std::int32_t m = 0; m < makings; ++m) {
      const auto parent = below(static_cast<std::int32_t>(made_.groups.size()));
      chance(2) ? split(parent) : make_subset(parent);
    }
  }

  GroupPlan& add_group(std::int32_t parent) {
    GroupPlan plan;
    plan.parent = parent;
    plan.lane = below(made_.lanes);
    return made_.groups.emplace_back(std::move(plan));
  }

  void split(std::int32_t parent) {
    const std::vector<std::int32_t> nodes = made_.group(parent).nodes;
    Making making;
    making.parent = parent;
    making.is_split = true;
    const std::int32_t colors = 1 + below(4);
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      making.colors.push_back(below(colors + 1) - 1);
      making.keys.push_back(below(7) - 3);
    }
    for (std::int32_t color = 0; color < colors; ++color) {
      std::vector<std::int32_t> ranks;
      for (std::size_t r = 0; r < nodes.size(); ++r) {
        if (making.colors[r] == color) ranks.push_back(static_cast<std::int32_t>(r));
      }
      making.groups.push_back(-1);
      if (ranks.empty()) continue;
      std::ranges::stable_sort(
          ranks, {}, [&](std::int32_t r) { return making.keys[static_cast<std::size_t>(r)]; });
      making.groups.back() = static_cast<std::int32_t>(made_.groups.size());
      GroupPlan& plan = add_group(parent);
      for (const std::int32_t r : ranks) plan.nodes.push_back(nodes[static_cast<std::size_t>(r)]);
    }
    made_.makings.push_back(std::move(making));
  }

  void make_subset(std::int32_t parent) {
    const std::vector<std::int32_t> nodes = made_.group(parent).nodes;
    Making making;
    making.parent = parent;
    making.ranks.resize(nodes.size());
    std::iota(making.ranks.begin(), making.ranks.end(), 0);
    std::ranges::shuffle(making.ranks, random_);
    making.ranks.resize(1 +
                        static_cast<std::size_t>(below(static_cast<std::int32_t>(nodes.size()))));
    making.groups.push_back(static_cast<std::int32_t>(made_.groups.size()));
    GroupPlan& plan = add_group(parent);
    for (const std::int32_t r : making.ranks) {
      plan.nodes.push_back(nodes[static_cast<std::size_t>(r)]);
    }
    made_.makings.push_back(std::move(making));
  }

  /// About as many scalars in all as take some milliseconds.
  [[nodiscard]] std::int64_t cells_for(std::int64_t ranks) {
    const std::int64_t units_max = std::max<std::int64_t>(1, 12000 / (ranks * ranks));
    if (chance(10)) return cells_unit * below(static_cast<std::int32_t>(units_max));
    return cells_unit * std::min<std::int64_t>(units_max, below(4));
  }

  [[nodiscard]] std::string algorithm_for(Form form) {
    static constexpr std::array<const char*, 5> trees{"flat", "chain", "binary", "binomial",
                                                      "split_binary"};
    if (chance(3)) return "auto";
    if (form == Form::all_to_all) {
      static constexpr std::array<const char*, 3> ways{"pairwise", "leaders", "bruck"};
      return ways.at(static_cast<std::size_t>(below(3)));
    }
    const bool is_all = form == Form::all_reduce || form == Form::all_reduce_in_place;
    if (is_all && chance(2)) return chance(2) ? "scatter_gather" : "reduce_broadcast";
    return trees.at(static_cast<std::size_t>(below(5)));
  }

  [[nodiscard]] Action random_action(std::int32_t group) {
    Action action;
    action.group = group;
    action.form = static_cast<Form>(below(forms));
    const auto ranks = static_cast<std::int32_t>(made_.group(group).nodes.size());
    static constexpr std::array<Scalar, 6> scalars{Scalar::float64, Scalar::float64,
                                                   Scalar::float64, Scalar::float32,
                                                   Scalar::int32,   Scalar::uint8};
    action.scalar = scalars.at(static_cast<std::size_t>(below(6)));
    action.operation = static_cast<std::uint32_t>(below(60)) % operations_of(action.scalar);
    action.root = below(ranks);
    action.cells = cells_for(ranks);
    action.algorithm = chance(2) ? "auto" : algorithm_for(action.form);
    const std::int64_t bytes = action.cells * size_of(action.scalar);
    if (chance(3) && bytes > 0) {
      action.fragment_bytes = bytes / (1 + below(16)) + below(64);
    }
    action.is_begun = chance(2);
    action.seed = random_();
    if (!made_.devices.empty()) choose_home(action);
    return action;
  }

  void choose_home(Action& action) {
    action.home = static_cast<Home>(below(3));
    if (!may_go_by_devices(action) || chance(2)) return;
    const bool can_go_direct = action.home == Home::devices && !made_.refuses_mappings;
    action.algorithm = chance(2) ? "gsb" : "btb";
    if (can_go_direct && chance(3)) action.algorithm = "direct";
    static constexpr std::array<Copies, 4> copies{Copies::automatic, Copies::by_speed,
                                                  Copies::mapped, Copies::staged};
    action.copies = copies.at(static_cast<std::size_t>(below(4)));
  }

  /// All ranks are on one host and have devices, and the operation has the ways by buffers.
  [[nodiscard]] bool may_go_by_devices(const Action& action) const {
    const std::vector<std::int32_t>& nodes = made_.group(action.group).nodes;
    const auto host = [&](std::int32_t node) {
      return made_.places[static_cast<std::size_t>(node)].host;
    };
    const bool is_kind = action.form == Form::broadcast || action.form == Form::reduce ||
                         action.form == Form::all_reduce ||
                         action.form == Form::all_reduce_in_place;
    return is_kind && made_.have_devices && action.cells > 0 && nodes.size() > 1 &&
           nodes.size() <= 16 && std::ranges::all_of(nodes, [&](std::int32_t node) {
             return host(node) == host(nodes.front());
           });
  }

  void add_action() {
    Action action = random_action(below(static_cast<std::int32_t>(made_.groups.size())));
    action.number = static_cast<std::int32_t>(made_.actions.size());
    made_.actions.push_back(std::move(action));
  }

  /// One member of a group of several calls something else.
  void add_fault() {
    std::vector<std::int32_t> possible;
    for (const Action& action : made_.actions) {
      if (made_.group(action.group).nodes.size() > 1) possible.push_back(action.number);
    }
    if (possible.empty()) {
      made_.actions.push_back(random_action(0));
      made_.actions.back().number = static_cast<std::int32_t>(made_.actions.size()) - 1;
      possible.push_back(made_.actions.back().number);
    }
    made_.fault_action =
        possible[static_cast<std::size_t>(below(static_cast<std::int32_t>(possible.size())))];
    Action& action = made_.actions[static_cast<std::size_t>(made_.fault_action)];
    action.cells = std::max(action.cells, cells_unit);
    const auto ranks = static_cast<std::int32_t>(made_.group(action.group).nodes.size());
    made_.fault_rank = below(ranks);
    made_.fault_call = made_.fault == Fault::misfit ? misfit_of(action, ranks) : action;
    made_.fault_call.is_wrong = made_.fault == Fault::wrong_call;
  }

  [[nodiscard]] Action misfit_of(const Action& action, std::int32_t ranks) {
    Action other = action;
    switch (below(5)) {
      case 0:
        if (!is_rooted(action.form)) break;
        other.root = (action.root + 1 + below(ranks - 1)) % ranks;
        return other;
      case 1:
        if (!reduces(action.form)) break;
        other.operation = (action.operation + 1) % operations_of(action.scalar);
        return other;
      case 2:
        if (is_listed(action.form) || action.form == Form::barrier) break;
        other.cells += chance(2) || action.cells == cells_unit ? cells_unit : -cells_unit;
        return other;
      case 3:
        if (is_listed(action.form) || action.form == Form::barrier) break;
        other.scalar = action.scalar == Scalar::float64 ? Scalar::float32 : Scalar::float64;
        other.operation = action.operation % real_operations;
        return other;
      default:
        break;
    }
    other.form = static_cast<Form>((static_cast<std::int32_t>(action.form) + 1 + below(forms - 1)) %
                                   static_cast<std::int32_t>(forms));
    return other;
  }

  std::mt19937 random_;
  Program made_;
};

}  // namespace

std::string_view name_of(Form form) {
  return form_names.at(static_cast<std::size_t>(form));
}

bool is_rooted(Form form) {
  switch (form) {
    case Form::broadcast:
    case Form::scatter:
    case Form::gather:
    case Form::reduce:
    case Form::scatter_list:
    case Form::gather_list:
      return true;
    default:
      return false;
  }
}

bool reduces(Form form) {
  switch (form) {
    case Form::reduce:
    case Form::all_reduce:
    case Form::all_reduce_in_place:
    case Form::reduce_scatter:
    case Form::reduce_scatter_counts:
    case Form::scan:
    case Form::scan_in_place:
    case Form::exclusive_scan:
      return true;
    default:
      return false;
  }
}

bool is_listed(Form form) {
  return form >= Form::scatter_list;
}

std::uint32_t operations_of(Scalar scalar) {
  return scalar == Scalar::float64 || scalar == Scalar::float32 ? real_operations : all_operations;
}

ReduceOperation operation_of(const Action& action) {
  using R = ReduceOperation;
  static const std::array<R, all_operations> all{
      R::sum(),    R::product(), R::minimum(),     R::maximum(),    R::bit_and(),
      R::bit_or(), R::bit_xor(), R::logical_and(), R::logical_or(), R::logical_xor()};
  return all.at(action.operation);
}

std::string Action::describe() const {
  return fmt::format("{}: {}{} of {} {} in group {}{}{}, {}{}{}", number, is_begun ? "begin " : "",
                     name_of(form), cells, heddle::name_of(scalar), group,
                     is_rooted(form) ? fmt::format(" with root {}", root) : "",
                     reduces(form) ? fmt::format(" by {}", operation_of(*this).name()) : "",
                     algorithm,
                     home == Home::hosts     ? ""
                     : home == Home::devices ? ", on devices"
                                             : ", on hosts and devices",
                     fragment_bytes > 0 ? fmt::format(", fragments of {} B", fragment_bytes) : "");
}

std::int32_t GroupPlan::rank_of(std::int32_t node) const {
  const auto found = std::ranges::find(nodes, node);
  return found == nodes.end() ? -1 : static_cast<std::int32_t>(found - nodes.begin());
}

std::string Program::describe() const {
  std::string all = fmt::format("{} nodes on hosts", nodes());
  for (const collectives::RankPlace& place : places) all += fmt::format(" {}", place.host);
  if (!devices.empty()) {
    all += fmt::format("; devices {}{}", fmt::join(devices, " "),
                       refuses_mappings ? ", mappings are refused" : "");
  }
  all += fmt::format("; {} lanes, {} under way, {} steps late\n", lanes, under_way_max, lateness);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    all += fmt::format("  group {} of group {}, lane {}: nodes {}\n", g, groups[g].parent,
                       groups[g].lane, fmt::join(groups[g].nodes, " "));
  }
  for (const Action& action : actions) {
    all += fmt::format("  {}\n", action.describe());
    if (action.number != fault_action) continue;
    all += fmt::format("  !! rank {} calls {}{}\n", fault_rank, fault_call.describe(),
                       fault_call.is_wrong ? ", with a negative count" : "");
  }
  return all;
}

Program random_program(std::uint64_t seed, Fault fault) {
  return Maker(seed, fault).make();
}

}  // namespace heddle::testing
