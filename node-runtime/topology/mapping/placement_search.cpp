#include "node-runtime/topology/mapping/placement_search.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/topology/mapping/bottleneck.hpp"
#include "node-runtime/topology/mapping/cost_tree.hpp"
#include "node-runtime/topology/mapping/enumeration.hpp"
#include "node-runtime/topology/mapping/exchanges.hpp"
#include "node-runtime/topology/mapping/gilmore_lawler.hpp"
#include "node-runtime/topology/mapping/scotch_mapping.hpp"
#include "node-runtime/topology/mapping/tree_subsets.hpp"

namespace heddle {
namespace {

/// Exchanges for 16 slots take 15 ms, for 64 slots 50 ms.
constexpr std::int64_t looks_per_slot = 25'000;
/// Pairs of slots whose routes are walked to compare loads of links, some 15 ns each: 70 ms.
constexpr std::int64_t load_steps = 5'000'000;
/// Enough for 10 slots on 10 GPUs with any costs, in 60 ms; where an exact placement is wanted, for
/// 10 slots on 16 GPUs, in seconds.
constexpr std::int64_t branches_automatic = 50'000;
constexpr std::int64_t branches_exact = 5'000'000;

class PlacementSearch {
 public:
  PlacementSearch(const MappingProblem& problem, const LinkProblem& links,
                  const MapOptions& options, const Placement& order)
      : problem_(problem), links_(links), options_(options), order_(order) {}

  [[nodiscard]] FoundPlacement run() const {
    const bool is_exact = options_.selection == Selection::exact;
    if (options_.selection == Selection::order) return {order_, MappingMethod::order, {}, 0, {}};
    if (options_.selection != Selection::scotch) {
      const std::int64_t branches = is_exact ? branches_exact : branches_automatic;
      auto found =
          options_.objective == Objective::total ? cheapest(branches) : least_loaded(branches);
      if (found) return std::move(*found);
    }
    if (is_exact) refuse();
    FoundPlacement found = scotch();
    if (options_.objective == Objective::bottleneck) lower_loads(found);
    return found;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(
        ErrorCode::usage,
        fmt::format("map_traffic: no exact mapping of {} slots on {} GPUs for the objective {}: "
                    "the limit is {} slots where costs are those of a tree, otherwise {}, and {} "
                    "branches; select 'scotch' or 'auto'",
                    problem_.used, problem_.gpus, name_of(options_.objective), tree_slots_max,
                    enumeration_slots_max, branches_exact));
  }

  [[nodiscard]] std::optional<FoundPlacement> cheapest(std::int64_t branches) const {
    if (const std::optional<CostTree> tree = cost_tree(problem_)) {
      if (auto placement = cheapest_on_tree(problem_, *tree)) {
        const double cost = problem_.cost(*placement);
        return FoundPlacement{std::move(*placement), MappingMethod::tree_subsets, cost, 0, {}};
      }
    }
    if (problem_.used > enumeration_slots_max) return std::nullopt;
    SearchBudget budget{looks_per_slot};
    const Placement start = exchanged(problem_, order_, budget);
    auto placement = cheapest_by_enumeration(problem_, start, branches);
    if (!placement) return std::nullopt;
    const double cost = problem_.cost(*placement);
    return FoundPlacement{std::move(*placement), MappingMethod::enumeration, cost, 0, {}};
  }

  [[nodiscard]] std::optional<FoundPlacement> least_loaded(std::int64_t branches) const {
    if (problem_.used > enumeration_slots_max) return std::nullopt;
    SearchBudget budget{looks_per_slot};
    std::int64_t looks = load_looks();
    const Placement start =
        less_loaded(problem_, links_, exchanged(problem_, order_, budget), looks);
    auto placement = least_loaded_by_enumeration(problem_, links_, start, branches);
    if (!placement) return std::nullopt;
    const double load = links_.largest_load(*placement);
    return FoundPlacement{std::move(*placement), MappingMethod::enumeration, load, 0, {}};
  }

  /// SCOTCH and the plain order first, then by turns random starts and the best so far with some
  /// slots thrown about; from each of them exchanges go downhill.
  [[nodiscard]] FoundPlacement scotch() const {
    FoundPlacement found{order_, MappingMethod::scotch, {}, 0, {}};
    SearchBudget budget{looks_per_slot * problem_.slots};
    double best = problem_.cost(order_);
    const auto try_from = [&](Placement start) {
      Placement end = exchanged(problem_, std::move(start), budget);
      const double cost = problem_.cost(end);
      if (cost >= best * (1 - 1e-12)) return;
      best = cost;
      found.placement = std::move(end);
    };
    const ScotchResult scotch = scotch_mapping(problem_, options_.seed);
    if (scotch.failure.empty()) {
      try_from(problem_.nearest_allowed(scotch.gpu_of));
    } else {
      found.method = MappingMethod::exchanges;
      found.remark =
          fmt::format("SCOTCH gave no mapping ({}), so only exchanges were tried", scotch.failure);
    }
    try_from(order_);
    std::mt19937_64 random(options_.seed);
    for (bool is_random = true; budget.looks > 0; is_random = !is_random) {
      const std::int64_t before = budget.looks;
      try_from(is_random ? problem_.random(random) : shaken(found.placement, random));
      if (budget.looks == before) break;  // one slot or one GPU: there is nothing to exchange
    }
    return found;
  }

  [[nodiscard]] std::int64_t load_looks() const {
    return load_steps / (std::int64_t{problem_.slots} * problem_.slots);
  }

  /// Goes on from the cheapest placement found, the plain order and random ones.
  void lower_loads(FoundPlacement& found) const {
    std::int64_t looks = load_looks();
    Placement best = less_loaded(problem_, links_, found.placement, looks);
    const auto value = [&](const Placement& one) {
      return std::pair(links_.largest_load(one), problem_.cost(one));
    };
    std::mt19937_64 random(options_.seed);
    Placement start = order_;
    while (looks > 0) {
      const std::int64_t before = looks;
      Placement end = less_loaded(problem_, links_, std::move(start), looks);
      if (value(end) < value(best)) best = std::move(end);
      if (looks == before) break;
      start = shaken(best, random);
    }
    found.placement = std::move(best);
  }

  /// A third of the slots, two at least, change places.
  [[nodiscard]] Placement shaken(Placement placement, std::mt19937_64& random) const {
    const std::int32_t exchanges = std::max(1, problem_.used / 6);
    for (std::int32_t k = 0; k < exchanges; ++k) {
      const std::int32_t i = below(random, problem_.used);
      const std::int32_t j = below(random, problem_.slots);
      const std::array slots{i, j};
      std::int32_t& a = placement[static_cast<std::size_t>(i)];
      std::int32_t& b = placement[static_cast<std::size_t>(j)];
      if (problem_.may_join(placement, i, b, slots) && problem_.may_join(placement, j, a, slots)) {
        std::swap(a, b);
      }
    }
    return placement;
  }

  const MappingProblem& problem_;
  const LinkProblem& links_;
  const MapOptions& options_;
  const Placement& order_;
};

}  // namespace

FoundPlacement find_placement(const MappingProblem& problem, const LinkProblem& links,
                              const MapOptions& options, const Placement& order) {
  return PlacementSearch(problem, links, options, order).run();
}

double lower_bound(const MappingProblem& problem, const LinkProblem& links, Objective objective) {
  return objective == Objective::total ? gilmore_lawler_bound(problem)
                                       : least_load_bound(problem, links);
}

}  // namespace heddle
