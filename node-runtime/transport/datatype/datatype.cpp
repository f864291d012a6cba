#include "node-runtime/transport/datatype/datatype.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/checked.hpp"
#include "node-runtime/transport/datatype/layout.hpp"
#include "node-runtime/transport/datatype/signature.hpp"

namespace heddle {

using datatype::checked_difference;
using datatype::checked_product;
using datatype::checked_sum;
using datatype::Layout;

namespace {

void check_count(std::string_view what, std::string_view name, std::int64_t count) {
  if (count >= 0) return;
  throw Error(ErrorCode::usage, fmt::format("{}: {} is {}; counts and lengths must not be negative",
                                            what, name, count));
}

}  // namespace

/// Invariant: where the layout is empty, the true bounds are 0; without set bounds, the others too.
/// Differences of bounds fit 64 bits.
struct Datatype::Node {
  std::int64_t lower_bound = 0;
  std::int64_t upper_bound = 0;
  std::int64_t true_lower_bound = 0;
  std::int64_t true_upper_bound = 0;
  std::int64_t alignment = 1;  ///< strictest of its scalars
  bool bounds_are_set = false;
  Signature signature;
  datatype::Layout layout;
};

Datatype::Datatype(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}

std::int64_t Datatype::size() const {
  return node_->layout.bytes;
}
std::int64_t Datatype::lower_bound() const {
  return node_->lower_bound;
}
std::int64_t Datatype::upper_bound() const {
  return node_->upper_bound;
}
std::int64_t Datatype::true_lower_bound() const {
  return node_->true_lower_bound;
}
std::int64_t Datatype::true_upper_bound() const {
  return node_->true_upper_bound;
}
const Signature& Datatype::signature() const {
  return node_->signature;
}
const Layout& Datatype::layout() const {
  return node_->layout;
}

/// The bounds of a type that consists of copies of other types.
class Datatype::Bounds {
 public:
  /// `length` > 0 elements side by side from `displacement` on.
  void add(const Node& element, std::int64_t displacement, std::int64_t length) {
    if (element.layout.bytes == 0 && !element.bounds_are_set) return;
    const std::int64_t extent = checked_difference(element.upper_bound, element.lower_bound);
    const std::int64_t last = checked_sum(displacement, checked_product(length - 1, extent));
    const auto [low, high] = std::minmax(displacement, last);
    (element.bounds_are_set ? set_ : implied_)
        .include(checked_sum(low, element.lower_bound), checked_sum(high, element.upper_bound));
    if (element.layout.bytes == 0) return;
    true_.include(checked_sum(low, element.true_lower_bound),
                  checked_sum(high, element.true_upper_bound));
    alignment_ = std::max(alignment_, element.alignment);
  }

  void give_to(Node& node, bool padded) const {
    node.bounds_are_set = !set_.is_empty;
    const Range& range = node.bounds_are_set ? set_ : implied_;
    node.lower_bound = range.low;
    node.upper_bound = range.high;
    node.true_lower_bound = true_.low;
    node.true_upper_bound = true_.high;
    node.alignment = alignment_;
    const std::int64_t extent = checked_difference(range.high, range.low);
    static_cast<void>(checked_difference(true_.high, true_.low));
    if (!padded || node.bounds_are_set || extent % alignment_ == 0) return;
    node.upper_bound = checked_sum(range.high, alignment_ - extent % alignment_);
  }

 private:
  struct Range {
    std::int64_t low = 0;
    std::int64_t high = 0;
    bool is_empty = true;
    void include(std::int64_t from, std::int64_t to) {
      low = is_empty ? from : std::min(low, from);
      high = is_empty ? to : std::max(high, to);
      is_empty = false;
    }
  };
  Range implied_;
  Range set_;
  Range true_;
  std::int64_t alignment_ = 1;
};

/// One node for each scalar, so that what was committed is found again.
Datatype::Datatype(Scalar scalar) {
  static const auto nodes = [] {
    std::array<std::shared_ptr<const Node>, scalar_count> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto each = static_cast<Scalar>(i);
      Node node;
      node.upper_bound = node.true_upper_bound = size_of(each);
      node.alignment = alignment_of(each);
      node.signature = Signature(each);
      node.layout = datatype::block(size_of(each));
      all[i] = std::make_shared<const Node>(std::move(node));
    }
    return all;
  }();
  node_ = nodes.at(static_cast<std::size_t>(scalar));
}

