#include "node-runtime/wanted_devices.hpp"

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

}  // namespace heddle
