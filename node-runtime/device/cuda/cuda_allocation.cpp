#include "node-runtime/device/cuda/cuda_allocation.hpp"

#include <bit>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "node-runtime/device/cuda/driver_function.hpp"

namespace heddle {
std::optional<CudaAllocation> allocation_at(const void* address, int gpu) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return std::nullopt;
  }
  if (attributes.type != cudaMemoryTypeDevice || attributes.device != gpu) return std::nullopt;
  static auto* const range_of =
      driver_function<CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr)>("cuMemGetAddressRange");
  static auto* const attribute_of =
      driver_function<CUresult(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute");
  if (range_of == nullptr || attribute_of == nullptr) return std::nullopt;
  const auto place = std::bit_cast<CUdeviceptr>(address);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  unsigned long long identity = 0;  // NOLINT(google-runtime-int): CUDA's
  const auto ask = [&] {
    return range_of(&base, &bytes, place) == CUDA_SUCCESS &&
           attribute_of(&identity, CU_POINTER_ATTRIBUTE_BUFFER_ID, place) == CUDA_SUCCESS;
  };
  if (!ask()) {
    // A thread without a current context: the driver API does not create one.
    static_cast<void>(cudaFree(nullptr));
    if (!ask()) return std::nullopt;
  }
  return CudaAllocation{std::bit_cast<const std::byte*>(base), bytes, identity};
}

}  // namespace heddle
