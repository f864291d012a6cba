#include "base/memory_block.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <new>

namespace heddle {
namespace {

TEST(MemoryBlock, IsAlignedAndOneCanWriteToAllOfIt) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{4096},
                                  huge_page_bytes - 1, huge_page_bytes, huge_page_bytes + 1}) {
    const MemoryBlock block = allocate_memory_block(bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(block.get());
    EXPECT_EQ(address % (bytes < huge_page_bytes ? 64 : huge_page_bytes), 0U) << bytes;
    std::memset(block.get(), 0x5A, bytes);
    EXPECT_EQ(block.get()[bytes - 1], std::byte{0x5A});
  }
}

TEST(MemoryBlock, ThatIsTooLargeIsRefused) {
  EXPECT_THROW(
      static_cast<void>(allocate_memory_block(std::numeric_limits<std::size_t>::max() / 4)),
      std::bad_alloc);
}

}  // namespace
}  // namespace heddle
