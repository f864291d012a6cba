#pragma once

#include <cstddef>
#include <cstdint>

#include "node-runtime/transport/pack/device_work.hpp"

/// What the threads of a packing kernel do with triangles and trapezoids, as device_work.hpp says.
namespace heddle::packing {

/// Whole columns of linearly changing length. Column j and the j-th from the end are as long
/// together as any other such pair: word r of pair p is found by one division, and no thread has
/// more to do than another. In the middle of an odd number a column is its own partner, and is
/// copied twice.
///
/// Where lines of one side are to be touched as wholes, a number stands for a group of words that
/// begins at a multiple of 16 bytes there, and a column's numbers from the begin of the line that
/// it begins in to the end of the one that it ends in; some have few words, or none.
struct Trapezoid {
  Place place;              ///< of the first body's first column
  std::uint32_t words = 0;  ///< numbers to go through
  std::uint32_t columns = 0;
  Divisor pair_words;  ///< numbers of a pair
  Divisor pairs;
  std::uint32_t line_mask = 0;  ///< words of a line, a power of two, less 1; 0: lines do not matter
  bool has_lines_in_memory = false;  ///< they are memory's, not the stream's
  std::int64_t column_stride = 0;
  std::uint32_t first_words = 0;
  std::uint32_t step_words = 0;  ///< modulo 2^32: columns may become shorter
  bool has_bodies = false;       ///< more than one
  std::int64_t body_stride = 0;  ///< in the stream
  Path bodies;
  Edge edges[2];  // NOLINT(*-avoid-c-arrays)

  HEDDLE_ON_DEVICE std::uint32_t words_of(std::uint32_t column) const {
    return first_words + column * step_words;
  }
  /// A column, in its body's stream. Twice as many are below 2^31.
  HEDDLE_ON_DEVICE std::uint32_t words_before(std::uint32_t column) const {
    return column * (2 * first_words + (column - 1) * step_words) / 2;
  }
  /// Where a column of a body begins.
  template <class Word>
  HEDDLE_ON_DEVICE Place column_at(const Place& body, std::uint32_t column) const {
    return {body.memory + static_cast<std::int64_t>(column) * column_stride,
            body.stream + static_cast<std::int64_t>(words_before(column)) *
                              static_cast<std::int64_t>(sizeof(Word))};
  }
  /// The body that a pair is in; `pair` is its number there then.
  HEDDLE_ON_DEVICE Place take_body(std::uint32_t& pair) const {
    if (!has_bodies) return place;
    const std::uint32_t number = pairs.quotient(pair);
    pair -= number * pairs.value;
    return {place.memory + bodies.offset_of_any(number),
            place.stream + static_cast<std::int64_t>(number) * body_stride};
  }
};

template <class Word, bool Packs>
HEDDLE_ON_DEVICE void copy_trapezoid(const Trapezoid& work, const Crew& crew) {
  constexpr auto word_bytes = static_cast<std::int64_t>(sizeof(Word));
  copy_words<Word, Packs>(work.words, crew, [&](std::uint32_t i) {
    std::uint32_t pair = work.pair_words.quotient(i);
    std::uint32_t row = i - pair * work.pair_words.value;
    const Place body = work.take_body(pair);
    std::uint32_t column = pair;
    const std::uint32_t length = work.words_of(column);
    if (row >= length) {
      row -= length;
      column = work.columns - 1 - pair;
    }
    return work.column_at<Word>(body, column).behind(static_cast<std::int64_t>(row) * word_bytes);
  });
  for (const Edge& edge : work.edges) {
    copy_span<Word, Packs>(edge.place, edge.bytes, crew.number(), crew.count());
  }
}

/// Words that begin at a multiple of 16 bytes.
template <class Word>
struct alignas(16) Group {
  static constexpr std::uint32_t words = 16 / sizeof(Word);
  Word word[words];  // NOLINT(*-avoid-c-arrays)
};

/// Those of a group that are a column's.
struct GroupPlace {
  Place place;  ///< of the group's begin
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

/// `Work` is a Trapezoid or a TrapezoidBetween.
template <class Word, bool InMemory, class Work>
HEDDLE_ON_DEVICE GroupPlace group_at(const Work& work, std::uint32_t i) {
  constexpr std::uint32_t words = Group<Word>::words;
  if (i >= work.words) return {};
  std::uint32_t pair = work.pair_words.quotient(i);
  std::uint32_t at = (i - pair * work.pair_words.value) * words;
  const Place body = work.take_body(pair);
  // Words from a line's begin to a column's.
  const auto skipped_by = [&](const Place& column) {
    const std::byte* const begin = InMemory ? column.memory : column.stream;
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(begin) /
                                      std::uintptr_t{sizeof(Word)}) &
           work.line_mask;
  };
  std::uint32_t column = pair;
  Place begin = work.template column_at<Word>(body, column);
  std::uint32_t skipped = skipped_by(begin);
  const std::uint32_t of_first =
      (skipped + work.words_of(column) + work.line_mask) & ~work.line_mask;
  if (at >= of_first) {
    at -= of_first;
    column = work.columns - 1 - pair;
    begin = work.template column_at<Word>(body, column);
    skipped = skipped_by(begin);
  }
  // Groups, and so lines, begin at the same words: none is cut by the column's begin but one.
  const std::uint32_t end = skipped + work.words_of(column);
  GroupPlace group;
  group.first = at < skipped ? skipped - at : 0;
  group.end = at + words <= end ? words : (at < end ? end - at : 0);
  const std::int64_t row = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(skipped);
  group.place = begin.behind(row * std::int64_t{sizeof(Word)});
  return group;
}

/// Where work.line_mask > 0; `InMemory` is work.has_lines_in_memory.
template <class Word, bool Packs, bool InMemory, class Work>
HEDDLE_ON_DEVICE void copy_groups(const Work& work, const Crew& crew) {
  using Wide = Group<Word>;
  constexpr std::uint32_t at_once = groups_at_once;
  const auto place_of = [](const GroupPlace& group, std::uint32_t word) {
    return group.place.behind(static_cast<std::int64_t>(word) * std::int64_t{sizeof(Word)});
  };
  const std::uint32_t stretch = at_once * crew.threads;
  for (std::uint32_t first = crew.block * stretch + crew.thread; first < work.words;
       first += crew.blocks * stretch) {
    Wide wide[at_once] = {};    // NOLINT(*-avoid-c-arrays)
    GroupPlace group[at_once];  // NOLINT(*-avoid-c-arrays)
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      group[k] = group_at<Word, InMemory>(work, first + k * crew.threads);
      const bool is_whole = group[k].first == 0 && group[k].end == Wide::words;
      if (Packs == InMemory && is_whole) {
        wide[k] = load<Wide, Packs>(group[k].place);
        continue;
      }
      HEDDLE_UNROLL
      for (std::uint32_t w = 0; w < Wide::words; ++w) {
        if (w < group[k].first || w >= group[k].end) continue;
        wide[k].word[w] = load<Word, Packs>(place_of(group[k], w));
      }
    }
    HEDDLE_UNROLL
    for (std::uint32_t k = 0; k < at_once; ++k) {
      const bool is_whole = group[k].first == 0 && group[k].end == Wide::words;
      if (Packs != InMemory && is_whole) {
        store<Wide, Packs>(group[k].place, wide[k]);
        continue;
      }
      HEDDLE_UNROLL
      for (std::uint32_t w = 0; w < Wide::words; ++w) {
        if (w < group[k].first || w >= group[k].end) continue;
        store<Word, Packs>(place_of(group[k], w), wide[k].word[w]);
      }
    }
  }
}

