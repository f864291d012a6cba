#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "node-runtime/transport/datatype/layout.hpp"

namespace heddle {

class Datatype;

/// What a unit kernel copies: `bytes` from `memory` bytes behind the body's origin to `stream`
/// bytes behind the body's begin in the packed stream (packing), or back. The work unit of 000
/// section 4.2.2, in the form that a device reads.
struct WorkUnit {
  std::int64_t memory;
  std::int64_t stream;
  std::int64_t bytes;
  friend bool operator==(const WorkUnit&, const WorkUnit&) = default;
};
static_assert(std::is_trivially_copyable_v<WorkUnit> && sizeof(WorkUnit) == 24);

/// Loops around the body of a plan, outermost first: body k of the stream is k written in the
/// loops' counts as digits, at offset + the sum of digits times strides.
struct LoopNest {
  /// A plan's own and that of `count` elements.
  static constexpr std::size_t depth_max = 4;

  std::int64_t offset = 0;  ///< of the first body, from the address that is passed
  std::int64_t body_bytes = 0;
  std::size_t depth = 0;
  std::array<datatype::Loop, depth_max> loops{};
};

/// How one element of a datatype is packed: canonical, immutable, plain data, the same for equal
/// types however they were described (PlanCache shares it). `count` elements are one more loop.
///
/// The body of the loops is one of
///   block     body_bytes contiguous bytes. Without loops the type is contiguous, with one or two
///             it is strided blocks (000 section 4.2.1), with three that again and again
///   triangle  columns of linearly growing or shrinking length, computed and never listed
///   units     anything else (000 section 4.2.2), in the order of the stream, none longer than
///             unit_bytes; longer blocks are cut there, so that units are much of a size
/// so that an engine for a device needs a kernel for blocks and triangles under loops and one for
/// units, both for any range of the stream.
///
/// Invariant (`is_valid()`): size = product of the loops' counts * body_bytes; the body's bytes,
/// too, are body_bytes; units follow each other without a gap in the stream, the first at 0, with
/// 0 < bytes <= unit_bytes; the first block of the body lies at the origin.
struct PackPlan {
  static constexpr std::size_t loops_max = LoopNest::depth_max - 1;
  /// A unit is what a warp copies at once, in a few rounds of 16 bytes a lane: 000 section
  /// 4.2.2 takes 1 to 4 KiB. Doubled as long as a plan has more than units_max of them.
  static constexpr std::int64_t unit_bytes_usual = 4096;
  static constexpr std::int64_t units_max = std::int64_t{1} << 20;

  enum class Body : std::uint8_t { block, triangle, units };
  /// Whether some byte of memory belongs to two scalars: legal to send, not to receive.
  enum class Overlap : std::uint8_t { none, some, undecided };

  Body body = Body::block;
  Overlap overlap = Overlap::none;  ///< of one element
  std::int64_t size = 0;            ///< packed bytes of one element
  std::int64_t extent = 0;          ///< from one element to the next
  std::int64_t true_lower_bound = 0;
  std::int64_t true_upper_bound = 0;
  LoopNest nest;  ///< of one element
  datatype::Triangle triangle;
  std::int64_t unit_bytes = 0;
  std::vector<WorkUnit> units;

  /// The loops around the body for `count` elements, folded. Of a block, body_bytes may be more
  /// than in the plan. Throws Error(usage) for a negative count and where an offset does not
  /// fit 64 bits.
  [[nodiscard]] LoopNest nest_of(std::int64_t count) const;
  /// Bytes of `count` elements in the stream; the same errors.
  [[nodiscard]] std::int64_t stream_bytes(std::int64_t count) const;

  [[nodiscard]] std::size_t hash() const;
  [[nodiscard]] bool is_valid() const;
  friend bool operator==(const PackPlan& a, const PackPlan& b);
};

/// All elements of one side of a message, where loops say all of it: a plan without units, with the
/// count folded in. Plain, so that another node can be told.
struct LoopShape {
  PackPlan::Body body = PackPlan::Body::block;  ///< not units
  LoopNest nest;                                ///< from the first byte that is touched
  datatype::Triangle triangle;

  [[nodiscard]] std::int64_t bytes() const;
  /// Whether one kernel can copy from the one to the other: both are blocks, or columns of the same
  /// triangle.
  [[nodiscard]] bool fits(const LoopShape& other) const;
  /// Whether it does well to: blocks are not short, or alike. A transpose, between whose sides
  /// tiles help, is better packed.
  [[nodiscard]] bool goes_with(const LoopShape& other) const;
  /// Likewise where this side lies behind the link to the host: the other one's blocks may be short
  /// then, since a device's memory is so much faster than the link.
  [[nodiscard]] bool goes_far_with(const LoopShape& near) const;
};
static_assert(std::is_trivially_copyable_v<LoopShape>);

/// nullopt where the plan has units, or there are no bytes.
[[nodiscard]] std::optional<LoopShape> loop_shape(const PackPlan& plan, std::int64_t count);

/// The plan of one element of `type`. O(description), and O(blocks) where the body is units. Throws
/// Error(usage) for more than datatype::blocks_max blocks under no common loop.
[[nodiscard]] PackPlan make_plan(const Datatype& type);

}  // namespace heddle
