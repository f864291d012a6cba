#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

/// What a run's trace tells about its devices.
namespace heddle::replay {

/// For each task of the run what it took of who ran it, in seconds. On a worker that is all of its
/// time. Tasks that overlap on a device share each instant equally, as in the simulation
/// (SharedRates): together they take what the device was busy for.
[[nodiscard]] std::vector<double> own_seconds(const RunTrace& run);

/// Tasks that ran side by side on one device, most.
[[nodiscard]] std::int32_t side_by_side(const RunTrace& run);

/// Copies between places of a node, by where they went.
struct CopyWays {
  std::optional<Way> to_device;
  std::optional<Way> to_host;
  std::optional<Way> to_peer;
};
/// Latency and rate by least squares over the copies' sizes, none of one size longer than
/// longest_undisturbed(); where all are alike, or that would make one of them negative, all of the
/// time is the rate's. Nothing where there were no copies.
[[nodiscard]] CopyWays copy_ways(const RunTrace& run);

}  // namespace heddle::replay
