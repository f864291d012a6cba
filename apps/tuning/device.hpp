#pragma once

#include "apps/tuning/effort.hpp"
#include "apps/tuning/operands.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle::tuning {

/// Times the kernels of Cholesky and QR on a device, products on one and more streams. `inner`:
/// columns of the inverse blocks that Cholesky gives its kernels there; 0: none. Copies and
/// products' choices of the result are left empty.
[[nodiscard]] DeviceMeasurement measure_device(Device& device, std::int64_t inner,
                                               const NormalValues& normal, Effort& effort);

}  // namespace heddle::tuning
