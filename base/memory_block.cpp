#include "base/memory_block.hpp"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace heddle {

void FreeMemoryBlock::operator()(std::byte* block) const {
  std::free(block);
}

MemoryBlock allocate_memory_block(std::size_t bytes) {
  const std::size_t alignment = bytes >= huge_page_bytes ? huge_page_bytes : 64;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  MemoryBlock block(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
  if (!block) throw std::bad_alloc();
  // Advice only; failure is harmless.
  if (alignment == huge_page_bytes) ::madvise(block.get(), size, MADV_HUGEPAGE);
  return block;
}

}  // namespace heddle
