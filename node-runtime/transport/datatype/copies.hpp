#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "node-runtime/transport/datatype/streaming.hpp"

/// Copies between memory and the packed stream, written once for both directions: a direction says
/// which side is which.
namespace heddle::datatype {

struct Packing {
  using Memory = const std::byte*;
  using Stream = std::byte*;
  static void copy(Memory memory, Stream stream, std::size_t bytes) {
    std::memcpy(stream, memory, bytes);
  }
  static Lane lane(Memory memory, Stream stream, std::int64_t bytes) {
    return {memory, stream, bytes};
  }
};

struct Unpacking {
  using Memory = std::byte*;
  using Stream = const std::byte*;
  static void copy(Memory memory, Stream stream, std::size_t bytes) {
    std::memcpy(memory, stream, bytes);
  }
  static Lane lane(Memory memory, Stream stream, std::int64_t bytes) {
    return {stream, memory, bytes};
  }
};

/// For lengths that are not known before: short ones without a call.
template <class Direction>
void copy_any(typename Direction::Memory memory, typename Direction::Stream stream,
              std::int64_t bytes) {
  switch (bytes) {
    case 4:
      return Direction::copy(memory, stream, 4);
    case 8:
      return Direction::copy(memory, stream, 8);
    case 16:
      return Direction::copy(memory, stream, 16);
    default:
      return Direction::copy(memory, stream, static_cast<std::size_t>(bytes));
  }
}

/// Prefetches a line that is going to be written, in exclusive state, so that the store needs no
/// second request to other cores.
inline void prefetch_to_write(const std::byte* line) {
#ifdef __x86_64__
  // As the builtin where the compiler may assume it; a processor without it does nothing.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Asks for a line of the elements in memory.
template <class Direction>
void prefetch_memory(const std::byte* line) {
  if constexpr (std::is_same_v<Direction, Packing>) {
    __builtin_prefetch(line);
  } else {
    prefetch_to_write(line);
  }
}

/// Copies blocks that are added in the order of the stream, each some blocks later than it was
/// added: the processor's prefetchers do not follow a jump to the next block, so blocks are
/// prefetched first; and large amounts are copied several blocks at a time, past the caches
/// (streaming.hpp).
template <class Direction>
class BlockCopier {
 public:
  using Memory = typename Direction::Memory;
  using Stream = typename Direction::Stream;

  /// Shorter blocks are copied at once: they would gain less than the delay costs.
  static constexpr std::int64_t block_bytes_min = 256;

  /// `bytes` are what is going to be added in all.
  BlockCopier(Stream stream, std::int64_t bytes)
      : stream_(stream), streams_past_caches_(bytes >= streamed_bytes_min) {}
  BlockCopier(const BlockCopier&) = delete;
  BlockCopier& operator=(const BlockCopier&) = delete;
  ~BlockCopier() = default;

  /// The next block of the stream.
  void add(Memory memory, std::int64_t bytes) {
    if (bytes < block_bytes_min) {
      copy_any<Direction>(memory, stream_, bytes);
    } else if (streams_past_caches_) {
      // Long blocks in pieces, so that lanes end together.
      for (std::int64_t done = 0; done < bytes; done += lane_bytes_max) {
        push(
            Direction::lane(memory + done, stream_ + done, std::min(lane_bytes_max, bytes - done)));
        if (waiting_ == lanes_.size()) stream_lanes();
      }
    } else if (bytes <= prefetched_bytes_max) {
      if (waiting_ == prefetched_blocks) {
        copy_first(memory);
      } else {
        for (std::int64_t at = 0; at < bytes; at += cache_line) {
          prefetch_memory<Direction>(memory + at);
        }
      }
      push(Direction::lane(memory, stream_, bytes));
    } else {
      Direction::copy(memory, stream_, static_cast<std::size_t>(bytes));
    }
    stream_ += bytes;
  }

  /// Where the next `bytes` of the stream are, for the caller to copy.
  Stream claim(std::int64_t bytes) {
    const Stream place = stream_;
    stream_ += bytes;
    return place;
  }

  /// Copies the blocks that are still waiting.
  void finish() {
    if (streams_past_caches_) {
      stream_lanes();
      finish_streaming();
    }
    while (waiting_ > 0) copy_first(nullptr);
  }

 private:
  /// How many blocks ahead of the copy memory is asked for.
  static constexpr std::size_t prefetched_blocks = 2;
  /// In longer blocks the processor's prefetchers catch up, and ours are in their way.
  static constexpr std::int64_t prefetched_bytes_max = 8192;

  void push(const Lane& lane) { lanes_[waiting_++] = lane; }

  void stream_lanes() {
    copy_streaming(lanes_.data(), waiting_);
    waiting_ = 0;
  }

  /// Copies the block that has waited for longest, line by line, and in the same steps asks for
  /// the lines of memory that `ahead` points to and, packing, those of the stream behind the block.
  void copy_first(Memory ahead) {
    const Lane block = lanes_[0];
    lanes_[0] = lanes_[1];
    --waiting_;
    std::int64_t at = 0;
    for (; at + cache_line <= block.bytes; at += cache_line) {
      if (ahead != nullptr) {
        prefetch_memory<Direction>(ahead + at);
        if constexpr (std::is_same_v<Direction, Packing>) {
          prefetch_to_write(block.to + block.bytes + at);
        }
      }
      std::memcpy(block.to + at, block.from + at, static_cast<std::size_t>(cache_line));
    }
    std::memcpy(block.to + at, block.from + at, static_cast<std::size_t>(block.bytes - at));
  }

  Stream stream_;
  bool streams_past_caches_;
  std::array<Lane, lanes_max> lanes_{};
  std::size_t waiting_ = 0;
};

/// `count` blocks, `stride` bytes apart in memory, one behind the other in the stream.
template <class Direction, std::size_t BlockBytes>
void copy_blocks_of(typename Direction::Memory memory, std::int64_t stride,
                    typename Direction::Stream stream, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    Direction::copy(memory + i * stride, stream + i * static_cast<std::int64_t>(BlockBytes),
                    BlockBytes);
  }
}

/// The same for blocks too short for a BlockCopier.
template <class Direction>
void copy_short_blocks(typename Direction::Memory memory, std::int64_t stride,
                       typename Direction::Stream stream, std::int64_t block_bytes,
                       std::int64_t count) {
  switch (block_bytes) {
    case 1:
      return copy_blocks_of<Direction, 1>(memory, stride, stream, count);
    case 2:
      return copy_blocks_of<Direction, 2>(memory, stride, stream, count);
    case 4:
      return copy_blocks_of<Direction, 4>(memory, stride, stream, count);
    case 8:
      return copy_blocks_of<Direction, 8>(memory, stride, stream, count);
    case 16:
      return copy_blocks_of<Direction, 16>(memory, stride, stream, count);
    case 24:
      return copy_blocks_of<Direction, 24>(memory, stride, stream, count);
    case 32:
      return copy_blocks_of<Direction, 32>(memory, stride, stream, count);
    case 64:
      return copy_blocks_of<Direction, 64>(memory, stride, stream, count);
    default:
      for (std::int64_t i = 0; i < count; ++i) {
        Direction::copy(memory + i * stride, stream + i * block_bytes,
                        static_cast<std::size_t>(block_bytes));
      }
  }
}

/// Rows of a matrix whose columns are `column_stride` bytes apart and whose rows are `row_stride`,
/// one row behind the other in the stream.
struct Rows {
  std::int64_t count;
  std::int64_t row_stride;
  std::int64_t columns;
  std::int64_t column_stride;
};

/// Rows that are copied together: four cache lines of doubles in a column, so that a column, which
/// is as a rule on a page of its own, is visited once for all of them.
inline constexpr std::int64_t rows_together = 32;

/// Transposes between columns in memory and rows that are `row_bytes` apart. In tiles as wide as a
/// cache line of a row: of both sides each line is used as a whole while it is there. The columns
/// of the next tile are asked for ahead, since no prefetcher of the processor follows them.
template <class Direction, std::size_t ElementBytes>
void transpose(typename Direction::Memory memory, typename Direction::Stream stream,
               const Rows& rows, std::int64_t row_bytes) {
  constexpr auto element = static_cast<std::int64_t>(ElementBytes);
  constexpr std::int64_t width = cache_line / element;
  for (std::int64_t first = 0; first < rows.columns; first += width) {
    const std::int64_t end = std::min(first + width, rows.columns);
    const std::int64_t ahead = std::min(end + width, rows.columns);
    for (std::int64_t j = end; j < ahead; ++j) {
      const auto column = memory + j * rows.column_stride;
      for (std::int64_t i = 0; i < rows.count; i += width) {
        prefetch_memory<Direction>(column + i * rows.row_stride);
      }
      prefetch_memory<Direction>(column + (rows.count - 1) * rows.row_stride);
    }
    const auto corner = memory + first * rows.column_stride;
    const auto place = stream + first * element;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const auto row = corner + i * rows.row_stride;
      // A width that the compiler knows is worth a branch.
      if (end - first == width) {
        copy_blocks_of<Direction, ElementBytes>(row, rows.column_stride, place + i * row_bytes,
                                                width);
      } else {
        copy_blocks_of<Direction, ElementBytes>(row, rows.column_stride, place + i * row_bytes,
                                                end - first);
      }
    }
  }
}

