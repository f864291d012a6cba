#include "node-runtime/transport/datatype/pack.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/core.h>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/copies.hpp"

namespace heddle {
namespace {

using datatype::Loop;
using datatype::Triangle;

/// A place in the outer loops of a nest, as the digits of a number. Offsets are kept up to date.
class Odometer {
 public:
  /// Loops [0, depth) of the nest, at their iteration number `at`.
  Odometer(const LoopNest& nest, std::size_t depth, std::int64_t at)
      : nest_(nest), depth_(depth), offset_(nest.offset) {
    for (std::size_t i = depth; i-- > 0;) {
      const Loop& loop = nest.loops[i];
      digits_[i] = at % loop.count;
      at /= loop.count;
      offset_ += digits_[i] * loop.stride;
    }
  }

  [[nodiscard]] std::int64_t offset() const { return offset_; }

  /// Iterations that the innermost of these loops has left, this one included.
  [[nodiscard]] std::int64_t left() const {
    return depth_ == 0 ? 1 : nest_.loops[depth_ - 1].count - digits_[depth_ - 1];
  }

  /// `steps` <= left().
  void advance(std::int64_t steps) {
    for (std::size_t i = depth_; i-- > 0; steps = 1) {
      const Loop& loop = nest_.loops[i];
      digits_[i] += steps;
      offset_ += steps * loop.stride;
      if (digits_[i] < loop.count) return;
      digits_[i] = 0;
      offset_ -= loop.count * loop.stride;
    }
  }

 private:
  const LoopNest& nest_;
  std::size_t depth_;
  std::int64_t offset_;
  std::array<std::int64_t, LoopNest::depth_max> digits_{};
};

/// The walk through a range of the stream, in one of both directions.
template <class Direction>
class Walk {
 public:
  using Memory = typename Direction::Memory;
  using Stream = typename Direction::Stream;

  Walk(const PackPlan& plan, const LoopNest& nest, Memory memory, Stream stream, std::int64_t bytes)
      : plan_(plan), nest_(nest), memory_(memory), left_(bytes), copier_(stream, bytes) {}

  /// From byte `begin` of the stream on.
  void run(std::int64_t begin) {
    if (plan_.body != PackPlan::Body::block) {
      bodies(begin);
    } else if (nest_.depth > 0) {
      blocks(begin);
    } else {
      Direction::copy(memory_ + nest_.offset + begin, copier_.claim(left_),
                      static_cast<std::size_t>(left_));
    }
    copier_.finish();
  }

 private:
  /// Bytes [from, to) of a block, or as many as are left.
  void part(Memory block, std::int64_t from, std::int64_t to) {
    const std::int64_t bytes = std::min(to - from, left_);
    copier_.add(block + from, bytes);
    left_ -= bytes;
  }

  void blocks(std::int64_t begin) {
    const std::int64_t size = nest_.body_bytes;
    const Loop& inner = nest_.loops[nest_.depth - 1];
    const std::int64_t first = begin / size;
    std::int64_t skipped = begin % size;
    std::int64_t index = first % inner.count;
    Odometer outer(nest_, nest_.depth - 1, first / inner.count);
    while (left_ > 0) {
      if (index == 0 && skipped == 0 && rows(outer)) continue;
      const Memory row = memory_ + outer.offset();
      if (skipped > 0) {
        part(row + index * inner.stride, skipped, size);
        skipped = 0;
        ++index;
      }
      const std::int64_t whole = std::min(inner.count - index, left_ / size);
      whole_blocks(row + index * inner.stride, inner.stride, whole);
      index += whole;
      if (index < inner.count && left_ > 0) part(row + index * inner.stride, 0, size);
      index = 0;
      outer.advance(1);
    }
  }

  void whole_blocks(Memory memory, std::int64_t stride, std::int64_t count) {
    const std::int64_t size = nest_.body_bytes;
    left_ -= count * size;
    if (size < datatype::BlockCopier<Direction>::block_bytes_min) {
      datatype::copy_short_blocks<Direction>(memory, stride, copier_.claim(count * size), size,
                                             count);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) copier_.add(memory + i * stride, size);
  }

