#pragma once

#include <string_view>

#include "kernels/kernel.hpp"

namespace heddle {

/// The plain values that a byte kernel is given, by value: addresses, strides, counts.
using ByteParameters = PlainParameters<256>;

/// What a byte kernel's CUDA definition sees (kernels/cuda/byte_launch.hpp).
struct CudaByteLaunch;

/// A kernel on plain memory instead of tiles: packing, reductions in a transport's buffers. Its
/// parameters say where that memory is. Like Kernel a static constant, deterministic and without
/// state; it returns nothing and fails by an exception.
struct ByteKernel {
  std::string_view name;  ///< as the trace shows it
  /// Called by an emulated device's stream, to which all memory is plain memory.
  void (*emulated)(const ByteParameters&) = nullptr;
  /// Queues its work on a CUDA stream and returns. In a build without CUDA it is never called.
  void (*cuda)(const CudaByteLaunch&) = nullptr;
};

}  // namespace heddle
