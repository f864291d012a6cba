#include "node-runtime/topology/mapping/mapping_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/assert.hpp"

namespace heddle {
namespace {

constexpr std::int32_t nowhere = -1;

/// Places slots one after the other.
class Filling {
 public:
  explicit Filling(const MappingProblem& problem)
      : problem_(problem),
        placement_(static_cast<std::size_t>(problem.slots), nowhere),
        taken_(static_cast<std::size_t>(problem.gpus), 0) {}

  [[nodiscard]] bool fits(std::int32_t slot, std::int32_t gpu) const {
    return taken_[static_cast<std::size_t>(gpu)] < problem_.per_gpu &&
           problem_.may_join(placement_, slot, gpu, {});
  }
  void put(std::int32_t slot, std::int32_t gpu) {
    placement_[static_cast<std::size_t>(slot)] = gpu;
    ++taken_[static_cast<std::size_t>(gpu)];
  }
  [[nodiscard]] bool is_placed(std::int32_t slot) const {
    return placement_[static_cast<std::size_t>(slot)] != nowhere;
  }

  /// Puts the slot on `first`, or the next GPU that has least slots and may take it; true if one
  /// may.
  [[nodiscard]] bool put_from(std::int32_t slot, std::int32_t first) {
    std::int32_t best = nowhere;
    for (std::int32_t step = 0; step < problem_.gpus; ++step) {
      const std::int32_t gpu = (first + step) % problem_.gpus;
      if (!fits(slot, gpu)) continue;
      if (best == nowhere ||
          taken_[static_cast<std::size_t>(gpu)] < taken_[static_cast<std::size_t>(best)]) {
        best = gpu;
      }
    }
    if (best != nowhere) put(slot, best);
    return best != nowhere;
  }

  /// Gives a slot that fits nowhere a place by moving another one out of its way.
  void force(std::int32_t slot) {
    for (std::int32_t other = 0; other < problem_.slots; ++other) {
      const std::int32_t gpu = placement_[static_cast<std::size_t>(other)];
      if (gpu == nowhere || !problem_.may_join(placement_, slot, gpu, {{other}})) continue;
      for (std::int32_t to = 0; to < problem_.gpus; ++to) {
        if (to == gpu || !fits(other, to)) continue;
        --taken_[static_cast<std::size_t>(gpu)];
        put(other, to);
        put(slot, gpu);
        return;
      }
    }
    HEDDLE_CHECK(false, "slot {} fits nowhere: {} slots on {} GPUs", slot, problem_.slots,
                 problem_.gpus);
  }

  [[nodiscard]] const Placement& placement() const { return placement_; }

 private:
  const MappingProblem& problem_;
  Placement placement_;
  std::vector<std::int32_t> taken_;
};

}  // namespace

std::int32_t below(std::mt19937_64& random, std::int32_t count) {
  // The standard's distributions differ between libraries.
  return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(count));
}

double MappingProblem::cost(const Placement& placement) const {
  double sum = 0;
  for (std::int32_t i = 0; i < used; ++i) {
    const std::int32_t a = placement[static_cast<std::size_t>(i)];
    sum += unary_at(i, a);
    for (std::int32_t j = i + 1; j < used; ++j) {
      sum += pair(i, j, a, placement[static_cast<std::size_t>(j)]);
    }
  }
  return sum;
}

bool MappingProblem::may_join(const Placement& placement, std::int32_t slot, std::int32_t gpu,
                              std::span<const std::int32_t> leaving) const {
  const std::int32_t own = group[static_cast<std::size_t>(slot)];
  if (own == no_group) return true;
  for (std::int32_t other = 0; other < slots; ++other) {
    if (other == slot || group[static_cast<std::size_t>(other)] != own) continue;
    if (placement[static_cast<std::size_t>(other)] != gpu) continue;
    if (std::ranges::find(leaving, other) == leaving.end()) return false;
  }
  return true;
}

bool MappingProblem::allows(const Placement& placement) const {
  if (placement.size() != static_cast<std::size_t>(slots)) return false;
  std::vector<std::int32_t> taken(static_cast<std::size_t>(gpus));
  for (std::int32_t i = 0; i < slots; ++i) {
    const std::int32_t gpu = placement[static_cast<std::size_t>(i)];
    if (gpu < 0 || gpu >= gpus || !may_join(placement, i, gpu, {})) return false;
    ++taken[static_cast<std::size_t>(gpu)];
  }
  return std::ranges::all_of(taken, [&](std::int32_t count) { return count == per_gpu; });
}

Placement MappingProblem::in_order() const {
  Filling filling(*this);
  for (std::int32_t i = 0; i < slots; ++i) {
    if (!filling.put_from(i, i % gpus)) filling.force(i);
  }
  HEDDLE_CHECK(allows(filling.placement()), "{} slots on {} GPUs", slots, gpus);
  return filling.placement();
}

