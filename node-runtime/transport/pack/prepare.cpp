#include "node-runtime/transport/pack/prepare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <optional>
#include <span>

#include "base/assert.hpp"

namespace heddle::packing {
namespace {

using datatype::Loop;
using datatype::Triangle;

/// The loops of a nest, innermost first, with one more inside.
class Loops {
 public:
  Loops() = default;
  /// Those outside of the innermost `skipped`.
  Loops(const LoopNest& nest, std::size_t skipped) {
    for (std::size_t l = nest.depth - skipped; l-- > 0;) add(nest.loops[l]);
  }
  void add(const Loop& loop) { loops_[count_++] = loop; }
  [[nodiscard]] std::span<const Loop> all() const& { return {loops_.data(), count_}; }

 private:
  std::array<Loop, LoopNest::depth_max + 1> loops_{};
  std::size_t count_ = 0;
};

/// The loops of blocks in words.
Loops loops_of_words(const LoopNest& nest, std::int64_t word_bytes) {
  Loops words;
  if (nest.body_bytes > word_bytes || nest.depth == 0) {
    words.add({nest.body_bytes / word_bytes, word_bytes});
  }
  for (std::size_t l = nest.depth; l-- > 0;) words.add(nest.loops[l]);
  return words;
}

/// The path to element `first` of some loops and to those after it.
struct PathFrom {
  Path path;
  std::int64_t offset = 0;
  std::int64_t count = 0;  ///< how many the path reaches, at most as many as were wanted
};

/// Loops that the wanted things do not leave need no level; of a loop too long to count in, the
/// path reaches only the end.
PathFrom path_from(std::span<const Loop> loops, std::int64_t first, std::int64_t wanted) {
  PathFrom result;
  result.count = std::min(wanted, words_max);
  std::int64_t at = first;
  std::int64_t length = 1;  // things in an iteration
  bool has_last = false;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    const Loop& loop = loops[l];
    const bool is_outermost = l + 1 == loops.size();
    // The outermost one's count may be 0, of a block shorter than a word.
    const std::int64_t digit = is_outermost ? at : at % loop.count;
    if (!is_outermost) at /= loop.count;
    if (has_last) {
      result.offset += digit * loop.stride;
      continue;
    }
    // To the end of the loop.
    const std::int64_t left =
        is_outermost ? result.count : (loop.count - digit) * length - first % length;
    if (left >= result.count || loop.count >= words_max) {
      result.count = std::min(result.count, left);
      result.offset += digit * loop.stride;
      result.path.last_stride = loop.stride;
      has_last = true;
    } else {
      result.path.level[result.path.levels++] = {divisor_of(loop.count),
                                                 static_cast<std::uint32_t>(digit), loop.stride};
      length *= loop.count;
    }
  }
  return result;
}

/// From `memory` to byte `at` of a stream of blocks.
std::int64_t offset_of_byte(const LoopNest& nest, std::int64_t at) {
  std::int64_t offset = nest.offset + (nest.depth == 0 ? at : at % nest.body_bytes);
  at /= nest.body_bytes;
  for (std::size_t l = nest.depth; l-- > 0; at /= nest.loops[l].count) {
    offset += at % nest.loops[l].count * nest.loops[l].stride;
  }
  return offset;
}

/// From `memory` to body `number`.
std::int64_t offset_of_body(const LoopNest& nest, std::int64_t number) {
  std::int64_t offset = nest.offset;
  for (std::size_t l = nest.depth; l-- > 0; number /= nest.loops[l].count) {
    offset += number % nest.loops[l].count * nest.loops[l].stride;
  }
  return offset;
}

/// The widest word that divides everything that `bits` is the union of.
std::int64_t widest_word(std::uint64_t bits) {
  return std::int64_t{1} << std::min(std::countr_zero(bits), 4);
}

std::uint64_t bits_of(const BlocksWork& work) {
  const auto stream =
      reinterpret_cast<std::uintptr_t>(work.packed) - static_cast<std::uintptr_t>(work.range.begin);
  std::uint64_t bits = stream | (reinterpret_cast<std::uintptr_t>(work.memory) +
                                 static_cast<std::uintptr_t>(work.nest.offset));
  for (std::size_t l = 0; l < work.nest.depth; ++l) {
    bits |= static_cast<std::uint64_t>(work.nest.loops[l].stride);
  }
  if (work.body == PackPlan::Body::triangle) {
    return bits | static_cast<std::uint64_t>(work.triangle.stride) |
           static_cast<std::uint64_t>(work.triangle.first_bytes) |
           static_cast<std::uint64_t>(work.triangle.step_bytes);
  }
  return work.nest.depth == 0 ? bits : bits | static_cast<std::uint64_t>(work.nest.body_bytes);
}

// ---- blocks ----------------------------------------------------------------------------------

/// A range of blocks as whole words [first, end) and the bytes around them.
struct WordRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::array<Edge, 2> edges{};
};