Datatype Datatype::regular(std::string_view what, std::int64_t count, std::int64_t block_length,
                           std::int64_t stride_bytes, const Datatype& type) {
  check_count(what, "the count", count);
  check_count(what, "the block length", block_length);
  Node node;
  if (count == 0 || block_length == 0) return Datatype(std::move(node));
  Bounds bounds;
  bounds.add(*type.node_, 0, block_length);
  bounds.add(*type.node_, checked_product(count - 1, stride_bytes), block_length);
  bounds.give_to(node, false);
  node.signature = type.signature().repeated(checked_product(count, block_length));
  node.layout = datatype::repeated(datatype::repeated(type.layout(), block_length, type.extent()),
                                   count, stride_bytes);
  return Datatype(std::move(node));
}

Datatype Datatype::contiguous(std::int64_t count, const Datatype& type) {
  return regular("a contiguous type", count, 1, type.extent(), type);
}

Datatype Datatype::vector(std::int64_t count, std::int64_t block_length, std::int64_t stride,
                          const Datatype& type) {
  return regular("a vector", count, block_length, checked_product(stride, type.extent()), type);
}

Datatype Datatype::hvector(std::int64_t count, std::int64_t block_length, std::int64_t stride_bytes,
                           const Datatype& type) {
  return regular("an hvector", count, block_length, stride_bytes, type);
}

Datatype Datatype::assembled(std::string_view what, std::span<const Member> members, bool padded) {
  Node node;
  Bounds bounds;
  std::vector<Layout> layouts;
  std::vector<Signature> signatures;
  layouts.reserve(members.size());
  signatures.reserve(members.size());
  for (const Member& member : members) {
    check_count(what, "the length of a block", member.length);
    if (member.length == 0) continue;
    bounds.add(*member.type.node_, member.displacement_bytes, member.length);
    signatures.push_back(member.type.signature().repeated(member.length));
    layouts.push_back(datatype::moved(
        datatype::repeated(member.type.layout(), member.length, member.type.extent()),
        member.displacement_bytes));
  }
  bounds.give_to(node, padded);
  node.signature = Signature::sequence(signatures);
  node.layout = datatype::in_sequence(std::move(layouts));
  return Datatype(std::move(node));
}

Datatype Datatype::structure(std::span<const Member> members) {
  return assembled("a structure", members, true);
}

Datatype Datatype::indexed(std::span<const IndexedBlock> blocks, const Datatype& type) {
  std::vector<Member> members;
  members.reserve(blocks.size());
  for (const IndexedBlock& block : blocks) {
    members.push_back({checked_product(block.displacement, type.extent()), block.length, type});
  }
  return assembled("an indexed type", members, false);
}

Datatype Datatype::hindexed(std::span<const IndexedBlock> blocks, const Datatype& type) {
  std::vector<Member> members;
  members.reserve(blocks.size());
  for (const IndexedBlock& block : blocks) {
    members.push_back({block.displacement, block.length, type});
  }
  return assembled("an hindexed type", members, false);
}

Datatype Datatype::indexed_block(std::int64_t block_length,
                                 std::span<const std::int64_t> displacements,
                                 const Datatype& type) {
  check_count("an indexed block type", "the block length", block_length);
  std::vector<Member> members;
  members.reserve(displacements.size());
  for (const std::int64_t displacement : displacements) {
    members.push_back({checked_product(displacement, type.extent()), block_length, type});
  }
  return assembled("an indexed block type", members, false);
}

Datatype Datatype::hindexed_block(std::int64_t block_length,
                                  std::span<const std::int64_t> displacements_bytes,
                                  const Datatype& type) {
  check_count("an hindexed block type", "the block length", block_length);
  std::vector<Member> members;
  members.reserve(displacements_bytes.size());
  for (const std::int64_t displacement : displacements_bytes) {
    members.push_back({displacement, block_length, type});
  }
  return assembled("an hindexed block type", members, false);
}

