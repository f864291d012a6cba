#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace heddle {

/// An allocation of device memory by anyone in this process.
struct CudaAllocation {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t identity = 0;  ///< CUDA's buffer id, unique in this process
};

/// The allocation at `address` if it is memory of GPU `gpu`; nothing for host memory, managed
/// memory and other GPUs.
[[nodiscard]] std::optional<CudaAllocation> allocation_at(const void* address, int gpu);

}  // namespace heddle