WordRange words_of(const BlocksWork& work, std::int64_t word_bytes) {
  const std::int64_t begin = work.range.begin;
  const std::int64_t end = begin + work.range.bytes;
  const auto edge = [&](std::int64_t from, std::int64_t to) {
    return Edge{{work.memory + offset_of_byte(work.nest, from), work.packed + (from - begin)},
                to - from};
  };
  WordRange words{(begin + word_bytes - 1) / word_bytes, end / word_bytes, {}};
  const std::int64_t first_byte = words.first * word_bytes;
  const std::int64_t end_byte = words.end * word_bytes;
  if (words.first > words.end) {
    words.end = words.first;
    words.edges[0] = edge(begin, end);
    return words;
  }
  if (begin < first_byte) words.edges[0] = edge(begin, first_byte);
  if (end_byte < end) words.edges[1] = edge(end_byte, end);
  return words;
}

template <class Work>
void take_edges(Work& work, std::array<Edge, 2>& edges) {
  std::copy(edges.begin(), edges.end(), std::begin(work.edges));
  edges = {};
}

void prepare_strided(const BlocksWork& work, Launcher& launcher) {
  const std::int64_t word_bytes = widest_word(bits_of(work));
  const Loops loops = loops_of_words(work.nest, word_bytes);
  WordRange words = words_of(work, word_bytes);
  do {
    const PathFrom from = path_from(loops.all(), words.first, words.end - words.first);
    Strided part;
    part.words = static_cast<std::uint32_t>(from.count);
    part.path = from.path;
    part.place = {work.memory + work.nest.offset + from.offset,
                  work.packed + (words.first * word_bytes - work.range.begin)};
    take_edges(part, words.edges);
    launcher.launch(part, static_cast<std::size_t>(word_bytes));
    words.first += from.count;
  } while (words.first < words.end);
}

/// A matrix whose rows travel, stored by columns: single words with a long way from each to the
/// next, and neighbours in the next loop. Too few rows are no faster in tiles.
bool is_transpose(const BlocksWork& work) {
  constexpr std::int64_t rows_min = 4;
  constexpr std::int64_t columns_min = 4;
  const LoopNest& nest = work.nest;
  if (nest.depth < 2 || nest.body_bytes < 4 || nest.body_bytes > 16 ||
      !std::has_single_bit(static_cast<std::uint64_t>(nest.body_bytes))) {
    return false;
  }
  const Loop& columns = nest.loops[nest.depth - 1];
  const Loop& rows = nest.loops[nest.depth - 2];
  const std::int64_t row_bytes = columns.count * nest.body_bytes;
  return rows.stride == nest.body_bytes && std::abs(columns.stride) > nest.body_bytes &&
         rows.count >= rows_min && columns.count >= columns_min && columns.count < words_max / 4 &&
         work.range.bytes >= rows_min * row_bytes && widest_word(bits_of(work)) == nest.body_bytes;
}

void prepare_transposed(const BlocksWork& work, Launcher& launcher) {
  const std::int64_t word_bytes = work.nest.body_bytes;
  const Loop& columns = work.nest.loops[work.nest.depth - 1];
  const Loops rows(work.nest, 1);
  WordRange words = words_of(work, word_bytes);
  while (words.first < words.end) {
    const std::int64_t first_row = words.first / columns.count;
    const std::int64_t begin = words.first % columns.count;
    const std::int64_t wanted =
        std::min(words_max / 2, words.end - words.first + begin);  // with those before `begin`
    const PathFrom from =
        path_from(rows.all(), first_row, (wanted + columns.count - 1) / columns.count);
    const std::int64_t end = std::min(wanted, from.count * columns.count);
    const auto tiles_of = [](std::int64_t n) { return (n + tile_order - 1) / tile_order; };
    Transposed part;
    part.place = {work.memory + work.nest.offset + from.offset,
                  work.packed + (first_row * columns.count * word_bytes - work.range.begin)};
    part.column_stride = columns.stride;
    part.rows = static_cast<std::uint32_t>(from.count);
    part.columns = static_cast<std::uint32_t>(columns.count);
    part.begin = static_cast<std::uint32_t>(begin);
    part.end = static_cast<std::uint32_t>(end);
    part.tiles_across = divisor_of(tiles_of(columns.count));
    part.tiles = static_cast<std::uint32_t>(tiles_of(columns.count) * tiles_of(from.count));
    part.path = from.path;
    take_edges(part, words.edges);
    launcher.launch(part, static_cast<std::size_t>(word_bytes));
    words.first += end - begin;
  }
}

