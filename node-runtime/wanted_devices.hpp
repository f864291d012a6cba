#pragma once

#include "config/config.hpp"
#include "node-runtime/device/devices.hpp"

namespace heddle {

/// What the configuration says about devices, as make_devices() takes it.
[[nodiscard]] DeviceOptions wanted_devices(const config::Devices& devices);

}  // namespace heddle
