#include "node-runtime/topology/mapping/link_problem.hpp"

#include <algorithm>

namespace heddle {

void LinkProblem::add(std::vector<double>& loads, const Placement& placement, std::int32_t slot,
                      std::int32_t gpu) const {
  const auto at = [](std::int32_t row, std::int32_t columns, std::int32_t column) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
  };
  const auto load = [&](const std::vector<std::size_t>& route, double amount) {
    if (amount == 0) return;
    for (const std::size_t link : route) loads[link] += amount / rates[link];
  };
  for (std::int32_t other = 0; other < slots; ++other) {
    const std::int32_t there = placement[static_cast<std::size_t>(other)];
    if (other == slot || there < 0) continue;
    load(routes[at(gpu, gpus, there)], bytes[at(slot, slots, other)]);
    load(routes[at(there, gpus, gpu)], bytes[at(other, slots, slot)]);
  }
  for (const Outer& one : outer[at(slot, gpus, gpu)]) load(one.links, one.bytes);
}

double LinkProblem::largest_load(const Placement& placement) const {
  std::vector<double> loads(rates.size());
  Placement placed(placement.size(), -1);
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    const std::int32_t gpu = placement[static_cast<std::size_t>(slot)];
    add(loads, placed, slot, gpu);
    placed[static_cast<std::size_t>(slot)] = gpu;
  }
  return loads.empty() ? 0 : *std::ranges::max_element(loads);
}

}  // namespace heddle