// ---- triangles -------------------------------------------------------------------------------

/// Columns in whole lines.
struct ByLines {
  std::int64_t pair_numbers = 0;  ///< of groups of words
  std::uint32_t mask = 0;         ///< words of a line, less 1
};

/// nullopt where two columns are so short that the lines that they share would matter.
std::optional<ByLines> by_lines(std::int64_t pair_words, std::int64_t word_bytes) {
  constexpr std::int64_t line_bytes = 128;
  constexpr std::int64_t lines_min = 8;
  constexpr std::int64_t group_bytes = 16;
  const std::int64_t line_words = line_bytes / word_bytes;
  if (pair_words < lines_min * line_words) return std::nullopt;
  // Each column begins within a line, and the first one's numbers end with one.
  const std::int64_t mask = line_words - 1;
  return ByLines{((pair_words + 4 * mask) & ~mask) / (group_bytes / word_bytes),
                 static_cast<std::uint32_t>(mask)};
}

/// The last column that begins at byte `at` of a triangle or before; `columns` at its end.
std::int64_t column_of(const Triangle& triangle, std::int64_t at) {
  std::int64_t column = 0;
  for (std::int64_t beyond = triangle.columns + 1; beyond - column > 1;) {
    const std::int64_t middle = column + (beyond - column) / 2;
    (triangle.bytes_before(middle) <= at ? column : beyond) = middle;
  }
  return column;
}

class TrianglePreparation {
 public:
  TrianglePreparation(const BlocksWork& work, Launcher& launcher, bool has_lines_in_memory = false)
      : work_(work),
        launcher_(launcher),
        has_lines_in_memory_(has_lines_in_memory),
        word_bytes_(widest_word(bits_of(work))),
        bodies_(work.nest, 0) {}

  void run() {
    const std::int64_t size = work_.nest.body_bytes;
    const std::int64_t end = work_.range.begin + work_.range.bytes;
    const std::int64_t bytes_max = words_max * word_bytes_;
    for (std::int64_t at = work_.range.begin; at < end;) {
      const std::int64_t body = at / size;
      const std::int64_t begin = at % size;
      // Numbers of a body count up to half a pair more than its words.
      const std::int64_t whole = begin > 0 ? 0 : std::min(end - at, bytes_max / 2) / size;
      if (whole > 0) {
        at += bodies(body, whole) * size;
      } else {
        const std::int64_t part_end = std::min({size, begin + (end - at), begin + bytes_max / 2});
        part(body, begin, part_end);
        at += part_end - begin;
      }
    }
  }

 private:
  [[nodiscard]] Place place_of(std::int64_t body_offset, std::int64_t body, std::int64_t column,
                               std::int64_t row_bytes) const {
    const std::int64_t in_stream =
        body * work_.nest.body_bytes + work_.triangle.bytes_before(column) + row_bytes;
    return {work_.memory + body_offset + column * work_.triangle.stride + row_bytes,
            work_.packed + (in_stream - work_.range.begin)};
  }

