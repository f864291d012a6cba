#include <cstdlib>

#include "tests/device/device_kernels.hpp"

// Without CUDA nothing calls these.
namespace heddle::testing {

void affine_cuda(const CudaLaunch&) {
  std::abort();
}
void add_cuda(const CudaLaunch&) {
  std::abort();
}
void add_bytes_cuda(const CudaByteLaunch&) {
  std::abort();
}
void hold_cuda(const CudaLaunch&) {
  std::abort();
}
void nothing_cuda(const CudaLaunch&) {
  std::abort();
}
void fault_cuda(const CudaLaunch&) {
  std::abort();
}

void* take_from_cuda(int, std::size_t) {
  std::abort();
}
void give_back_to_cuda(void*) {
  std::abort();
}

}  // namespace heddle::testing
