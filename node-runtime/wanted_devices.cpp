#include "node-runtime/wanted_devices.hpp"

#include <functional>
#include <string>
#include <vector>

namespace heddle {

DeviceOptions wanted_devices(const config::Devices& devices) {
  DeviceOptions options;
  if (devices.backend.has_value()) {
    switch (*devices.backend) {
      case config::DeviceBackend::none:
        options.backend = DeviceBackend::none;
        break;
      case config::DeviceBackend::cuda:
        options.backend = DeviceBackend::cuda;
        break;
      case config::DeviceBackend::emulated:
        options.backend = DeviceBackend::emulated;
        break;
    }
  }
  if (devices.per_node.has_value()) options.count = static_cast<std::int32_t>(*devices.per_node);
  if (devices.memory.has_value()) {
    options.emulated.memory_bytes = *devices.memory;
    options.cuda.memory_bytes = *devices.memory;
  }
  return options;
}

GpuNeighbours find_gpu_neighbours(const config::Devices& devices,
                                  const Communicator& communicator) {
  if (communicator.size() == 1) return {};
  const bool wants_gpus =
      !devices.backend.has_value() || *devices.backend == config::DeviceBackend::cuda;
  const std::uint64_t mine = wants_gpus ? std::hash<std::string>{}(visible_gpus()) : 0;
  const std::vector<std::uint64_t> all = communicator.all_gather(mine);
  GpuNeighbours found{0, 0};
  for (int r = 0; r < communicator.size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    if (communicator.local_processes()[index] == 0 || all[index] != mine) continue;
    if (r == communicator.rank()) found.node = found.nodes;
    ++found.nodes;
  }
  return found;
}

}  // namespace heddle
