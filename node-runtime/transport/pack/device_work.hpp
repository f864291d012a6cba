#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "node-runtime/transport/datatype/pack_plan.hpp"

/// What the threads of a packing kernel do, as plain functions of a thread's number: the GPU calls
/// them in its kernels, the tests on the host, where every index can be checked without a GPU.
///
/// A kernel's operands are plain data that the host has made ready (prepare.hpp): pointers are
/// moved to the range's begin, and the numbers that threads count in are below 2^31, so that a
/// division is a multiplication. "Memory" is the side with gaps, "stream" the packed one.
#ifdef __CUDACC__
#define HEDDLE_ON_DEVICE __host__ __device__ __forceinline__
#else
#define HEDDLE_ON_DEVICE inline
#endif
#ifdef __CUDA_ARCH__
#define HEDDLE_UNROLL _Pragma("unroll")
#else
#define HEDDLE_UNROLL
#endif

namespace heddle::packing {

/// Words of one launch at most: numbers and sums of two numbers are then below 2^31.
inline constexpr std::int64_t words_max = std::int64_t{1} << 30U;

/// Divides numbers below 2^31 by a value below 2^31: with s = ceil(log2(value)) and multiplier =
/// ceil(2^(31 + s) / value) the error of the product is below 2^s, too small to be seen.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t multiplier = std::uint32_t{1} << 31U;
  std::uint32_t shift = 31;

  HEDDLE_ON_DEVICE std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>((std::uint64_t{number} * multiplier) >> shift);
  }
};

/// One digit of a number whose digits are the positions in nested loops.
struct Level {
  Divisor count;
  std::uint32_t start = 0;  ///< the digit of number 0
  std::int64_t stride = 0;  ///< bytes of memory for 1 in this digit
};

/// Where the things that loops count lie in memory: number -> digits -> bytes. The last digit has
/// no end. Levels behind `levels` have no effect.
struct Path {
  static constexpr std::uint32_t levels_max = 4;
  Level level[levels_max];  // NOLINT(*-avoid-c-arrays): std::array has no functions on a GPU
  std::uint32_t levels = 0;
  std::int64_t last_stride = 0;

  template <std::uint32_t Used>
  HEDDLE_ON_DEVICE std::int64_t offset_of(std::uint32_t number) const {
    std::int64_t offset = 0;
    HEDDLE_UNROLL
    for (std::uint32_t l = 0; l < Used; ++l) {
      number += level[l].start;
      const std::uint32_t next = level[l].count.quotient(number);
      offset += static_cast<std::int64_t>(number - next * level[l].count.value) * level[l].stride;
      number = next;
    }
    return offset + static_cast<std::int64_t>(number) * last_stride;
  }
  HEDDLE_ON_DEVICE std::int64_t offset_of_any(std::uint32_t number) const {
    return levels == 0 ? static_cast<std::int64_t>(number) * last_stride
                       : offset_of<levels_max>(number);
  }
};

/// The same byte on both sides.
struct Place {
  std::byte* memory = nullptr;
  std::byte* stream = nullptr;

  HEDDLE_ON_DEVICE Place behind(std::int64_t bytes) const {
    return {memory + bytes, stream + bytes};
  }
};

/// Bytes at the ends of a range that are no whole word, or no whole column of a triangle.
struct Edge {
  Place place;
  std::int64_t bytes = 0;
};

// ---- words ------------------------------------------------------------------------------------

struct alignas(16) Word16 {
  std::uint64_t low;
  std::uint64_t high;
};

template <class Word, bool Packs>
HEDDLE_ON_DEVICE Word load(const Place& place) {
  const std::byte* from = Packs ? place.memory : place.stream;
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const Word*>(from);
#else
  Word word{};
  std::memcpy(&word, from, sizeof(Word));
  return word;
#endif
}

template <class Word, bool Packs>
HEDDLE_ON_DEVICE void store(const Place& place, const Word& word) {
  std::byte* to = Packs ? place.stream : place.memory;
#ifdef __CUDA_ARCH__
  *reinterpret_cast<Word*>(to) = word;
#else
  std::memcpy(to, &word, sizeof(Word));
#endif
}

/// Words that a thread has on their way at a time.
template <class Word>
inline constexpr std::uint32_t words_at_once = sizeof(Word) >= 8 ? 4 : 8;
/// The same for a launch that is limited to few blocks: its threads have to keep a link busy
/// whose other end is microseconds away.
template <class Word>
inline constexpr std::uint32_t words_at_once_limited = sizeof(Word) > 8 ? 4 : 8;
/// Groups of words that are 16 bytes long, likewise.
inline constexpr std::uint32_t groups_at_once = 4;
/// In rows, which have both sides' addresses to keep and are short.
inline constexpr std::uint32_t row_words_at_once = 4;

