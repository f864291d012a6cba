#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/device/cuda/options.hpp"
#include "node-runtime/device/device.hpp"

/// The CUDA backend's way in. A build without the CUDA toolkit links `without_cuda.cpp`, so that no
/// caller needs to know how it was built.
namespace heddle {

struct CudaProbe {
  std::vector<DeviceUuid> gpus;  ///< that this process can use, in CUDA's order
  std::string why;               ///< which they are, or why there is none
  std::string driver;   ///< newest CUDA that the driver knows, "12.4"; empty without a driver
  std::string toolkit;  ///< that heddle was built with; empty without CUDA
};

/// Looks for GPUs, takes nothing of them. Throws nothing: whatever is wrong with them is in `why`.
[[nodiscard]] CudaProbe probe_cuda();

/// Device `index` of this process on GPU number `gpu` of probe_cuda().gpus. Throws Error(usage)
/// with the numbers when its memory does not suffice, Error(internal) when it cannot be opened.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(std::int32_t index, std::int32_t gpu,
                                                       const CudaOptions& options);

}  // namespace heddle
