#include "node-runtime/topology/mapping/ties.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace heddle {
namespace {

constexpr double same_cost = 1e-9;
/// How often loads of links are computed: 3 us each for 16 slots, 30 us for 64.
constexpr int loads_max = 1000;

class TieBreaker {
 public:
  TieBreaker(const MappingProblem& problem, Placement placement,
             const std::function<double(const Placement&)>& largest_load)
      : problem_(problem),
        placement_(std::move(placement)),
        largest_load_(largest_load),
        cost_(problem.cost(placement_)),
        largest_(largest_load(placement_)) {}

  void lower_largest_link() {
    for (bool is_lower = true; is_lower;) {
      is_lower = false;
      for (std::int32_t i = 0; i < problem_.used; ++i) {
        for (std::int32_t j = i + 1; j < problem_.slots; ++j) {
          is_lower =
              exchange_if(i, j, [&](double load) { return load < largest_ * (1 - same_cost); }) ||
              is_lower;
        }
      }
    }
  }

  void approach(const Placement& in_order) {
    const double cost = problem_.cost(in_order);
    if (cost <= cost_ * (1 + same_cost) && largest_load_(in_order) <= largest_ * (1 + same_cost)) {
      placement_ = in_order;
      return;
    }
    const auto is_at_home = [&](std::int32_t slot) {
      return placement_[static_cast<std::size_t>(slot)] == in_order[static_cast<std::size_t>(slot)];
    };
    for (std::int32_t i = 0; i < problem_.used; ++i) {
      for (std::int32_t j = 0; j < problem_.slots && !is_at_home(i); ++j) {
        if (placement_[static_cast<std::size_t>(j)] != in_order[static_cast<std::size_t>(i)])
          continue;
        if (j < problem_.used && is_at_home(j)) continue;
        exchange_if(i, j, [&](double load) { return load <= largest_ * (1 + same_cost); });
      }
    }
  }

  [[nodiscard]] const Placement& placement() const { return placement_; }

 private:
  /// What two slots cost, with each other and with all others.
  [[nodiscard]] double cost_of(std::int32_t i, std::int32_t j) const {
    const auto gpu = [&](std::int32_t slot) { return placement_[static_cast<std::size_t>(slot)]; };
    double cost = problem_.unary_at(i, gpu(i)) + problem_.unary_at(j, gpu(j)) +
                  problem_.pair(i, j, gpu(i), gpu(j));
    for (std::int32_t k = 0; k < problem_.used; ++k) {
      if (k == i || k == j) continue;
      cost += problem_.pair(i, k, gpu(i), gpu(k)) + problem_.pair(j, k, gpu(j), gpu(k));
    }
    return cost;
  }

  /// Exchanges i and j if that keeps the cost and `is_wanted` the largest load that comes of it.
  template <class Wanted>
  bool exchange_if(std::int32_t i, std::int32_t j, const Wanted& is_wanted) {
    std::int32_t& a = placement_[static_cast<std::size_t>(i)];
    std::int32_t& b = placement_[static_cast<std::size_t>(j)];
    const std::array slots{i, j};
    if (a == b || loads_left_ == 0 || !problem_.may_join(placement_, i, b, slots) ||
        !problem_.may_join(placement_, j, a, slots)) {
      return false;
    }
    const double before = cost_of(i, j);
    std::swap(a, b);
    if (std::abs(cost_of(i, j) - before) <= same_cost * cost_) {
      --loads_left_;
      const double load = largest_load_(placement_);
      if (is_wanted(load)) {
        largest_ = load;
        return true;
      }
    }
    std::swap(a, b);
    return false;
  }

  const MappingProblem& problem_;
  Placement placement_;
  const std::function<double(const Placement&)>& largest_load_;
  double cost_;
  double largest_;
  int loads_left_ = loads_max;
};

}  // namespace

Placement preferred_of_equals(const MappingProblem& problem, const Placement& placement,
                              const Placement& in_order,
                              const std::function<double(const Placement&)>& largest_load) {
  TieBreaker ties(problem, placement, largest_load);
  ties.lower_largest_link();
  ties.approach(in_order);
  return ties.placement();
}

}  // namespace heddle