/// `rows.count` <= rows_together. Packing goes through a small buffer: stores to that many rows at
/// once would each wait for their line of the stream.
template <class Direction, std::size_t ElementBytes>
void copy_rows_of(typename Direction::Memory memory, typename Direction::Stream stream,
                  const Rows& rows) {
  constexpr auto element = static_cast<std::int64_t>(ElementBytes);
  const std::int64_t row_bytes = rows.columns * element;
  if constexpr (std::is_same_v<Direction, Packing>) {
    constexpr std::int64_t columns_at_once = 1024 / element;
    // An odd number of cache lines: powers of two would lie in the same few sets of a cache.
    constexpr std::int64_t buffer_row_bytes = columns_at_once * element + cache_line;
    constexpr auto buffer_bytes = static_cast<std::size_t>(rows_together * buffer_row_bytes);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): what is read was written before
    alignas(cache_line) std::array<std::byte, buffer_bytes> buffer;
    for (std::int64_t first = 0; first < rows.columns; first += columns_at_once) {
      Rows part = rows;
      part.columns = std::min(columns_at_once, rows.columns - first);
      transpose<Packing, ElementBytes>(memory + first * rows.column_stride, buffer.data(), part,
                                       buffer_row_bytes);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(stream + i * row_bytes + first * element, buffer.data() + i * buffer_row_bytes,
                    static_cast<std::size_t>(part.columns * element));
      }
    }
  } else {
    transpose<Direction, ElementBytes>(memory, stream, rows, row_bytes);
  }
}

/// Elements of the usual sizes.
inline bool is_copied_by_rows(std::int64_t element_bytes) {
  return element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
}

template <class Direction>
void copy_rows(typename Direction::Memory memory, typename Direction::Stream stream,
               std::int64_t element_bytes, const Rows& rows) {
  switch (element_bytes) {
    case 4:
      return copy_rows_of<Direction, 4>(memory, stream, rows);
    case 8:
      return copy_rows_of<Direction, 8>(memory, stream, rows);
    default:
      return copy_rows_of<Direction, 16>(memory, stream, rows);
  }
}

}  // namespace heddle::datatype
