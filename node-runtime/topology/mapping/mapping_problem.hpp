#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace heddle {

/// The GPU of each slot, by numbers of a MappingProblem.
using Placement = std::vector<std::int32_t>;

/// A number from 0 to count - 1; the same on every host for the same state of `random`.
[[nodiscard]] std::int32_t below(std::mt19937_64& random, std::int32_t count);

/// A mapping as a quadratic assignment problem: put slots on GPUs so that
///
///   sum over slots i               unary(i, p_i)
///   sum over i != j, terms t       flow_t(i, j) x distance_t(p_i, p_j)
///
/// is least. Every GPU takes `per_gpu` slots: `used` of the slots are real, the others are empty
/// and stand for places that stay free. Slots of one group are on different GPUs: the slots of a
/// node, and the empty ones, so that no GPU is idle while another has two slots more.
///
/// Invariant: slots = gpus x per_gpu, used <= slots; the empty slots are the last ones and cost
/// nothing; a distance from a GPU to itself is 0; all flows, distances and unary costs are finite
/// and not negative; a group has at most `gpus` slots.
struct MappingProblem {
  struct Term {
    std::vector<double> flow;      ///< slots x slots, row by row
    std::vector<double> distance;  ///< gpus x gpus
  };
  static constexpr std::int32_t no_group = -1;

  std::int32_t slots = 0;
  std::int32_t used = 0;
  std::int32_t gpus = 0;
  std::int32_t per_gpu = 1;
  std::vector<Term> terms;
  std::vector<double> unary;        ///< slots x gpus
  std::vector<std::int32_t> group;  ///< of each slot, or no_group

  [[nodiscard]] std::size_t of_slots(std::int32_t i, std::int32_t j) const {
    return static_cast<std::size_t>(i) * static_cast<std::size_t>(slots) +
           static_cast<std::size_t>(j);
  }
  [[nodiscard]] std::size_t of_gpus(std::int32_t a, std::int32_t b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus) +
           static_cast<std::size_t>(b);
  }
  [[nodiscard]] double unary_at(std::int32_t slot, std::int32_t gpu) const {
    return unary[of_gpus(slot, gpu)];
  }
  /// What slots i on GPU a and j on b cost each other, both ways.
  [[nodiscard]] double pair(std::int32_t i, std::int32_t j, std::int32_t a, std::int32_t b) const {
    double cost = 0;
    for (const Term& term : terms) {
      cost += term.flow[of_slots(i, j)] * term.distance[of_gpus(a, b)] +
              term.flow[of_slots(j, i)] * term.distance[of_gpus(b, a)];
    }
    return cost;
  }

  [[nodiscard]] double cost(const Placement& placement) const;
  /// Whether no two slots of one group share a GPU, and each GPU has `per_gpu`.
  [[nodiscard]] bool allows(const Placement& placement) const;
  /// Whether the slot's group has nobody on the GPU but perhaps `leaving`.
  [[nodiscard]] bool may_join(const Placement& placement, std::int32_t slot, std::int32_t gpu,
                              std::span<const std::int32_t> leaving) const;
  /// Slot i on GPU i mod gpus, or the next one that may take it.
  [[nodiscard]] Placement in_order() const;
  /// `wished` for each real slot as far as it is allowed; the rest goes where it costs least.
  [[nodiscard]] Placement nearest_allowed(const std::vector<std::int32_t>& wished) const;
  [[nodiscard]] Placement random(std::mt19937_64& random) const;

  /// Whether all distances are the same both ways.
  [[nodiscard]] bool is_symmetric() const;
  /// GPUs of equal numbers can be exchanged without a change of any cost.
  [[nodiscard]] std::vector<std::int32_t> equal_gpus() const;
  [[nodiscard]] bool is_valid() const;
};

}  // namespace heddle
