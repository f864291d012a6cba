#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/product_choice.hpp"

namespace heddle {

/// Measured implementation choices for large products on a kind of GPU with a version of cuBLAS.
struct GpuProducts {
  std::string gpu;      ///< name as CUDA reports it
  std::string library;  ///< product_library() when measured
  kernel::cuda::ProductChoices choices;
};

/// GPU options of a node.
struct CudaOptions {
  /// Bytes of each GPU for tiles. Unset: free memory less what kernels need, divided by the number
  /// of sharers.
  std::optional<std::uint64_t> memory_bytes;
  /// Number of nodes on this host that see the same GPUs, and this node's index. GPUs are divided
  /// among nodes, or shared if there are more nodes than GPUs.
  std::int32_t nodes = 1;
  std::int32_t node = 0;
  /// For tests: the GPU number of each device; repeats are allowed.
  std::vector<std::int32_t> gpus;
  std::int32_t sharers = 1;  ///< nodes per GPU of this node; set by make_devices()
  /// Choices by kind of GPU; a kind that is missing, or was measured with another library version,
  /// uses the built-in choices.
  std::vector<GpuProducts> products;
};

}  // namespace heddle
