// On which GPUs, and with which versions of CUDA's libraries, are figures made? Two lines for the
// list below a table.
#include <array>
#include <cstdlib>
#include <exception>

#include "bench/peers/cuda_support.hpp"

namespace peer = heddle::peer;

namespace {

/// "13.0" for 13000.
std::string version_of(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// What cublasGetProperty and cusolverGetProperty have in common.
template <class Get>
std::string library_version(const Get& get) {
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    peer::check(get(part, &value), "the version of a library");
    text += (text.empty() ? "" : ".") + std::to_string(value);
  }
  return text;
}

}  // namespace

int main() try {
  const int count = peer::gpu_count();
  cudaDeviceProp properties{};
  peer::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  peer::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  peer::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::printf("- GPUs: %d x %s, %d multiprocessors and %.1f GiB each\n", count, properties.name,
              properties.multiProcessorCount,
              static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  std::printf("- CUDA %s (driver for up to %s), cuBLAS %s, cuSOLVER %s\n",
              version_of(runtime).c_str(), version_of(driver).c_str(),
              library_version(cublasGetProperty).c_str(),
              library_version(cusolverGetProperty).c_str());
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
