#include "node-runtime/topology/mapping/enumeration.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/topology/mapping/gilmore_lawler.hpp"

namespace heddle {
namespace {

class Enumeration {
 public:
  Enumeration(const MappingProblem& problem, const Placement& start, std::int64_t branches_max)
      : problem_(problem),
        equal_(problem.equal_gpus()),
        order_(order_of(problem)),
        placed_(static_cast<std::size_t>(problem.slots), -1),
        taken_(static_cast<std::size_t>(problem.gpus)),
        best_(start),
        best_cost_(problem.cost(start)),
        branches_left_(branches_max) {
    added_.resize(order_.size() + 1);
    added_[0] = problem.unary;
  }

  [[nodiscard]] std::optional<Placement> run() {
    descend(0, 0);
    if (branches_left_ < 0) return std::nullopt;
    return best_;
  }

 private:
  /// The slot with most flow first, then always the one with most flow to those before.
  static std::vector<std::int32_t> order_of(const MappingProblem& problem) {
    std::vector<double> linked(static_cast<std::size_t>(problem.used));
    const auto flow = [&](std::int32_t i, std::int32_t j) {
      double sum = 0;
      for (const MappingProblem::Term& term : problem.terms) {
        sum += term.flow[problem.of_slots(i, j)] + term.flow[problem.of_slots(j, i)];
      }
      return sum;
    };
    std::vector<std::int32_t> open(static_cast<std::size_t>(problem.used));
    std::iota(open.begin(), open.end(), 0);
    for (const std::int32_t i : open) {
      for (const std::int32_t j : open) linked[static_cast<std::size_t>(i)] += flow(i, j) * 1e-6;
    }
    std::vector<std::int32_t> order;
    while (!open.empty()) {
      const auto next = std::ranges::max_element(
          open, {}, [&](std::int32_t i) { return linked[static_cast<std::size_t>(i)]; });
      order.push_back(*next);
      open.erase(next);
      for (const std::int32_t i : open)
        linked[static_cast<std::size_t>(i)] += flow(i, order.back());
    }
    return order;
  }

  /// Whether the GPUs that are not full can still get as many slots as they must have.
  [[nodiscard]] bool can_be_filled(std::size_t placed) const {
    std::int32_t missing = 0;
    for (const std::int32_t count : taken_) missing += std::max(0, problem_.per_gpu - 1 - count);
    return missing <= problem_.used - static_cast<std::int32_t>(placed);
  }

  [[nodiscard]] bool is_first_of_equals(std::int32_t gpu) const {
    if (taken_[static_cast<std::size_t>(gpu)] > 0) return true;
    for (std::int32_t other = 0; other < gpu; ++other) {
      if (taken_[static_cast<std::size_t>(other)] == 0 &&
          equal_[static_cast<std::size_t>(other)] == equal_[static_cast<std::size_t>(gpu)]) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool is_below_best(double cost) const {
    return cost < best_cost_ - 1e-10 * best_cost_;
  }

  /// Cost of the placed slots and, of each other one, the least that it costs with these.
  [[nodiscard]] double quick_bound(std::size_t depth, double cost) const {
    for (std::size_t r = depth; r < order_.size(); ++r) {
      double least = std::numeric_limits<double>::infinity();
      for (std::int32_t a = 0; a < problem_.gpus; ++a) {
        if (taken_[static_cast<std::size_t>(a)] == problem_.per_gpu) continue;
        least = std::min(least, added_[depth][problem_.of_gpus(order_[r], a)]);
      }
      cost += least;
    }
    return cost;
  }

  void descend(std::size_t depth, double cost) {
    if (depth == order_.size()) {
      finish();
      return;
    }
    const std::int32_t slot = order_[depth];
    for (std::int32_t gpu = 0; gpu < problem_.gpus; ++gpu) {
      std::int32_t& taken = taken_[static_cast<std::size_t>(gpu)];
      if (taken == problem_.per_gpu || !is_first_of_equals(gpu)) continue;
      const double with = cost + added_[depth][problem_.of_gpus(slot, gpu)];
      if (!is_below_best(with) || !problem_.may_join(placed_, slot, gpu, {})) continue;
      if (--branches_left_ < 0) return;
      placed_[static_cast<std::size_t>(slot)] = gpu;
      ++taken;
      if (can_be_filled(depth + 1)) {
        add(depth, slot, gpu);
        // Bounds of the last two slots take longer than to place them.
        if (is_below_best(quick_bound(depth + 1, with)) &&
            (order_.size() - depth <= 3 ||
             is_below_best(gilmore_lawler_bound(problem_, placed_)))) {
          descend(depth + 1, with);
        }
      }
      --taken;
      placed_[static_cast<std::size_t>(slot)] = -1;
    }
  }

  /// What the slots that are still open cost with those that are placed now.
  void add(std::size_t depth, std::int32_t slot, std::int32_t gpu) {
    std::vector<double>& next = added_[depth + 1];
    next = added_[depth];
    for (std::size_t r = depth + 1; r < order_.size(); ++r) {
      for (std::int32_t a = 0; a < problem_.gpus; ++a) {
        next[problem_.of_gpus(order_[r], a)] += problem_.pair(order_[r], slot, a, gpu);
      }
    }
  }

  /// All real slots are placed; the empty ones fill what is left.
  void finish() {
    Placement placement = placed_;
    std::int32_t empty = problem_.used;
    for (std::int32_t a = 0; a < problem_.gpus; ++a) {
      for (std::int32_t k = taken_[static_cast<std::size_t>(a)]; k < problem_.per_gpu; ++k) {
        placement[static_cast<std::size_t>(empty++)] = a;
      }
    }
    if (!problem_.allows(placement)) return;
    const double cost = problem_.cost(placement);
    if (!is_below_best(cost)) return;
    best_ = std::move(placement);
    best_cost_ = cost;
  }

  const MappingProblem& problem_;
  std::vector<std::int32_t> equal_;
  std::vector<std::int32_t> order_;
  Placement placed_;
  std::vector<std::int32_t> taken_;
  std::vector<std::vector<double>> added_;  ///< by depth: slots x GPUs
  Placement best_;
  double best_cost_;
  std::int64_t branches_left_;
};

}  // namespace

std::optional<Placement> cheapest_by_enumeration(const MappingProblem& problem,
                                                 const Placement& start,
                                                 std::int64_t branches_max) {
  HEDDLE_CHECK(problem.allows(start), "a start of {} slots", start.size());
  return Enumeration(problem, start, branches_max).run();
}

}  // namespace heddle
