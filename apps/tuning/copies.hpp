#pragma once

#include "apps/tuning/effort.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle::tuning {

/// Large copies between page-locked host memory and a device, one way and both at once, and to
/// `peer` where the device reaches it (null: there is no other one).
[[nodiscard]] CopyRates measure_copies(Device& device, Device* peer, Effort& effort);

}  // namespace heddle::tuning
