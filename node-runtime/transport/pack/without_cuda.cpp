#include <cstdlib>

#include "node-runtime/transport/pack/pack_kernels.hpp"

// Not called in a build without CUDA.
namespace heddle::packing {

void blocks_cuda(const CudaByteLaunch&) {
  std::abort();
}
void units_cuda(const CudaByteLaunch&) {
  std::abort();
}
void between_cuda(const CudaByteLaunch&) {
  std::abort();
}

}  // namespace heddle::packing
