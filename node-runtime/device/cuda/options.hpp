#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace heddle {

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
};

}  // namespace heddle