template <bool Packs>
HEDDLE_ON_DEVICE void copy_bytes(const Place& place, std::int64_t bytes, std::uint32_t thread,
                                 std::uint32_t threads) {
  for (std::int64_t i = thread; i < bytes; i += threads) {
    const Place at = place.behind(i);
    store<std::uint8_t, Packs>(at, load<std::uint8_t, Packs>(at));
  }
}

/// Contiguous words i = thread, thread + threads, ...; several loads are on their way before the
/// first store.
template <class Word, bool Packs>
HEDDLE_ON_DEVICE void copy_row(const Place& row, std::uint32_t words, std::uint32_t thread,
                               std::uint32_t threads) {
  constexpr std::uint32_t at_once = row_words_at_once;
  const auto place_of = [&](std::uint32_t i) {
    return row.behind(static_cast<std::int64_t>(i) * std::int64_t{sizeof(Word)});
  };
  for (std::uint32_t first = thread; first < words; first += at_once * threads) {
    Word word[at_once] = {};  // NOLINT(*-avoid-c-arrays)
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      const std::uint32_t i = first + k * threads;
      if (i < words) word[k] = load<Word, Packs>(place_of(i));
    }
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      const std::uint32_t i = first + k * threads;
      if (i < words) store<Word, Packs>(place_of(i), word[k]);
    }
  }
}

/// The position of a thread in its grid.
struct Crew {
  std::uint32_t block = 0;
  std::uint32_t blocks = 1;
  std::uint32_t thread = 0;
  std::uint32_t threads = 1;  ///< of a block

  HEDDLE_ON_DEVICE std::uint32_t number() const { return block * threads + thread; }
  HEDDLE_ON_DEVICE std::uint32_t count() const { return blocks * threads; }
};

/// Words wherever `place_of(i)` says; a block goes from one stretch of them to another, and its
/// threads from one word to the one that is as many words further as the block has threads. Loads
/// have no condition, so that what comes before them is computed for all of them together: at the
/// end the last word is loaded again.
template <class Word, bool Packs, std::uint32_t AtOnce = words_at_once<Word>, class PlaceOf>
HEDDLE_ON_DEVICE void copy_words(std::uint32_t words, const Crew& crew, const PlaceOf& place_of) {
  constexpr std::uint32_t at_once = AtOnce;
  const std::uint32_t stretch = at_once * crew.threads;
  for (std::uint32_t first = crew.block * stretch + crew.thread; first < words;
       first += crew.blocks * stretch) {
    Word word[at_once] = {};  // NOLINT(*-avoid-c-arrays)
    Place place[at_once];     // NOLINT(*-avoid-c-arrays)
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      const std::uint32_t i = first + k * crew.threads;
      place[k] = place_of(i < words ? i : words - 1);
      word[k] = load<Word, Packs>(place[k]);
    }
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      if (first + k * crew.threads < words) store<Word, Packs>(place[k], word[k]);
    }
  }
}

/// Contiguous bytes, of which both sides are equally far from a multiple of a word: what comes
/// before the first such multiple, words, and what is left (000 section 4.2.1).
template <class Word, bool Packs>
HEDDLE_ON_DEVICE void copy_span(const Place& place, std::int64_t bytes, std::uint32_t thread,
                                std::uint32_t threads) {
  constexpr auto word_bytes = static_cast<std::int64_t>(sizeof(Word));
  const auto beyond =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place.memory) % sizeof(Word));
  std::int64_t head = beyond == 0 ? 0 : word_bytes - beyond;
  if (head > bytes) head = bytes;
  const std::int64_t words = (bytes - head) / word_bytes;
  copy_row<Word, Packs>(place.behind(head), static_cast<std::uint32_t>(words), thread, threads);
  // The bytes around the words, as if they were one piece.
  const std::int64_t middle = words * word_bytes;
  for (std::int64_t i = thread; i < bytes - middle; i += threads) {
    const Place at = place.behind(i < head ? i : i + middle);
    store<std::uint8_t, Packs>(at, load<std::uint8_t, Packs>(at));
  }
}

