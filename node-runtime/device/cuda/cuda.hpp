#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "node-runtime/device/device.hpp"

/// The CUDA backend's way in. A build without the CUDA toolkit links `without_cuda.cpp`, so that no
/// caller needs to know how it was built.
namespace heddle {

struct CudaProbe {
  std::int32_t count = 0;  ///< GPUs that this process can use
  std::string why;         ///< which they are, or why there is none
};

/// Looks for GPUs. Throws nothing: whatever is wrong with them is in `why`.
[[nodiscard]] CudaProbe probe_cuda();

/// GPU number `index` of probe_cuda().count. Throws Error(internal) when it cannot be opened.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(std::int32_t index);

}  // namespace heddle
