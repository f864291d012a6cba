#pragma once

#include <cstddef>
#include <cstdint>

/// Copies of much memory, past the caches.
namespace heddle::datatype {

inline constexpr std::int64_t cache_line = 64;

/// Fewest bytes of one call for which it pays: that much packed data leaves the inner caches
/// anyway, and not reading the destination before it is written saves a third of the traffic.
/// Fragments of a pipeline are smaller: they are sent while they are still cached.
inline constexpr std::int64_t streamed_bytes_min = std::int64_t{8} << 20U;

/// One of several blocks that are copied at the same time.
struct Lane {
  const std::byte* from;
  std::byte* to;
  std::int64_t bytes;
};

/// Four blocks are on different pages, so that the processor's prefetchers, which stop at the end
/// of a page, have four streams to follow; more do not fit its write-combining buffers.
inline constexpr std::size_t lanes_max = 4;
inline constexpr std::int64_t lane_bytes_max = std::int64_t{64} << 10U;

/// Copies up to lanes_max blocks in lockstep, line by line, with stores that do not read the
/// destination. What other threads are told of it must come after finish_streaming.
void copy_streaming(const Lane* lanes, std::size_t count);
/// Orders the stores of copy_streaming before all later ones.
void finish_streaming();

}  // namespace heddle::datatype