/// Contiguous bytes at any addresses.
template <bool Packs>
HEDDLE_ON_DEVICE void copy_any(const Place& place, std::int64_t bytes, std::uint32_t thread,
                               std::uint32_t threads) {
  const std::uintptr_t unlike = reinterpret_cast<std::uintptr_t>(place.memory) ^
                                reinterpret_cast<std::uintptr_t>(place.stream);
  if (unlike % 16 == 0) {
    copy_span<Word16, Packs>(place, bytes, thread, threads);
  } else if (unlike % 8 == 0) {
    copy_span<std::uint64_t, Packs>(place, bytes, thread, threads);
  } else if (unlike % 4 == 0) {
    copy_span<std::uint32_t, Packs>(place, bytes, thread, threads);
  } else {
    copy_span<std::uint8_t, Packs>(place, bytes, thread, threads);
  }
}

// ---- blocks under loops -----------------------------------------------------------------------

/// Words of the stream in their order; memory by a path, whose innermost level may be the words of
/// a block.
struct Strided {
  Place place;  ///< of word 0
  std::uint32_t words = 0;
  Path path;
  Edge edges[2];  // NOLINT(*-avoid-c-arrays)
};

/// Levels >= path.levels, known to the compiler.
template <class Word, std::uint32_t Levels, bool Packs, std::uint32_t AtOnce = words_at_once<Word>>
HEDDLE_ON_DEVICE void copy_strided(const Strided& work, const Crew& crew) {
  copy_words<Word, Packs, AtOnce>(work.words, crew, [&](std::uint32_t i) {
    return Place{work.place.memory + work.path.offset_of<Levels>(i),
                 work.place.stream + static_cast<std::int64_t>(i) * std::int64_t{sizeof(Word)}};
  });
  for (const Edge& edge : work.edges)
    copy_bytes<Packs>(edge.place, edge.bytes, crew.number(), crew.count());
}

// ---- transposes -------------------------------------------------------------------------------

/// Words of a matrix that is contiguous by columns in memory and by rows in the stream. Those with
/// numbers [begin, end), counted row by row from row 0 on, are copied. A path leads to the rows,
/// whose words are `column_stride` apart in memory.
struct Transposed {
  Place place;  ///< of row 0's first word
  std::int64_t column_stride = 0;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  Divisor tiles_across;
  std::uint32_t tiles = 0;
  Path path;
  Edge edges[2];  // NOLINT(*-avoid-c-arrays)
};

inline constexpr std::uint32_t tile_order = 32;
inline constexpr std::uint32_t tile_threads = 256;
/// Words of a tile for each thread.
inline constexpr std::uint32_t tile_words = tile_order * tile_order / tile_threads;
inline constexpr std::uint32_t tile_lines = tile_threads / tile_order;

/// A tile on its way, column by column; one word of padding, so that rows are in different banks.
template <class Word>
struct Tile {
  Word word[tile_order][tile_order + 1];  // NOLINT(*-avoid-c-arrays)
};

/// What a thread of a tile has to do with its words, on one side: neighbours in a warp are
/// neighbours on that side.
template <class Visit>
HEDDLE_ON_DEVICE void visit_memory_side(const Transposed& work, std::uint32_t tile,
                                        std::uint32_t thread, const Visit& visit) {
  const std::uint32_t down = work.tiles_across.quotient(tile);
  const std::uint32_t across = tile - down * work.tiles_across.value;
  const std::uint32_t row = down * tile_order + thread % tile_order;
  if (row >= work.rows) return;
  std::byte* memory = work.place.memory + work.path.offset_of_any(row);
  HEDDLE_UNROLL
  for (std::uint32_t k = 0; k < tile_words; ++k) {
    const std::uint32_t line = thread / tile_order + k * tile_lines;
    const std::uint32_t column = across * tile_order + line;
    const std::uint32_t number = row * work.columns + column;
    if (column >= work.columns || number < work.begin || number >= work.end) continue;
    visit(k, line, thread % tile_order,
          Place{memory + static_cast<std::int64_t>(column) * work.column_stride, nullptr});
  }
}

template <class Word, class Visit>
HEDDLE_ON_DEVICE void visit_stream_side(const Transposed& work, std::uint32_t tile,
                                        std::uint32_t thread, const Visit& visit) {
  const std::uint32_t down = work.tiles_across.quotient(tile);
  const std::uint32_t across = tile - down * work.tiles_across.value;
  const std::uint32_t column = across * tile_order + thread % tile_order;
  if (column >= work.columns) return;
  HEDDLE_UNROLL
  for (std::uint32_t k = 0; k < tile_words; ++k) {
    const std::uint32_t line = thread / tile_order + k * tile_lines;
    const std::uint32_t row = down * tile_order + line;
    const std::uint32_t number = row * work.columns + column;
    if (row >= work.rows || number < work.begin || number >= work.end) continue;
    visit(k, thread % tile_order, line,
          Place{nullptr, work.place.stream +
                             static_cast<std::int64_t>(number) * std::int64_t{sizeof(Word)}});
  }
}

