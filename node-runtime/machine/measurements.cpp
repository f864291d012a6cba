#include "node-runtime/machine/measurements.hpp"

#include <algorithm>

namespace heddle {

const DeviceMeasurement* Measurements::device(const std::string& backend,
                                              const std::string& name) const {
  const auto found = std::ranges::find_if(devices, [&](const DeviceMeasurement& device) {
    return device.backend == backend && device.name == name;
  });
  return found == devices.end() ? nullptr : &*found;
}

Measurements merge(Measurements newer, const Measurements& older) {
  if (!newer.cpu) newer.cpu = older.cpu;
  if (!newer.messages) newer.messages = older.messages;
  for (DeviceMeasurement& device : newer.devices) {
    const DeviceMeasurement* const before = older.device(device.backend, device.name);
    if (device.group_copies.empty() && before != nullptr)
      device.group_copies = before->group_copies;
  }
  for (const DeviceMeasurement& device : older.devices) {
    if (newer.device(device.backend, device.name) == nullptr) newer.devices.push_back(device);
  }
  return newer;
}

}  // namespace heddle
