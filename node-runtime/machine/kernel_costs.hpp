#pragma once

#include <cstdint>

#include "kernels/kernel_case.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle {

/// What kernels take on a worker and on a device: as measured for the same kernel nearest in size,
/// by their operations; for a kernel that was not measured, as products run; without measurements
/// at 10 GFLOP/s on a worker and 1 TFLOP/s on a device, so that what they are to each other is
/// about right. Copies by their bytes. To rank tasks, not to predict runs.
class KernelCosts {
 public:
  /// Kernels' times on a CPU worker while all workers are busy, and on a device; both may be empty.
  KernelCosts(KernelTimes worker, KernelTimes device);

  /// Seconds on one worker, or on a device. Any thread.
  [[nodiscard]] double seconds(const KernelCase& what, bool on_device) const;

 private:
  KernelTimes worker_;
  KernelTimes device_;
};

}  // namespace heddle
