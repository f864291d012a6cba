#pragma once

#include <cstddef>

namespace heddle {

/// Prefetches the cache lines for writing. Nothing is read, so others may write to the memory
/// meanwhile.
inline void prefetch_to_write(const void* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const auto* const first = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(first + at, 1);
}

}  // namespace heddle