template <class Word, bool Packs, bool InMemory>
HEDDLE_ON_DEVICE void copy_trapezoid_by_lines(const Trapezoid& work, const Crew& crew) {
  copy_groups<Word, Packs, InMemory>(work, crew);
  for (const Edge& edge : work.edges) {
    copy_span<Word, Packs>(edge.place, edge.bytes, crew.number(), crew.count());
  }
}

// ---- from memory to memory --------------------------------------------------------------------

/// The same columns of linearly changing length on both sides, found as in Trapezoid, by lines too.
struct TrapezoidBetween {
  Place place;  ///< of the first column
  std::uint32_t words = 0;
  std::uint32_t columns = 0;
  Divisor pair_words;
  std::uint32_t line_mask = 0;       ///< as in Trapezoid
  bool has_lines_in_memory = false;  ///< they are those of what is read
  std::int64_t from_stride = 0;
  std::int64_t to_stride = 0;
  std::uint32_t first_words = 0;
  std::uint32_t step_words = 0;  ///< modulo 2^32

  HEDDLE_ON_DEVICE std::uint32_t words_of(std::uint32_t column) const {
    return first_words + column * step_words;
  }
  HEDDLE_ON_DEVICE Place take_body(std::uint32_t) const { return place; }
  template <class Word>
  HEDDLE_ON_DEVICE Place column_at(const Place& body, std::uint32_t column) const {
    return {body.memory + static_cast<std::int64_t>(column) * from_stride,
            body.stream + static_cast<std::int64_t>(column) * to_stride};
  }
};

template <class Word>
HEDDLE_ON_DEVICE void copy_between(const TrapezoidBetween& work, const Crew& crew) {
  constexpr auto word_bytes = static_cast<std::int64_t>(sizeof(Word));
  copy_words<Word, true>(work.words, crew, [&](std::uint32_t i) {
    std::uint32_t column = work.pair_words.quotient(i);
    std::uint32_t row = i - column * work.pair_words.value;
    const std::uint32_t length = work.words_of(column);
    if (row >= length) {
      row -= length;
      column = work.columns - 1 - column;
    }
    return work.column_at<Word>(work.place, column)
        .behind(static_cast<std::int64_t>(row) * word_bytes);
  });
}

/// Where work.line_mask > 0; `InMemory` is work.has_lines_in_memory.
template <class Word, bool InMemory>
HEDDLE_ON_DEVICE void copy_between_by_lines(const TrapezoidBetween& work, const Crew& crew) {
  copy_groups<Word, true, InMemory>(work, crew);
}

}  // namespace heddle::packing
