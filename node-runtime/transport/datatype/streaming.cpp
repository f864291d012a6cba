#include "node-runtime/transport/datatype/streaming.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace heddle::datatype {
namespace {

/// How far ahead of the copy the source is asked for.
constexpr std::int64_t prefetch_distance = 512;

/// One line; `to` is aligned to it.
void copy_line(const std::byte* from, std::byte* to) {
#ifdef __SSE2__
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* const target = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
#else
  std::memcpy(to, from, static_cast<std::size_t>(cache_line));
#endif
}

void skip(Lane& lane, std::int64_t bytes) {
  lane.from += bytes;
  lane.to += bytes;
  lane.bytes -= bytes;
}

void copy_plain(const Lane& lane) {
  std::memcpy(lane.to, lane.from, static_cast<std::size_t>(lane.bytes));
}

/// All lanes of the same `lines`, two at a time each: a write-combining buffer that is left half
/// full costs as much as one that is full.
template <std::size_t Count>
void copy_lines(const std::array<Lane, lanes_max>& lanes, std::int64_t lines) {
  for (std::int64_t at = 0; at + 2 <= lines; at += 2) {
    for (std::size_t k = 0; k < Count; ++k) {
      const std::byte* from = lanes[k].from + at * cache_line;
      std::byte* to = lanes[k].to + at * cache_line;
      __builtin_prefetch(from + prefetch_distance);
      __builtin_prefetch(from + prefetch_distance + cache_line);
      copy_line(from, to);
      copy_line(from + cache_line, to + cache_line);
    }
  }
}

}  // namespace

void copy_streaming(const Lane* lanes, std::size_t count) {
  std::array<Lane, lanes_max> aligned{};
  std::int64_t lines = lane_bytes_max / cache_line;
  for (std::size_t k = 0; k < count; ++k) {
    aligned[k] = lanes[k];
    Lane head = lanes[k];
    const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(head.to) %
                                                  static_cast<std::uintptr_t>(cache_line));
    head.bytes = std::min((cache_line - beyond) % cache_line, head.bytes);
    copy_plain(head);
    skip(aligned[k], head.bytes);
    lines = std::min(lines, aligned[k].bytes / cache_line);
  }
  lines -= lines % 2;
  switch (count) {
    case 4:
      copy_lines<4>(aligned, lines);
      break;
    case 3:
      copy_lines<3>(aligned, lines);
      break;
    case 2:
      copy_lines<2>(aligned, lines);
      break;
    case 1:
      copy_lines<1>(aligned, lines);
      break;
    default:
      return;
  }
  for (std::size_t k = 0; k < count; ++k) {
    skip(aligned[k], lines * cache_line);
    copy_plain(aligned[k]);
  }
}

void finish_streaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace heddle::datatype
