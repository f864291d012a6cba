#include "tests/device/device_kernels.hpp"

#include <cstdlib>

#include "kernels/cuda/byte_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace heddle::testing {
namespace {

using kernel::cuda::check;

__global__ void affine_kernel(TileView t, AffineParameters p) {
  const std::int64_t at = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (at >= t.rows * t.columns) return;
  double& x = t.data[at % t.rows + at / t.rows * t.leading];
  x = p.factor * x + p.addend;
}

/// One thread: the tests' tiles are small, and the first negative sum is to be found.
__global__ void add_kernel(TileView from, TileView to, std::int64_t* info) {
  std::int64_t found = 0;
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) {
      double& x = to.data[i + j * to.leading];
      x += from.data[i + j * from.leading];
      if (found == 0 && x < 0) found = j * to.rows + i + 1;
    }
  }
  if (found != 0) *info = found;
}

__global__ void add_bytes_kernel(AddBytesParameters p) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i >= p.count) return;
  p.to[i] = static_cast<std::uint8_t>(p.to[i] + p.from[i] + p.addend);
}

__global__ void fault_kernel() {
  *static_cast<volatile double*>(nullptr) = 1;
}

void hold_on_host(void* data) {
  const auto* p = static_cast<HoldParameters*>(data);
  p->is_running->store(true, std::memory_order_release);
  p->is_running->notify_all();
  p->is_open->wait(false, std::memory_order_acquire);
  delete p;
}

}  // namespace

void affine_cuda(const CudaLaunch& launch) {
  const TileView& t = launch.tiles[0];
  const std::int64_t count = t.rows * t.columns;
  if (count == 0) return;
  affine_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, launch.context.stream()>>>(
      t, launch.parameters.as<AffineParameters>());
  check(cudaGetLastError(), "launch of affine_kernel");
}

void add_cuda(const CudaLaunch& launch) {
  add_kernel<<<1, 1, 0, launch.context.stream()>>>(launch.tiles[0], launch.tiles[1], launch.info);
  check(cudaGetLastError(), "launch of add_kernel");
}

void add_bytes_cuda(const CudaByteLaunch& launch) {
  const auto p = launch.parameters.as<AddBytesParameters>();
  if (p.count == 0) return;
  add_bytes_kernel<<<static_cast<unsigned>((p.count + 255) / 256), 256, 0,
                     launch.context.stream()>>>(p);
  check(cudaGetLastError(), "launch of add_bytes_kernel");
}

void hold_cuda(const CudaLaunch& launch) {
  check(cudaLaunchHostFunc(launch.context.stream(), hold_on_host,
                           new HoldParameters(launch.parameters.as<HoldParameters>())),
        "cudaLaunchHostFunc");
}

void nothing_cuda(const CudaLaunch&) {}

void fault_cuda(const CudaLaunch& launch) {
  fault_kernel<<<1, 1, 0, launch.context.stream()>>>();
  check(cudaGetLastError(), "launch of fault_kernel");
}

void* take_from_cuda(int gpu, std::size_t bytes) {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  void* address = nullptr;
  check(cudaMalloc(&address, bytes), "cudaMalloc");
  return address;
}

void give_back_to_cuda(void* address) {
  check(cudaFree(address), "cudaFree");
}

}  // namespace heddle::testing
