#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/product_choice.hpp"

namespace heddle {

/// Measured choices for large products on one kind of GPU with one version of cuBLAS.
struct GpuProducts {
  std::string gpu;      ///< its name, as CUDA has it
  std::string library;  ///< product_library() of that time
  kernel::cuda::ProductChoices choices;
};

/// How a node uses GPUs.
struct CudaOptions {
  /// Of each GPU, for tiles. Unset: what is free, less what kernels need beside it, divided among
  /// those who use the GPU.
  std::optional<std::uint64_t> memory_bytes;
  /// Nodes of this host that see the same GPUs, and which of them this node is: they divide the
  /// GPUs among themselves, and share them where there are more nodes than GPUs.
  std::int32_t nodes = 1;
  std::int32_t node = 0;
  /// GPU number of each device instead, several devices on one GPU allowed: for tests.
  std::vector<std::int32_t> gpus;
  std::int32_t sharers = 1;  ///< nodes that use each of this node's GPUs; make_devices() decides it
  /// What products run on, by kind of GPU; a kind that is not there, or was measured with another
  /// library, takes the built-in choices.
  std::vector<GpuProducts> products;
};

}  // namespace heddle
