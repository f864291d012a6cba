#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace heddle {

/// An allocation of device memory, whoever made it.
struct CudaAllocation {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t identity = 0;  ///< CUDA's number for it; not used again in this process
};

/// What lies at `address` now, if it is memory of GPU `gpu` alone: host memory, managed memory and
/// other GPUs' are nothing.
[[nodiscard]] std::optional<CudaAllocation> allocation_at(const void* address, int gpu);

}  // namespace heddle
