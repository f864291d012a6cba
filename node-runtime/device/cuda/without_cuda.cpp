#include <fmt/core.h>

#include "base/error.hpp"
#include "node-runtime/device/cuda/cuda.hpp"

namespace heddle {

CudaProbe probe_cuda() {
  return {{}, "heddle was built without CUDA", {}, {}};
}

std::unique_ptr<Device> make_cuda_device(std::int32_t, std::int32_t gpu, const CudaOptions&) {
  throw Error(ErrorCode::internal,
              fmt::format("GPU {} cannot be opened: heddle was built without CUDA", gpu));
}

}  // namespace heddle
