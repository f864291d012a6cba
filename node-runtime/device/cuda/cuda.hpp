#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"
#include "node-runtime/device/device.hpp"

/// Entry to the CUDA backend. A build without the CUDA toolkit links `without_cuda.cpp`, so callers
/// need no conditional compilation.
namespace heddle {

struct CudaProbe {
  std::vector<DeviceUuid> gpus;  ///< usable by this process, in CUDA's order
  std::string why;               ///< lists the GPUs, or says why there is none
  std::string driver;   ///< newest CUDA version of the driver, "12.4"; empty without a driver
  std::string toolkit;  ///< version heddle was built with; empty without CUDA
};

/// Looks for GPUs without creating a context. Does not throw: errors are in `why`.
[[nodiscard]] CudaProbe probe_cuda();

/// Opens GPU `gpu` of probe_cuda().gpus as device `index` of this process. Throws Error(usage) with
/// the numbers if its memory does not suffice, Error(internal) if it cannot be opened.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(std::int32_t index, std::int32_t gpu,
                                                       const CudaOptions& options);

}  // namespace heddle
