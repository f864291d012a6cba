#pragma once

#include "node-runtime/machine/measurements.hpp"

namespace heddle {

/// What a product of small tiles takes on the calling thread, looked at for a few milliseconds: for
/// machines that nobody has measured. load_blas() has run.
[[nodiscard]] KernelTimes quick_worker_times();

}  // namespace heddle
