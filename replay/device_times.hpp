#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

/// Times of devices from a run's trace.
namespace heddle::replay {

/// Cost of each task in seconds. On a worker: its duration. On a device: overlapping tasks share
/// each instant equally, as in the simulation (SharedRates), so costs add up to the device's busy
/// time.
[[nodiscard]] std::vector<double> own_seconds(const RunTrace& run);

/// Largest number of concurrent tasks on a device.
[[nodiscard]] std::int32_t side_by_side(const RunTrace& run);

/// Copies between places of a node by direction.
struct CopyWays {
  std::optional<Way> to_device;
  std::optional<Way> to_host;
  std::optional<Way> to_peer;
};
/// Latency and rate by least squares over sizes; times above longest_undisturbed() of a size are
/// capped. If all sizes are equal, or a coefficient would be negative, the latency is 0. Nothing
/// without copies.
[[nodiscard]] CopyWays copy_ways(const RunTrace& run);

}  // namespace heddle::replay
