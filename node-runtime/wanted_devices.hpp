#pragma once

#include <cstdint>

#include "config/config.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// What the configuration says about devices, as make_devices() takes it. Throws Error(usage) for
/// what only emulated devices have where others are asked for.
[[nodiscard]] DeviceOptions wanted_devices(const config::Devices& devices);

/// Emulated devices of a host share their links, and nodes_per_device nodes each of them. Before
/// the devices are used. Collective; all nodes have as many devices.
void share_emulated_devices(DeviceSet& devices, const config::Devices& wanted,
                            const Communicator& communicator);

/// Nodes of a host that see the same GPUs, and the number of one among them.
struct GpuNeighbours {
  std::int32_t nodes = 1;
  std::int32_t node = 0;
};

/// Launchers may show each process GPUs of its own or all of them to all. Those that see the same
/// ones divide them. Collective.
[[nodiscard]] GpuNeighbours find_gpu_neighbours(const config::Devices& devices,
                                                const Communicator& communicator);

}  // namespace heddle
