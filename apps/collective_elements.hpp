#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"

/// What the bench of collectives sends, and what has to come of it.
namespace heddle {

/// Where the doubles of a block lie, in their order, and of the next block the first.
struct BlockLayout {
  std::vector<std::int64_t> places;
  std::int64_t extent = 0;  ///< doubles from one block to the next

  [[nodiscard]] std::int64_t doubles() const { return static_cast<std::int64_t>(places.size()); }
  /// The place of double i, counted over all blocks.
  [[nodiscard]] std::size_t at(std::int64_t i) const;
};

/// How the doubles of a block lie.
enum class BlockKind : std::uint8_t {
  contiguous,
  triangle,   ///< the lower one of a square matrix
  submatrix,  ///< square, of a matrix with twice as many rows
  gaps,       ///< every other double
};
inline constexpr std::string_view block_kind_names[] = {"contiguous", "triangle", "submatrix",
                                                        "gaps"};

[[nodiscard]] inline std::string_view name_of(BlockKind kind) {
  return block_kind_names[static_cast<std::size_t>(kind)];
}

/// `name`: of block_kind_names.
[[nodiscard]] BlockKind block_kind(std::string_view name);

/// About `count` doubles in that form, in the memory of 2 * count at most.
struct BlockShape {
  std::int64_t count = 0;
  BlockKind kind = BlockKind::contiguous;

  /// Rows and columns of a triangle or sub-matrix.
  [[nodiscard]] std::int64_t order() const;
  /// Doubles of a block.
  [[nodiscard]] std::int64_t doubles() const;
  [[nodiscard]] BlockLayout layout() const;
  /// A block is `elements()` of type().
  [[nodiscard]] Datatype type() const;
  [[nodiscard]] std::int64_t elements() const { return kind == BlockKind::contiguous ? count : 1; }
};

/// The memory of one rank in an operation of collective_names, with rank 0 as the root and sums.
class CollectiveElements {
 public:
  CollectiveElements(std::string operation, int rank, int size, const BlockShape& shape)
      : operation_(std::move(operation)), rank_(rank), size_(size), layout_(shape.layout()) {}

  /// Writes what a call needs: its input, or in place what its one buffer has; -1 elsewhere.
  void write(std::span<double> input, std::span<double> output, bool is_in_place) const;
  /// Whether every double of the output is what it has to be, and nothing between them was
  /// touched. After write().
  [[nodiscard]] bool are_right(std::span<const double> output) const;

 private:
  [[nodiscard]] std::int64_t in_blocks() const;
  [[nodiscard]] std::int64_t out_blocks() const;
  [[nodiscard]] double result(std::int64_t i) const;

  std::string operation_;
  int rank_;
  int size_;
  BlockLayout layout_;
};

}  // namespace heddle
