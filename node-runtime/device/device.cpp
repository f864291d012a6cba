#include "node-runtime/device/device.hpp"

#include <fmt/core.h>

namespace heddle {

std::string_view name_of(DeviceBackend backend) {
  switch (backend) {
    case DeviceBackend::none:
      return "none";
    case DeviceBackend::emulated:
      return "emulated";
    case DeviceBackend::cuda:
      return "cuda";
    case DeviceBackend::automatic:
      return "auto";
  }
  return "unknown";
}

std::string to_string(const DeviceUuid& uuid) {
  std::string text;
  for (const std::uint8_t byte : uuid.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace heddle
