#include "node-runtime/topology/mapping/bottleneck.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// What is compared: the largest load first, then the cost.
struct LoadAndCost {
  double load = 0;
  double cost = 0;

  /// By more than the rounding of sums.
  [[nodiscard]] bool is_below(const LoadAndCost& other) const {
    constexpr double rounding = 1e-10;
    if (load < other.load * (1 - rounding)) return true;
    return load <= other.load * (1 + rounding) && cost < other.cost * (1 - rounding);
  }
};

LoadAndCost judged(const MappingProblem& problem, const LinkProblem& links,
                   const Placement& placement) {
  return {links.largest_load(placement), problem.cost(placement)};
}

class LoadEnumeration {
 public:
  LoadEnumeration(const MappingProblem& problem, const LinkProblem& links, const Placement& start,
                  std::int64_t branches_max)
      : problem_(problem),
        links_(links),
        placed_(static_cast<std::size_t>(problem.slots), -1),
        taken_(static_cast<std::size_t>(problem.gpus)),
        loads_(static_cast<std::size_t>(problem.used) + 1, std::vector<double>(links.rates.size())),
        best_(start),
        best_value_(judged(problem, links, start)),
        branches_left_(branches_max) {}

  [[nodiscard]] std::optional<Placement> run() {
    descend(0, 0);
    if (branches_left_ < 0) return std::nullopt;
    return best_;
  }

 private:
  void descend(std::int32_t slot, double cost) {
    if (slot == problem_.used) {
      finish();
      return;
    }
    const auto depth = static_cast<std::size_t>(slot);
    for (std::int32_t gpu = 0; gpu < problem_.gpus; ++gpu) {
      std::int32_t& taken = taken_[static_cast<std::size_t>(gpu)];
      if (taken == problem_.per_gpu || !problem_.may_join(placed_, slot, gpu, {})) continue;
      if (--branches_left_ < 0) return;
      std::vector<double>& loads = loads_[depth + 1];
      loads = loads_[depth];
      links_.add(loads, placed_, slot, gpu);
      double with = cost + problem_.unary_at(slot, gpu);
      for (std::int32_t other = 0; other < slot; ++other) {
        with += problem_.pair(slot, other, gpu, placed_[static_cast<std::size_t>(other)]);
      }
      const double largest = loads.empty() ? 0 : *std::ranges::max_element(loads);
      if (!LoadAndCost{largest, with}.is_below(best_value_)) continue;
      placed_[depth] = gpu;
      ++taken;
      descend(slot + 1, with);
      --taken;
      placed_[depth] = -1;
    }
  }

  void finish() {
    Placement placement = placed_;
    std::int32_t empty = problem_.used;
    for (std::int32_t a = 0; a < problem_.gpus; ++a) {
      for (std::int32_t k = taken_[static_cast<std::size_t>(a)]; k < problem_.per_gpu; ++k) {
        placement[static_cast<std::size_t>(empty++)] = a;
      }
    }
    if (!problem_.allows(placement)) return;
    const LoadAndCost value = judged(problem_, links_, placement);
    if (!value.is_below(best_value_)) return;
    best_ = std::move(placement);
    best_value_ = value;
  }

  const MappingProblem& problem_;
  const LinkProblem& links_;
  Placement placed_;
  std::vector<std::int32_t> taken_;
  std::vector<std::vector<double>> loads_;  ///< of each link, by slots that are placed
  Placement best_;
  LoadAndCost best_value_;
  std::int64_t branches_left_;
};

}  // namespace

std::optional<Placement> least_loaded_by_enumeration(const MappingProblem& problem,
                                                     const LinkProblem& links,
                                                     const Placement& start,
                                                     std::int64_t branches_max) {
  HEDDLE_CHECK(problem.allows(start), "a start of {} slots", start.size());
  return LoadEnumeration(problem, links, start, branches_max).run();
}

Placement less_loaded(const MappingProblem& problem, const LinkProblem& links, Placement placement,
                      std::int64_t& looks) {
  LoadAndCost value = judged(problem, links, placement);
  for (bool is_better = true; is_better;) {
    is_better = false;
    for (std::int32_t i = 0; i < problem.used; ++i) {
      for (std::int32_t j = i + 1; j < problem.slots; ++j) {
        std::int32_t& a = placement[static_cast<std::size_t>(i)];
        std::int32_t& b = placement[static_cast<std::size_t>(j)];
        const std::array slots{i, j};
        if (a == b || !problem.may_join(placement, i, b, slots) ||
            !problem.may_join(placement, j, a, slots)) {
          continue;
        }
        if (--looks < 0) return placement;
        std::swap(a, b);
        const LoadAndCost then = judged(problem, links, placement);
        if (then.is_below(value)) {
          value = then;
          is_better = true;
        } else {
          std::swap(a, b);
        }
      }
    }
  }
  return placement;
}

double least_load_bound(const MappingProblem& problem, const LinkProblem& links) {
  if (problem.per_gpu > 1) return 0;
  const auto gpus = static_cast<std::size_t>(problem.gpus);
  // All links that a GPU's routes begin or end with.
  double best_out = 0;
  double best_in = 0;
  for (std::size_t a = 0; a < gpus; ++a) {
    std::set<std::size_t> out;
    std::set<std::size_t> in;
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      out.insert(links.routes[a * gpus + b].front());
      in.insert(links.routes[b * gpus + a].back());
    }
    double rate_out = 0;
    double rate_in = 0;
    for (const std::size_t link : out) rate_out += links.rates[link];
    for (const std::size_t link : in) rate_in += links.rates[link];
    best_out = std::max(best_out, rate_out);
    best_in = std::max(best_in, rate_in);
  }
  double bound = 0;
  const auto slots = static_cast<std::size_t>(links.slots);
  for (std::size_t i = 0; i < slots; ++i) {
    double out = 0;
    double in = 0;
    for (std::size_t j = 0; j < slots; ++j) {
      out += links.bytes[i * slots + j];
      in += links.bytes[j * slots + i];
    }
    if (best_out > 0) bound = std::max({bound, out / best_out, in / best_in});
  }
  return bound;
}

}  // namespace heddle