  /// Columns [first, end) of each of `count` bodies; their place is to be filled in.
  [[nodiscard]] Trapezoid columns(std::int64_t first, std::int64_t end, std::int64_t count) const {
    const std::int64_t number = end - first;
    Trapezoid part;
    if (number == 0) return part;
    const std::int64_t pairs = (number + 1) / 2;
    std::int64_t pair_words =
        (work_.triangle.bytes_of(first) + work_.triangle.bytes_of(end - 1)) / word_bytes_;
    if (work_.far != FarSide::none || has_lines_in_memory_) {
      if (const auto lines = by_lines(pair_words, word_bytes_)) {
        pair_words = lines->pair_numbers;
        part.line_mask = lines->mask;
        part.has_lines_in_memory = work_.far != FarSide::stream;
      }
    }
    part.words = static_cast<std::uint32_t>(count * pairs * pair_words);
    part.columns = static_cast<std::uint32_t>(number);
    part.pair_words = divisor_of(pair_words);
    part.pairs = divisor_of(pairs);
    part.column_stride = work_.triangle.stride;
    part.first_words = static_cast<std::uint32_t>(work_.triangle.bytes_of(first) / word_bytes_);
    part.step_words = static_cast<std::uint32_t>(work_.triangle.step_bytes / word_bytes_);
    part.has_bodies = count > 1;
    part.body_stride = work_.nest.body_bytes;
    return part;
  }

  /// Returns how many of the bodies from `first` on are done.
  std::int64_t bodies(std::int64_t first, std::int64_t count) {
    PathFrom from;
    from.count = 1;
    if (work_.nest.depth > 0) from = path_from(bodies_.all(), first, count);
    Trapezoid part = columns(0, work_.triangle.columns, from.count);
    part.place = place_of(work_.nest.offset + from.offset, first, 0, 0);
    part.bodies = from.path;
    launcher_.launch(part, static_cast<std::size_t>(word_bytes_));
    return from.count;
  }

  /// Bytes [begin, end) of one body.
  void part(std::int64_t body, std::int64_t begin, std::int64_t end) {
    const Triangle& triangle = work_.triangle;
    const std::int64_t offset = offset_of_body(work_.nest, body);
    const auto edge = [&](std::int64_t column, std::int64_t from, std::int64_t to) {
      const std::int64_t row = from - triangle.bytes_before(column);
      return Edge{place_of(offset, body, column, row), to - from};
    };
    const std::int64_t column = column_of(triangle, begin);
    const bool is_cut = triangle.bytes_before(column) < begin;
    const std::int64_t first = is_cut ? column + 1 : column;
    const std::int64_t last = std::max(first, column_of(triangle, end));
    Trapezoid part = columns(first, last, 1);
    part.place = place_of(offset, body, first, 0);
    if (is_cut) part.edges[0] = edge(column, begin, std::min(end, triangle.bytes_before(first)));
    const std::int64_t last_begin = triangle.bytes_before(last);
    if (last_begin < end) part.edges[1] = edge(last, last_begin, end);
    launcher_.launch(part, static_cast<std::size_t>(word_bytes_));
  }

  const BlocksWork& work_;
  Launcher& launcher_;
  const bool has_lines_in_memory_;
  const std::int64_t word_bytes_;
  const Loops bodies_;
};

constexpr std::int64_t column_bytes_min = 4096;

/// Long blocks that begin anywhere in lines which are better touched as wholes, because they are
/// written or lie on the host: columns of a triangle that do not change.
bool wants_whole_lines(const BlocksWork& work) {
  const bool are_long = work.nest.depth == 1 && work.nest.body_bytes >= column_bytes_min;
  if (!are_long || work.far == FarSide::stream) return false;
  if (work.far == FarSide::memory) return true;
  return !work.packs && widest_word(bits_of(work)) < 16;
}

void prepare_columns(const BlocksWork& work, Launcher& launcher) {
  BlocksWork columns = work;
  columns.body = PackPlan::Body::triangle;
  columns.triangle = {work.nest.loops[0].count, work.nest.loops[0].stride, work.nest.body_bytes, 0};
  columns.nest.depth = 0;
  columns.nest.body_bytes = work.nest.loops[0].count * work.nest.body_bytes;
  TrianglePreparation(columns, launcher, true).run();
}

}  // namespace

Divisor divisor_of(std::int64_t value) {
  HEDDLE_DEBUG(value > 0 && value < 2 * words_max, "{}", value);
  const auto divisor = static_cast<std::uint64_t>(value);
  const auto log2 = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const std::uint64_t power = std::uint64_t{1} << (31 + log2);
  return {static_cast<std::uint32_t>(value),
          static_cast<std::uint32_t>((power + divisor - 1) / divisor), 31 + log2};
}

