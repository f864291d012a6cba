#pragma once

#include <cstddef>
#include <memory>

namespace heddle {

struct FreeMemoryBlock {
  void operator()(std::byte* block) const;
};
/// Raw memory, aligned to 64 bytes.
using MemoryBlock = std::unique_ptr<std::byte, FreeMemoryBlock>;

/// Blocks of at least this size use huge pages if the system grants them.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Uninitialised. Throws std::bad_alloc.
[[nodiscard]] MemoryBlock allocate_memory_block(std::size_t bytes);

}  // namespace heddle