Placement MappingProblem::nearest_allowed(const std::vector<std::int32_t>& wished) const {
  Filling filling(*this);
  for (std::int32_t i = 0; i < used; ++i) {
    const std::int32_t gpu = wished[static_cast<std::size_t>(i)];
    if (gpu >= 0 && gpu < gpus && filling.fits(i, gpu)) filling.put(i, gpu);
  }
  for (std::int32_t i = 0; i < slots; ++i) {
    if (filling.is_placed(i)) continue;
    std::int32_t best = nowhere;
    double best_cost = std::numeric_limits<double>::infinity();
    for (std::int32_t gpu = 0; gpu < gpus; ++gpu) {
      if (!filling.fits(i, gpu)) continue;
      double cost = unary_at(i, gpu);
      for (std::int32_t j = 0; j < used; ++j) {
        if (j != i && filling.is_placed(j)) {
          cost += pair(i, j, gpu, filling.placement()[static_cast<std::size_t>(j)]);
        }
      }
      if (cost < best_cost) {
        best = gpu;
        best_cost = cost;
      }
    }
    if (best == nowhere) {
      filling.force(i);
    } else {
      filling.put(i, best);
    }
  }
  HEDDLE_CHECK(allows(filling.placement()), "{} slots on {} GPUs", slots, gpus);
  return filling.placement();
}

Placement MappingProblem::random(std::mt19937_64& random) const {
  std::vector<std::int32_t> order(static_cast<std::size_t>(slots));
  std::iota(order.begin(), order.end(), 0);
  for (std::int32_t i = slots - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(below(random, i + 1))]);
  }
  std::vector<std::int32_t> places(order.size());
  for (std::size_t p = 0; p < places.size(); ++p) {
    places[p] = static_cast<std::int32_t>(p) % gpus;
  }
  Filling filling(*this);
  std::vector<std::int32_t> late;
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (filling.fits(order[p], places[p])) {
      filling.put(order[p], places[p]);
    } else {
      late.push_back(order[p]);
    }
  }
  for (const std::int32_t slot : late) {
    if (!filling.put_from(slot, below(random, gpus))) filling.force(slot);
  }
  HEDDLE_CHECK(allows(filling.placement()), "{} slots on {} GPUs", slots, gpus);
  return filling.placement();
}

bool MappingProblem::is_symmetric() const {
  return std::ranges::all_of(terms, [&](const Term& term) {
    for (std::int32_t a = 0; a < gpus; ++a) {
      for (std::int32_t b = 0; b < a; ++b) {
        const double there = term.distance[of_gpus(a, b)];
        const double back = term.distance[of_gpus(b, a)];
        if (std::abs(there - back) > 1e-12 * std::max(there, back)) return false;
      }
    }
    return true;
  });
}

std::vector<std::int32_t> MappingProblem::equal_gpus() const {
  const auto are_equal = [&](std::int32_t a, std::int32_t b) {
    for (std::int32_t i = 0; i < used; ++i) {
      if (unary_at(i, a) != unary_at(i, b)) return false;
    }
    return std::ranges::all_of(terms, [&](const Term& term) {
      const std::vector<double>& d = term.distance;
      if (d[of_gpus(a, b)] != d[of_gpus(b, a)]) return false;
      for (std::int32_t c = 0; c < gpus; ++c) {
        if (c == a || c == b) continue;
        if (d[of_gpus(a, c)] != d[of_gpus(b, c)] || d[of_gpus(c, a)] != d[of_gpus(c, b)])
          return false;
      }
      return true;
    });
  };
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(gpus));
  for (std::int32_t a = 0; a < gpus; ++a) {
    std::int32_t b = 0;
    while (b < a && !are_equal(b, a)) ++b;
    numbers[static_cast<std::size_t>(a)] = b < a ? numbers[static_cast<std::size_t>(b)] : a;
  }
  return numbers;
}

bool MappingProblem::is_valid() const {
  const auto count = [](std::int32_t value) { return static_cast<std::size_t>(value); };
  const auto are_amounts = [](const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double v) { return std::isfinite(v) && v >= 0; });
  };
  if (gpus < 1 || per_gpu < 1 || slots != gpus * per_gpu || used < 1 || used > slots) return false;
  if (unary.size() != count(slots) * count(gpus) || group.size() != count(slots)) return false;
  if (!are_amounts(unary)) return false;
  for (const Term& term : terms) {
    if (term.flow.size() != count(slots) * count(slots) ||
        term.distance.size() != count(gpus) * count(gpus) || !are_amounts(term.flow) ||
        !are_amounts(term.distance)) {
      return false;
    }
    for (std::int32_t a = 0; a < gpus; ++a) {
      if (term.distance[of_gpus(a, a)] != 0) return false;
    }
    for (std::int32_t i = used; i < slots; ++i) {
      for (std::int32_t j = 0; j < slots; ++j) {
        if (term.flow[of_slots(i, j)] != 0 || term.flow[of_slots(j, i)] != 0) return false;
      }
    }
  }
  std::map<std::int32_t, std::int32_t> sizes;
  for (const std::int32_t one : group) {
    if (one != no_group && ++sizes[one] > gpus) return false;
  }
  return true;
}

}  // namespace heddle
