#pragma once

#include <cstdint>
#include <memory>
#include <vector>

/// Which bytes a datatype consists of and in which order, without what they mean: the form that
/// descriptions are folded to. All offsets are in bytes from the address that a user passes.
namespace heddle::datatype {

/// Contiguous bytes.
struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

/// The same `count` times, each `stride` bytes after the one before.
struct Loop {
  std::int64_t count = 0;
  std::int64_t stride = 0;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// The columns of a triangle or trapezoid: column j, of `columns`, begins j * stride bytes behind
/// the first one and has first_bytes + j * step_bytes bytes, which is more than 0.
struct Triangle {
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  std::int64_t first_bytes = 0;
  std::int64_t step_bytes = 0;  ///< negative in a lower triangle, positive in an upper one

  [[nodiscard]] std::int64_t bytes_of(std::int64_t column) const {
    return first_bytes + column * step_bytes;
  }
  /// Bytes of the columns before this one.
  [[nodiscard]] std::int64_t bytes_before(std::int64_t column) const {
    return column * first_bytes + column * (column - 1) / 2 * step_bytes;
  }
  friend bool operator==(const Triangle&, const Triangle&) = default;
};

/// Loops around a body. Values; long lists are shared.
///
/// Folded as it is made (the functions below are the only way to make one): neighbouring blocks
/// are joined, loops of loops with one common stride are one loop, equal parts at a constant
/// distance are a loop, also where they were listed one by one.
///
/// Invariant: bytes = 0 and nothing else is set, or
///   bytes = product of the loops' counts * body_bytes; counts > 1;
///   no loop's stride is the length of the loop inside it, nor the innermost one's of a block's;
///   a list has at least 2 blocks, none empty, none beginning where the one before it ends, the
///   first at 0; it is no triangle and not periodic.
struct Layout {
  enum class Body : std::uint8_t {
    block,
    triangle,
    list,
    /// Parts of unlike kinds, in this order; only `expanded` knows its blocks.
    sequence,
  };

  Body body = Body::block;
  std::int64_t offset = 0;  ///< of the body's origin in the loops' first iterations
  std::int64_t bytes = 0;   ///< of everything
  std::int64_t body_bytes = 0;
  std::int64_t block_count = 0;  ///< of everything, or the largest number if that does not fit
  std::vector<Loop> loops;       ///< outermost first
  Triangle triangle;
  std::shared_ptr<const std::vector<Block>> list;
  std::shared_ptr<const std::vector<Layout>> sequence;
};

/// Most blocks that are written out one by one: 16 Mi, with 400 MB of work units for them.
inline constexpr std::int64_t blocks_max = std::int64_t{1} << 24;

[[nodiscard]] Layout block(std::int64_t bytes);
/// `columns` columns, none of them empty.
[[nodiscard]] Layout triangle(const Triangle& triangle);
[[nodiscard]] Layout moved(Layout layout, std::int64_t offset);
[[nodiscard]] Layout repeated(Layout layout, std::int64_t count, std::int64_t stride);
[[nodiscard]] Layout in_sequence(std::vector<Layout> parts);
/// The same blocks with no sequence as the body. Throws Error(usage) above blocks_max of them.
[[nodiscard]] Layout without_sequence(const Layout& layout);
/// All blocks in their order, neighbours joined. Throws Error(usage) above blocks_max of them.
[[nodiscard]] std::vector<Block> expanded(const Layout& layout);

}  // namespace heddle::datatype
