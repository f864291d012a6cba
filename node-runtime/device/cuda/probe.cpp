#include <algorithm>
#include <cstring>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/device/cuda/cuda_device.hpp"

namespace heddle {
namespace {

std::string version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string why_not(cudaError_t status) {
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) return "this machine has no CUDA driver";
  if (status == cudaErrorInsufficientDriver || driver / 1000 < runtime / 1000) {
    return fmt::format(
        "the driver is for CUDA {}, heddle was built with CUDA {}; install a newer "
        "driver or build with an older toolkit",
        version(driver), version(runtime));
  }
  return fmt::format("CUDA finds no GPU: {} ({})", cudaGetErrorString(status),
                     cudaGetErrorName(status));
}

}  // namespace

CudaProbe probe_cuda() {
  CudaProbe probe;
  int number = 0;
  if (cudaDriverGetVersion(&number) == cudaSuccess && number != 0) probe.driver = version(number);
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) probe.toolkit = version(number);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status != cudaSuccess || count == 0) {
    probe.why = why_not(status == cudaSuccess ? cudaErrorNoDevice : status);
    return probe;
  }
  std::vector<std::string> names;
  for (int gpu = 0; gpu < count; ++gpu) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, gpu); error != cudaSuccess) {
      probe.gpus.clear();
      probe.why = fmt::format("GPU {} cannot be asked for its properties: {}", gpu,
                              cudaGetErrorString(error));
      return probe;
    }
    DeviceUuid uuid;
    static_assert(sizeof uuid.bytes == sizeof properties.uuid);
    std::memcpy(uuid.bytes.data(), &properties.uuid, sizeof properties.uuid);
    probe.gpus.push_back(uuid);
    names.emplace_back(properties.name);
  }
  for (std::size_t i = 0; i < names.size();) {
    const auto alike = static_cast<std::size_t>(std::count(names.begin(), names.end(), names[i]));
    probe.why += fmt::format("{}{} x {}", i == 0 ? "" : ", ", alike, names[i]);
    const std::string name = names[i];
    while (i < names.size() && names[i] == name) ++i;
  }
  return probe;
}

std::unique_ptr<Device> make_cuda_device(std::int32_t index, std::int32_t gpu,
                                         const CudaOptions& options) {
  return std::make_unique<CudaDevice>(index, gpu, options);
}

}  // namespace heddle