Datatype Datatype::subarray(std::span<const Dimension> dimensions, Order order,
                            const Datatype& type) {
  std::int64_t offset = 0;
  std::int64_t stride = type.extent();  // from one index of the dimension to the next
  Datatype part = type;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Dimension& d = dimensions[order == Order::column_major ? i : dimensions.size() - 1 - i];
    check_count("a subarray", "a subsize", d.subsize);
    if (d.start < 0 || d.start > d.size || d.subsize > d.size - d.start) {
      throw Error(ErrorCode::usage,
                  fmt::format("a subarray: {} elements from {} on are not within a dimension of {}",
                              d.subsize, d.start, d.size));
    }
    offset = checked_sum(offset, checked_product(d.start, stride));
    part = regular("a subarray", d.subsize, 1, stride, part);
    stride = checked_product(stride, d.size);
  }
  const Member member{offset, 1, part};
  return resized(assembled("a subarray", std::span(&member, 1), false), 0, stride);
}

Datatype Datatype::resized(const Datatype& type, std::int64_t lower_bound, std::int64_t extent) {
  Node node = *type.node_;
  node.lower_bound = lower_bound;
  node.upper_bound = checked_sum(lower_bound, extent);
  node.bounds_are_set = true;
  return Datatype(std::move(node));
}

Datatype Datatype::triangle(const TriangleShape& shape, Scalar scalar) {
  check_count("a triangle", "the number of rows", shape.rows);
  check_count("a triangle", "the number of columns", shape.columns);
  if (shape.leading < shape.rows) {
    throw Error(ErrorCode::usage,
                fmt::format("a triangle: a leading dimension of {} is less than the {} rows",
                            shape.leading, shape.rows));
  }
  const std::int64_t element = size_of(scalar);
  // What is computed below is no more than twice the matrix and thus fits.
  const std::int64_t leading = checked_product(shape.leading, element);
  static_cast<void>(checked_product(checked_sum(checked_product(2, shape.columns), 2), leading));
  const bool lower = shape.part == TriangleShape::Part::lower;
  const std::int64_t without = shape.diagonal ? 0 : 1;  // elements of a column that are left out
  const std::int64_t corner = std::min(shape.rows, shape.columns);
  // The columns whose lengths change, and those to the right of an upper trapezoid.
  const std::int64_t first_column = lower ? 0 : without;
  const std::int64_t last_column = lower ? std::min(shape.columns, shape.rows - without)
                                         : std::min(corner + without, shape.columns);
  std::vector<Layout> parts;
  if (last_column > first_column) {
    const datatype::Triangle tapered{
        last_column - first_column, lower ? leading + element : leading,
        lower ? (shape.rows - without) * element : element, lower ? -element : element};
    parts.push_back(datatype::moved(datatype::triangle(tapered),
                                    lower ? without * element : without * leading));
  }
  if (!lower && shape.columns > last_column) {
    parts.push_back(datatype::moved(datatype::repeated(datatype::block(shape.rows * element),
                                                       shape.columns - last_column, leading),
                                    last_column * leading));
  }
  Node node;
  node.layout = datatype::in_sequence(std::move(parts));
  if (node.layout.bytes == 0) return Datatype(std::move(node));
  // Lower: from the first column's first element to the end of the last column. Upper: likewise.
  const std::int64_t end_column = lower ? last_column : shape.columns;
  node.true_lower_bound = lower ? without * element : without * leading;
  node.true_upper_bound =
      (end_column - 1) * leading +
      (lower ? shape.rows : std::min(end_column - without, shape.rows)) * element;
  node.lower_bound = node.true_lower_bound;
  node.upper_bound = node.true_upper_bound;
  node.alignment = alignment_of(scalar);
  node.signature = Signature(scalar).repeated(node.layout.bytes / element);
  return Datatype(std::move(node));
}

}  // namespace heddle
