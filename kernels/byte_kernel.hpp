#pragma once

#include <string_view>

#include "kernels/kernel.hpp"

namespace heddle {

/// The parameters of a byte kernel, by value: addresses, strides, counts.
using ByteParameters = PlainParameters<448>;

/// The argument of a byte kernel's CUDA definition (kernels/cuda/byte_launch.hpp).
struct CudaByteLaunch;

/// A kernel on plain memory instead of tiles: packing, reductions in a transport's buffers. Its
/// parameters say where that memory is. Like Kernel a static constant, deterministic and without
/// state; it returns no value and fails by an exception.
struct ByteKernel {
  std::string_view name;  ///< as the trace shows it
  /// Called by an emulated device's stream, to which all memory is plain memory.
  void (*emulated)(const ByteParameters&) = nullptr;
  /// Queues its work on a CUDA stream and returns. In a build without CUDA it is never called.
  void (*cuda)(const CudaByteLaunch&) = nullptr;
};

}  // namespace heddle
