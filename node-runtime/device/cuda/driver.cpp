#include "node-runtime/device/cuda/driver.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cuda.h>
#include <fmt/core.h>

#include "node-runtime/device/cuda/driver_function.hpp"

namespace heddle {

std::optional<int> gpu_of(cudaStream_t stream) {
  static auto* const device_of =
      driver_function<CUresult(CUstream, CUdevice*)>("cuStreamGetDevice");
  if (device_of != nullptr) {
    CUdevice gpu = -1;
    return device_of(stream, &gpu) == CUDA_SUCCESS ? std::optional<int>(gpu) : std::nullopt;
  }
  // Drivers before CUDA 13 name the context alone.
  static auto* const context_of = driver_function<CUresult(CUstream, CUcontext*)>("cuStreamGetCtx");
  static auto* const push = driver_function<CUresult(CUcontext)>("cuCtxPushCurrent");
  static auto* const pop = driver_function<CUresult(CUcontext*)>("cuCtxPopCurrent");
  static auto* const current = driver_function<CUresult(CUdevice*)>("cuCtxGetDevice");
  if (context_of == nullptr || push == nullptr || pop == nullptr || current == nullptr) {
    return std::nullopt;
  }
  CUcontext context = nullptr;
  if (context_of(stream, &context) != CUDA_SUCCESS || push(context) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  CUdevice gpu = -1;
  const bool is_found = current(&gpu) == CUDA_SUCCESS;
  static_cast<void>(pop(&context));
  return is_found ? std::optional<int>(gpu) : std::nullopt;
}

std::optional<std::string> wait_for_word(cudaStream_t stream,
                                         const std::atomic<std::uint64_t>* word,
                                         std::uint64_t value) {
  static auto* const wait =
      driver_function<CUresult(CUstream, CUdeviceptr, cuuint64_t, unsigned)>("cuStreamWaitValue64");
  if (wait == nullptr) return "the driver has no cuStreamWaitValue64";
  // Page-locked host memory has the same address on the GPU.
  const CUresult result = wait(stream, std::bit_cast<CUdeviceptr>(word), value,
                               static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ));
  if (result == CUDA_SUCCESS) return std::nullopt;
  return fmt::format("cuStreamWaitValue64 failed with {}", static_cast<int>(result));
}

bool loads_eagerly() {
  static auto* const mode_of =
      driver_function<CUresult(CUmoduleLoadingMode*)>("cuModuleGetLoadingMode");
  CUmoduleLoadingMode mode{};
  return mode_of != nullptr && mode_of(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING;
}

std::uint32_t hardware_queues() {
  constexpr std::int64_t by_default = 8;
  constexpr std::int64_t most = 32;
  const char* const asked = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");  // NOLINT(concurrency-*)
  const std::int64_t queues = asked == nullptr ? by_default : std::strtoll(asked, nullptr, 10);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(queues, 1, most));
}

}  // namespace heddle
