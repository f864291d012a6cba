#pragma once

#include "apps/bench_collectives.hpp"
#include "config/config.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {

/// Whether the bench of collectives works on memory or streams of devices.
[[nodiscard]] bool needs_devices(const BenchCollectivesOptions& options);

/// Throws Error(usage) on all nodes where one has no device and should, or where another number of
/// nodes than is asked for has the memory of one device. Collective.
void check_devices(const BenchCollectivesOptions& options, const Config& config,
                   const GpuNeighbours& neighbours, const Communicator& communicator);

}  // namespace heddle