/// Copies a tile to shared memory. All threads of the tile have done it before
/// one goes on.
template <class Word, bool Packs>
HEDDLE_ON_DEVICE void load_tile(const Transposed& work, std::uint32_t number, std::uint32_t thread,
                                Tile<Word>& tile) {
  Word word[tile_words] = {};  // NOLINT(*-avoid-c-arrays)
  const auto take = [&](std::uint32_t k, std::uint32_t, std::uint32_t, const Place& place) {
    word[k] = load<Word, Packs>(place);
  };
  // A loop of its own, so that all loads are on their way before the first is waited for.
  const auto keep = [&](std::uint32_t k, std::uint32_t column, std::uint32_t row, const Place&) {
    tile.word[column][row] = word[k];
  };
  if constexpr (Packs) {
    visit_memory_side(work, number, thread, take);
    visit_memory_side(work, number, thread, keep);
  } else {
    visit_stream_side<Word>(work, number, thread, take);
    visit_stream_side<Word>(work, number, thread, keep);
  }
}

/// Copies the tile from shared memory.
template <class Word, bool Packs>
HEDDLE_ON_DEVICE void store_tile(const Transposed& work, std::uint32_t number, std::uint32_t thread,
                                 const Tile<Word>& tile) {
  const auto put = [&](std::uint32_t, std::uint32_t column, std::uint32_t row, const Place& place) {
    store<Word, Packs>(place, tile.word[column][row]);
  };
  if constexpr (Packs) {
    visit_stream_side<Word>(work, number, thread, put);
  } else {
    visit_memory_side(work, number, thread, put);
  }
}

// ---- from memory to memory --------------------------------------------------------------------

/// Words of two sides that both have loops; `memory` is read, `stream` is the other side.
struct StridedBetween {
  Place place;  ///< of word 0
  std::uint32_t words = 0;
  Path from;
  Path to;
};

/// Levels >= those of both paths.
template <class Word, std::uint32_t Levels>
HEDDLE_ON_DEVICE void copy_between(const StridedBetween& work, const Crew& crew) {
  copy_words<Word, true>(work.words, crew, [&](std::uint32_t i) {
    return Place{work.place.memory + work.from.offset_of<Levels>(i),
                 work.place.stream + work.to.offset_of<Levels>(i)};
  });
}

// ---- units ------------------------------------------------------------------------------------

/// Consecutive units of each of some consecutive bodies, cut off where the range ends. `lanes`
/// neighbouring threads copy a unit: a warp, or fewer where units are short.
struct Units {
  Place place;  ///< of the first body
  const WorkUnit* units = nullptr;
  Divisor unit_count;
  std::uint32_t number = 0;  ///< of units in all bodies
  std::uint32_t lanes_log2 = 5;
  std::int64_t body_bytes = 0;
  std::int64_t begin = 0;  ///< of the range, from the first body's begin in the stream
  std::int64_t end = 0;
  Path bodies;
};

template <bool Packs>
HEDDLE_ON_DEVICE void copy_units(const Units& work, const Crew& crew) {
  const std::uint32_t lanes = std::uint32_t{1} << work.lanes_log2;
  const std::uint32_t lane = crew.thread & (lanes - 1);
  const std::uint32_t groups = crew.count() >> work.lanes_log2;
  const auto unit_of = [&](std::uint32_t i) {
    return work.units[i - work.unit_count.quotient(i) * work.unit_count.value];
  };
  std::uint32_t i = crew.number() >> work.lanes_log2;
  if (i >= work.number) return;
  WorkUnit next = unit_of(i);
  for (; i < work.number; i += groups) {
    const WorkUnit unit = next;
    // Asked for before this one is copied.
    if (i + groups < work.number) next = unit_of(i + groups);
    const std::uint32_t body = work.unit_count.quotient(i);
    const std::int64_t at = static_cast<std::int64_t>(body) * work.body_bytes + unit.stream;
    const std::int64_t from = at < work.begin ? work.begin - at : 0;
    const std::int64_t to = work.end - at < unit.bytes ? work.end - at : unit.bytes;
    if (from >= to) continue;
    const Place place{work.place.memory + work.bodies.offset_of_any(body) + unit.memory + from,
                      work.place.stream + at + from};
    copy_any<Packs>(place, to - from, lane, lanes);
  }
}

}  // namespace heddle::packing