std::uint32_t lanes_log2_for(std::int64_t bytes_mean) {
  // A few words for each lane, which are on their way at the same time.
  constexpr std::int64_t bytes_of_a_lane = 32;
  const auto lanes = static_cast<std::uint64_t>((bytes_mean - 1) / bytes_of_a_lane);
  return std::min<std::uint32_t>(5, static_cast<std::uint32_t>(std::bit_width(lanes)));
}

void prepare(const BlocksWork& work, Launcher& launcher) {
  if (work.body == PackPlan::Body::triangle) {
    TrianglePreparation(work, launcher).run();
  } else if (is_transpose(work)) {
    prepare_transposed(work, launcher);
  } else if (wants_whole_lines(work)) {
    prepare_columns(work, launcher);
  } else {
    prepare_strided(work, launcher);
  }
}

void prepare(const UnitsWork& work, Launcher& launcher) {
  const std::int64_t size = work.nest.body_bytes;
  const std::int64_t range_end = work.range.begin + work.range.bytes;
  const std::int64_t end = (range_end - 1) / size + 1;
  const Loops bodies(work.nest, 0);
  for (std::int64_t body = work.range.begin / size; body < end;) {
    PathFrom from;
    from.count = 1;
    if (work.nest.depth > 0) {
      const std::int64_t bodies_max = std::max<std::int64_t>(1, words_max / work.count);
      from = path_from(bodies.all(), body, std::min(end - body, bodies_max));
    }
    Units part;
    part.place = {work.memory + work.nest.offset + from.offset,
                  work.packed + (body * size - work.range.begin)};
    part.units = work.units;
    part.unit_count = divisor_of(work.count);
    part.number = static_cast<std::uint32_t>(from.count * work.count);
    part.lanes_log2 = work.lanes_log2;
    part.body_bytes = size;
    part.begin = work.range.begin - body * size;
    part.end = range_end - body * size;
    part.bodies = from.path;
    launcher.launch(part);
    body += from.count;
  }
}

namespace {

/// One side's addresses, and the lengths of its contiguous pieces.
std::uint64_t bits_of(const LoopNest& nest, const std::byte* memory) {
  std::uint64_t bits =
      reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(nest.offset);
  bits |= static_cast<std::uint64_t>(nest.body_bytes);
  for (std::size_t l = 0; l < nest.depth; ++l) {
    bits |= static_cast<std::uint64_t>(nest.loops[l].stride);
  }
  return bits;
}

std::byte* writable(const std::byte* memory) {
  return const_cast<std::byte*>(memory);  // NOLINT(*-const-cast): a place has one type of address
}

void prepare_blocks(const BetweenWork& work, Launcher& launcher) {
  const std::int64_t word_bytes =
      widest_word(bits_of(work.from_nest, work.from) | bits_of(work.to_nest, work.to));
  const Loops from_loops = loops_of_words(work.from_nest, word_bytes);
  const Loops to_loops = loops_of_words(work.to_nest, word_bytes);
  std::int64_t words = work.from_nest.body_bytes / word_bytes;
  for (std::size_t l = 0; l < work.from_nest.depth; ++l) words *= work.from_nest.loops[l].count;
  for (std::int64_t first = 0; first < words;) {
    const std::int64_t reached = path_from(from_loops.all(), first, words - first).count;
    const PathFrom to = path_from(to_loops.all(), first, reached);
    const PathFrom from = path_from(from_loops.all(), first, to.count);
    StridedBetween part;
    part.place = {writable(work.from) + work.from_nest.offset + from.offset,
                  work.to + work.to_nest.offset + to.offset};
    part.words = static_cast<std::uint32_t>(to.count);
    part.from = from.path;
    part.to = to.path;
    launcher.launch(part, static_cast<std::size_t>(word_bytes));
    first += to.count;
  }
}

/// Some whole columns at a time.
void prepare_triangles(const BetweenWork& work, Launcher& launcher) {
  const Triangle& triangle = work.triangle;
  const std::uint64_t bits = bits_of(work.from_nest, work.from) | bits_of(work.to_nest, work.to) |
                             static_cast<std::uint64_t>(triangle.stride) |
                             static_cast<std::uint64_t>(work.to_stride) |
                             static_cast<std::uint64_t>(triangle.first_bytes) |
                             static_cast<std::uint64_t>(triangle.step_bytes);
  const std::int64_t word_bytes = widest_word(bits);
  for (std::int64_t first = 0; first < triangle.columns;) {
    // Numbers count up to half a pair more than the words.
    const std::int64_t most = triangle.bytes_before(first) + words_max / 2 * word_bytes;
    const std::int64_t end =
        std::max(first + 1, std::min(triangle.columns, column_of(triangle, most)));
    const std::int64_t columns = end - first;
    std::int64_t pair_words = (triangle.bytes_of(first) + triangle.bytes_of(end - 1)) / word_bytes;
    TrapezoidBetween part;
    if (work.far != FarSide::none) {
      if (const auto lines = by_lines(pair_words, word_bytes)) {
        pair_words = lines->pair_numbers;
        part.line_mask = lines->mask;
        part.has_lines_in_memory = work.far == FarSide::memory;
      }
    }
    part.place = {writable(work.from) + work.from_nest.offset + first * triangle.stride,
                  work.to + work.to_nest.offset + first * work.to_stride};
    part.words = static_cast<std::uint32_t>((columns + 1) / 2 * pair_words);
    part.columns = static_cast<std::uint32_t>(columns);
    part.pair_words = divisor_of(pair_words);
    part.from_stride = triangle.stride;
    part.to_stride = work.to_stride;
    part.first_words = static_cast<std::uint32_t>(triangle.bytes_of(first) / word_bytes);
    part.step_words = static_cast<std::uint32_t>(triangle.step_bytes / word_bytes);
    launcher.launch(part, static_cast<std::size_t>(word_bytes));
    first = end;
  }
}

/// Columns of constant length, in the form of a triangle's.
BetweenWork as_triangle(const BetweenWork& work, const CopyShape& columns) {
  BetweenWork result = work;
  const auto bytes = static_cast<std::int64_t>(columns.column_bytes);
  const auto count = static_cast<std::int64_t>(columns.columns);
  result.body = PackPlan::Body::triangle;
  result.triangle = {count, static_cast<std::int64_t>(columns.source_leading), bytes, 0};
  result.to_stride = static_cast<std::int64_t>(columns.destination_leading);
  for (LoopNest* nest : {&result.from_nest, &result.to_nest}) {
    nest->depth = 0;
    nest->body_bytes = count * bytes;
  }
  return result;
}

}  // namespace