  /// Copies some whole iterations of the inner loop at once, if they are rows of a matrix that is
  /// stored by columns. False if not.
  bool rows(Odometer& outer) {
    if (nest_.depth < 2 || !datatype::is_copied_by_rows(nest_.body_bytes)) return false;
    const Loop& inner = nest_.loops[nest_.depth - 1];
    const Loop& next = nest_.loops[nest_.depth - 2];
    if (std::abs(next.stride) >= std::abs(inner.stride)) return false;
    const std::int64_t row_bytes = inner.count * nest_.body_bytes;
    const std::int64_t count = std::min({datatype::rows_together, outer.left(), left_ / row_bytes});
    if (count < 2) return false;
    datatype::copy_rows<Direction>(memory_ + outer.offset(), copier_.claim(count * row_bytes),
                                   nest_.body_bytes,
                                   {count, next.stride, inner.count, inner.stride});
    left_ -= count * row_bytes;
    outer.advance(count);
    return true;
  }

  void bodies(std::int64_t begin) {
    std::int64_t skipped = begin % nest_.body_bytes;
    Odometer loops(nest_, nest_.depth, begin / nest_.body_bytes);
    for (; left_ > 0; loops.advance(1)) {
      const Memory origin = memory_ + loops.offset();
      if (plan_.body == PackPlan::Body::triangle) {
        columns(origin, skipped);
      } else {
        units(origin, skipped);
      }
      skipped = 0;
    }
  }

  /// One triangle from its byte `skipped` on.
  void columns(Memory origin, std::int64_t skipped) {
    const Triangle& triangle = plan_.triangle;
    // The last column that begins at `skipped` or before.
    std::int64_t column = 0;
    for (std::int64_t beyond = skipped == 0 ? 1 : triangle.columns; beyond - column > 1;) {
      const std::int64_t middle = column + (beyond - column) / 2;
      (triangle.bytes_before(middle) <= skipped ? column : beyond) = middle;
    }
    skipped -= triangle.bytes_before(column);
    for (; column < triangle.columns && left_ > 0; ++column) {
      part(origin + column * triangle.stride, skipped, triangle.bytes_of(column));
      skipped = 0;
    }
  }

  /// The units of one body from its byte `skipped` on.
  void units(Memory origin, std::int64_t skipped) {
    auto unit = plan_.units.begin();
    if (skipped > 0) {
      unit = std::upper_bound(
          plan_.units.begin(), plan_.units.end(), skipped,
          [](std::int64_t at, const WorkUnit& other) { return at < other.stream; });
      --unit;
      skipped -= unit->stream;
    }
    while (unit != plan_.units.end() && left_ > 0) {
      // What was cut for the sake of balance is one block here.
      const Memory block = origin + unit->memory;
      std::int64_t bytes = unit->bytes;
      const std::int64_t offset = unit->memory;
      for (++unit; unit != plan_.units.end() && unit->memory == offset + bytes; ++unit) {
        bytes += unit->bytes;
      }
      part(block, skipped, bytes);
      skipped = 0;
    }
  }

  const PackPlan& plan_;
  const LoopNest& nest_;
  Memory memory_;
  std::int64_t left_;  ///< bytes to copy
  datatype::BlockCopier<Direction> copier_;
};

template <class Direction>
void copy(const PackPlan& plan, std::int64_t count, typename Direction::Memory memory,
          const StreamRange& range, typename Direction::Stream packed) {
  const std::int64_t all = plan.stream_bytes(count);
  if (range.begin < 0 || range.bytes < 0 || range.begin > all || range.bytes > all - range.begin) {
    throw Error(ErrorCode::usage,
                fmt::format("{} bytes from byte {} on are not within the packed stream of {} bytes "
                            "that {} elements make",
                            range.bytes, range.begin, all, count));
  }
  if (range.bytes == 0) return;
  const LoopNest nest = plan.nest_of(count);
  Walk<Direction>(plan, nest, memory, packed, range.bytes).run(range.begin);
}

}  // namespace

void pack(const PackPlan& plan, std::int64_t count, const void* memory, StreamRange range,
          void* packed) {
  copy<datatype::Packing>(plan, count, static_cast<const std::byte*>(memory), range,
                          static_cast<std::byte*>(packed));
}

void unpack(const PackPlan& plan, std::int64_t count, StreamRange range, const void* packed,
            void* memory) {
  copy<datatype::Unpacking>(plan, count, static_cast<std::byte*>(memory), range,
                            static_cast<const std::byte*>(packed));
}

}  // namespace heddle
