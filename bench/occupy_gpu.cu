/// A process that computes on a share of a GPU, for others to be measured beside it (000 section
/// 4.4.4): kernel after kernel of some milliseconds, of blocks that fill a multiprocessor each.
/// Says "ready" when they run. occupy_gpu DEVICE SHARE SECONDS.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "occupy_gpu: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

constexpr std::uint64_t kernel_ns = 2'000'000;

__device__ std::uint64_t time_ns() {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__global__ void compute(double* result) {
  extern __shared__ double all_of_it[];
  const std::uint64_t begin_ns = time_ns();
  double x = 1.0 + threadIdx.x * 1e-9;
  do {
    for (int i = 0; i < 1000; ++i) x = fma(x, 1.0000001, 1e-9);
  } while (time_ns() - begin_ns < kernel_ns);
  all_of_it[threadIdx.x] = x;
  if (x == 0) *result = all_of_it[0];  // never, but the compiler does not know
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: occupy_gpu DEVICE SHARE SECONDS\n");
    return 2;
  }
  const int device = std::atoi(words[1]);
  const double share = std::atof(words[2]);
  check(cudaSetDevice(device), "choosing the device");
  int processors = 0;
  int shared_bytes = 0;
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "asking");
  check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking");
  check(cudaFuncSetAttribute(compute, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "taking the shared memory");
  double* result = nullptr;
  check(cudaMalloc(&result, sizeof(double)), "taking memory");
  const int blocks = static_cast<int>(std::lround(share * processors));
  // Two are queued at a time, so that one follows the other at once.
  cudaEvent_t ends[2];
  for (cudaEvent_t& end : ends) {
    check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "making an event");
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(std::atof(words[3]));
  for (int kernel = 0; Clock::now() < until; ++kernel) {
    if (kernel == 2) {
      std::printf("ready: %d of %d multiprocessors\n", blocks, processors);
      std::fflush(stdout);
    }
    check(cudaEventSynchronize(ends[kernel % 2]), "computing");
    if (blocks > 0) {
      compute<<<blocks, 1024, shared_bytes>>>(result);
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kernel_ns));
    }
    check(cudaGetLastError(), "launching");
    check(cudaEventRecord(ends[kernel % 2]), "recording");
  }
  check(cudaDeviceSynchronize(), "computing");
  return 0;
}
