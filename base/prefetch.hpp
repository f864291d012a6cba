#pragma once

#include <cstddef>

namespace heddle {

/// Asks for the memory's cache lines, to be written, and goes on: they come while something else is
/// done. Nothing is read, so others may be writing to it.
inline void prefetch_to_write(const void* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const auto* const first = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(first + at, 1);
}

}  // namespace heddle
