#pragma once

#include <bit>
#include <cuda_runtime_api.h>

namespace heddle {

/// Driver function looked up through the runtime; null if absent.
template <class Function>
Function* driver_function(const char* name) {
  constexpr unsigned since = 12000;  // CUDA version of these entry points
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return std::bit_cast<Function*>(function);
}

}  // namespace heddle
