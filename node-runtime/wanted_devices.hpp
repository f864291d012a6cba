#pragma once

#include <cstdint>

#include "config/config.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// What the configuration says about devices, as make_devices() takes it.
[[nodiscard]] DeviceOptions wanted_devices(const config::Devices& devices);

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
