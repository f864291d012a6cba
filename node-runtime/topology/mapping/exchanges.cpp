#include "node-runtime/topology/mapping/exchanges.hpp"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// A placement with, for each slot and GPU, what the slot would cost there while all others stay.
/// So a change of two or three slots is judged from a few numbers.
class Exchanges {
 public:
  Exchanges(const MappingProblem& problem, Placement placement)
      : problem_(problem), placement_(std::move(placement)), costs_(problem.unary) {
    for (std::int32_t i = 0; i < problem_.used; ++i) {
      for (std::int32_t k = 0; k < problem_.used; ++k) {
        if (i == k) continue;
        for (std::int32_t a = 0; a < problem_.gpus; ++a) {
          costs_[problem_.of_gpus(i, a)] += problem_.pair(i, k, a, gpu(k));
        }
      }
    }
    smallest_gain_ = 1e-10 * problem_.cost(placement_);
  }

  [[nodiscard]] Placement descend(SearchBudget& budget) {
    while (budget.looks > 0) {
      if (!exchange_two(budget) && !exchange_three(budget)) break;
    }
    return std::move(placement_);
  }

 private:
  [[nodiscard]] std::int32_t gpu(std::int32_t slot) const {
    return placement_[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] double at(std::int32_t slot, std::int32_t gpu) const {
    return costs_[problem_.of_gpus(slot, gpu)];
  }

  /// True if at least one pair was exchanged.
  bool exchange_two(SearchBudget& budget) {
    bool has_changed = false;
    // Two empty slots need no exchange.
    for (std::int32_t i = 0; i < problem_.used; ++i) {
      for (std::int32_t j = i + 1; j < problem_.slots; ++j) {
        const std::int32_t a = gpu(i);
        const std::int32_t b = gpu(j);
        if (a == b) continue;
        if (--budget.looks < 0) return has_changed;
        const double now = at(i, a) + at(j, b) - problem_.pair(i, j, a, b);
        const double then = at(i, b) + at(j, a) + problem_.pair(i, j, b, a);
        if (now - then <= smallest_gain_) continue;
        const std::array slots{i, j};
        if (!problem_.may_join(placement_, i, b, slots) ||
            !problem_.may_join(placement_, j, a, slots)) {
          continue;
        }
        move(i, b);
        move(j, a);
        has_changed = true;
      }
    }
    return has_changed;
  }

  /// True after the first three that were exchanged.
  bool exchange_three(SearchBudget& budget) {
    for (std::int32_t i = 0; i < problem_.used; ++i) {
      for (std::int32_t j = i + 1; j < problem_.slots; ++j) {
        for (std::int32_t k = j + 1; k < problem_.slots; ++k) {
          if (gpu(i) == gpu(j) || gpu(j) == gpu(k) || gpu(i) == gpu(k)) continue;
          if ((budget.looks -= 2) < 0) return false;
          if (turn(i, j, k) || turn(i, k, j)) return true;
        }
      }
    }
    return false;
  }

  /// i goes to the GPU of j, j to that of k, k to that of i, if that gains.
  bool turn(std::int32_t i, std::int32_t j, std::int32_t k) {
    const std::int32_t a = gpu(i);
    const std::int32_t b = gpu(j);
    const std::int32_t c = gpu(k);
    const auto pair = [&](std::int32_t s, std::int32_t t, std::int32_t x, std::int32_t y) {
      return problem_.pair(s, t, x, y);
    };
    const double now =
        at(i, a) + at(j, b) + at(k, c) - pair(i, j, a, b) - pair(j, k, b, c) - pair(i, k, a, c);
    const double then = at(i, b) - pair(i, k, b, c) + at(j, c) - pair(j, i, c, a) + at(k, a) -
                        pair(k, j, a, b) + pair(i, j, b, c) + pair(j, k, c, a) + pair(i, k, b, a);
    if (now - then <= smallest_gain_) return false;
    const std::array slots{i, j, k};
    if (!problem_.may_join(placement_, i, b, slots) ||
        !problem_.may_join(placement_, j, c, slots) ||
        !problem_.may_join(placement_, k, a, slots)) {
      return false;
    }
    move(i, b);
    move(j, c);
    move(k, a);
    return true;
  }

  void move(std::int32_t slot, std::int32_t to) {
    const std::int32_t from = std::exchange(placement_[static_cast<std::size_t>(slot)], to);
    if (slot >= problem_.used) return;  // an empty slot costs nobody anything
    for (std::int32_t i = 0; i < problem_.used; ++i) {
      if (i == slot) continue;
      for (std::int32_t a = 0; a < problem_.gpus; ++a) {
        costs_[problem_.of_gpus(i, a)] +=
            problem_.pair(i, slot, a, to) - problem_.pair(i, slot, a, from);
      }
    }
  }

  const MappingProblem& problem_;
  Placement placement_;
  std::vector<double> costs_;
  double smallest_gain_ = 0;
};

}  // namespace

Placement exchanged(const MappingProblem& problem, Placement placement, SearchBudget& budget) {
  HEDDLE_CHECK(problem.allows(placement), "{} slots on {} GPUs", problem.slots, problem.gpus);
  Placement better = Exchanges(problem, std::move(placement)).descend(budget);
  HEDDLE_EXPENSIVE(problem.allows(better), "{} slots on {} GPUs", problem.slots, problem.gpus);
  return better;
}

}  // namespace heddle