BetweenWork BetweenWork::of(const LoopShape& from_shape, const LoopShape& to_shape) {
  HEDDLE_CHECK(from_shape.fits(to_shape));
  BetweenWork work;
  work.body = from_shape.body;
  work.from_nest = from_shape.nest;
  work.to_nest = to_shape.nest;
  work.triangle = from_shape.triangle;
  work.to_stride = to_shape.triangle.stride;
  return work;
}

std::optional<CopyShape> BetweenWork::columns() const {
  const bool are_alike = from_nest.depth == 0 || to_nest.depth == 0 ||
                         (from_nest.body_bytes == to_nest.body_bytes &&
                          from_nest.loops[0].count == to_nest.loops[0].count);
  if (body != PackPlan::Body::block || from_nest.depth > 1 || to_nest.depth > 1 || !are_alike) {
    return std::nullopt;
  }
  const std::int64_t bytes = std::min(from_nest.body_bytes, to_nest.body_bytes);
  const std::int64_t all =
      from_nest.body_bytes * (from_nest.depth == 0 ? 1 : from_nest.loops[0].count);
  const auto stride_of = [&](const LoopNest& nest) {
    return nest.depth == 0 ? bytes : nest.loops[0].stride;
  };
  if (stride_of(from_nest) < bytes || stride_of(to_nest) < bytes) return std::nullopt;
  return CopyShape{static_cast<std::size_t>(bytes), static_cast<std::size_t>(all / bytes),
                   static_cast<std::size_t>(stride_of(to_nest)),
                   static_cast<std::size_t>(stride_of(from_nest))};
}

void prepare(const BetweenWork& work, Launcher& launcher) {
  if (work.body == PackPlan::Body::triangle) return prepare_triangles(work, launcher);
  const auto columns = work.columns();
  // Longer ones than words_max have no numbers.
  const bool are_long = columns && columns->column_bytes >= std::size_t{column_bytes_min} &&
                        columns->column_bytes <= std::size_t{words_max};
  if (work.far != FarSide::none && are_long) {
    prepare_triangles(as_triangle(work, *columns), launcher);
  } else {
    prepare_blocks(work, launcher);
  }
}

}  // namespace heddle::packing
