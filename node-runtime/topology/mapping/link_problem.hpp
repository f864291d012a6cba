#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle {

/// The links that placements of a MappingProblem load; slots and GPUs have its numbers. What a slot
/// sends goes over a fixed list of links that depends on the GPUs at both ends.
struct LinkProblem {
  /// What a slot exchanges with host memory or other hosts from one GPU.
  struct Outer {
    std::vector<std::size_t> links;
    double bytes = 0;
  };

  std::int32_t slots = 0;  ///< the real ones
  std::int32_t gpus = 0;
  std::vector<double> rates;                     ///< of each link, GB/s
  std::vector<std::vector<std::size_t>> routes;  ///< gpus x gpus: links
  std::vector<double> bytes;                     ///< slots x slots
  std::vector<std::vector<Outer>> outer;         ///< slots x gpus

  /// Adds to `loads` (bytes / rate of each link) what the slot on this GPU exchanges with those
  /// slots that `placement` has put somewhere, and with the outside.
  void add(std::vector<double>& loads, const Placement& placement, std::int32_t slot,
           std::int32_t gpu) const;
  /// The greatest load of a link.
  [[nodiscard]] double largest_load(const Placement& placement) const;
};

}  // namespace heddle
