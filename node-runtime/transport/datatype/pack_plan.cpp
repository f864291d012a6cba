#include "node-runtime/transport/datatype/pack_plan.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/checked.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"

namespace heddle {
namespace {

using datatype::Block;
using datatype::checked_product;
using datatype::checked_sum;
using datatype::Layout;
using datatype::Loop;

std::int64_t units_of(const std::vector<Block>& blocks, std::int64_t unit_bytes) {
  std::int64_t count = 0;
  for (const Block& block : blocks) count += (block.bytes - 1) / unit_bytes + 1;
  return count;
}

/// Cuts the blocks into units. Whole blocks above units_max are not what makes units longer.
void cut(PackPlan& plan, const std::vector<Block>& blocks) {
  const std::int64_t bound =
      std::max(PackPlan::units_max, 2 * static_cast<std::int64_t>(blocks.size()));
  plan.unit_bytes = PackPlan::unit_bytes_usual;
  while (units_of(blocks, plan.unit_bytes) > bound) plan.unit_bytes *= 2;
  plan.units.reserve(static_cast<std::size_t>(units_of(blocks, plan.unit_bytes)));
  std::int64_t stream = 0;
  for (const Block& block : blocks) {
    for (std::int64_t done = 0; done < block.bytes;) {
      const std::int64_t bytes = std::min(plan.unit_bytes, block.bytes - done);
      plan.units.push_back({block.offset + done, stream, bytes});
      stream += bytes;
      done += bytes;
    }
  }
}

/// The blocks of what is inside the outermost loops that a plan has room for.
std::vector<Block> inner_blocks(const Layout& layout) {
  Layout inner = layout;
  inner.offset = 0;
  inner.loops.erase(inner.loops.begin(),
                    inner.loops.begin() + static_cast<std::ptrdiff_t>(PackPlan::loops_max));
  // The number of all blocks may have been cut off at the largest number there is.
  inner.block_count = layout.body == Layout::Body::list
                          ? static_cast<std::int64_t>(layout.list->size())
                          : std::max<std::int64_t>(layout.triangle.columns, 1);
  for (const Loop& loop : inner.loops) inner.block_count *= loop.count;
  return datatype::expanded(inner);
}

void mix(std::size_t& hash, std::int64_t value) {
  // The finaliser of splitmix64, chained.
  std::uint64_t x =
      static_cast<std::uint64_t>(hash) + 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(value);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  hash = static_cast<std::size_t>(x ^ (x >> 31U));
}

bool same_nest(const LoopNest& a, const LoopNest& b) {
  return a.offset == b.offset && a.body_bytes == b.body_bytes && a.depth == b.depth &&
         std::equal(a.loops.begin(), a.loops.begin() + static_cast<std::ptrdiff_t>(a.depth),
                    b.loops.begin());
}

}  // namespace

PackPlan make_plan(const Datatype& type) {
  const Layout layout = datatype::without_sequence(type.layout());
  PackPlan plan;
  plan.size = layout.bytes;
  plan.extent = type.extent();
  plan.true_lower_bound = type.true_lower_bound();
  plan.true_upper_bound = type.true_upper_bound();
  plan.nest.offset = layout.offset;
  plan.nest.body_bytes = layout.body_bytes;
  plan.nest.depth = std::min(layout.loops.size(), PackPlan::loops_max);
  std::copy_n(layout.loops.begin(), plan.nest.depth, plan.nest.loops.begin());
  if (layout.loops.size() > PackPlan::loops_max) {
    const std::vector<Block> blocks = inner_blocks(layout);
    plan.body = PackPlan::Body::units;
    plan.nest.body_bytes = 0;
    for (const Block& block : blocks) plan.nest.body_bytes += block.bytes;
    cut(plan, blocks);
  } else if (layout.body == Layout::Body::triangle) {
    plan.body = PackPlan::Body::triangle;
    plan.triangle = layout.triangle;
  } else if (layout.body == Layout::Body::list) {
    plan.body = PackPlan::Body::units;
    cut(plan, *layout.list);
  }
  plan.overlap = datatype::overlap_of(plan, plan.nest);
  HEDDLE_EXPENSIVE(plan.is_valid());
  return plan;
}

LoopNest PackPlan::nest_of(std::int64_t count) const {
  const std::int64_t bytes = stream_bytes(count);
  LoopNest all = nest;
  if (count == 1) return all;
  if (bytes == 0) return {};
  const std::int64_t last = checked_product(count - 1, extent);
  static_cast<void>(checked_sum(last, true_lower_bound));
  static_cast<void>(checked_sum(last, true_upper_bound));
  if (body == Body::block && nest.depth == 0 && extent == nest.body_bytes) {
    all.body_bytes = bytes;
    return all;
  }
  if (nest.depth > 0) {
    Loop& outer = all.loops.front();
    std::int64_t length = 0;
    if (!__builtin_mul_overflow(outer.count, outer.stride, &length) && length == extent) {
      outer.count *= count;  // fits, since there are no more bodies than bytes
      return all;
    }
  }
  std::copy_backward(nest.loops.begin(),
                     nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.depth),
                     all.loops.begin() + static_cast<std::ptrdiff_t>(nest.depth) + 1);
  all.loops.front() = {count, extent};
  all.depth = nest.depth + 1;
  return all;
}

std::int64_t PackPlan::stream_bytes(std::int64_t count) const {
  if (count < 0) {
    throw Error(ErrorCode::usage,
                fmt::format("{} elements of a datatype; a count must not be negative", count));
  }
  return checked_product(count, size);
}

std::size_t PackPlan::hash() const {
  std::size_t hash = 0;
  for (const std::int64_t value :
       {static_cast<std::int64_t>(body), size, extent, nest.offset, nest.body_bytes,
        triangle.columns, triangle.stride, triangle.first_bytes, triangle.step_bytes}) {
    mix(hash, value);
  }
  for (std::size_t i = 0; i < nest.depth; ++i) {
    mix(hash, nest.loops[i].count);
    mix(hash, nest.loops[i].stride);
  }
  for (const WorkUnit& unit : units) {
    mix(hash, unit.memory);
    mix(hash, unit.bytes);
  }
  return hash;
}

bool operator==(const PackPlan& a, const PackPlan& b) {
  return a.body == b.body && a.size == b.size && a.extent == b.extent &&
         same_nest(a.nest, b.nest) && a.triangle == b.triangle && a.units == b.units;
}

bool PackPlan::is_valid() const {
  std::int64_t bytes = nest.body_bytes;
  for (std::size_t i = 0; i < nest.depth; ++i) {
    if (nest.loops[i].count < 2) return false;
    bytes *= nest.loops[i].count;
  }
  if (bytes != size || nest.depth > loops_max || (body == Body::units) == units.empty()) {
    return false;
  }
  if (body == Body::triangle) {
    return triangle.bytes_before(triangle.columns) == nest.body_bytes &&
           std::min(triangle.bytes_of(0), triangle.bytes_of(triangle.columns - 1)) > 0;
  }
  std::int64_t stream = 0;
  for (const WorkUnit& unit : units) {
    if (unit.stream != stream || unit.bytes <= 0 || unit.bytes > unit_bytes) return false;
    stream += unit.bytes;
  }
  return body == Body::block || (stream == nest.body_bytes && units.front().memory == 0);
}

std::int64_t LoopShape::bytes() const {
  std::int64_t bytes = nest.body_bytes;
  for (std::size_t l = 0; l < nest.depth; ++l) bytes *= nest.loops[l].count;
  return bytes;
}

bool LoopShape::fits(const LoopShape& other) const {
  if (body != other.body || bytes() != other.bytes()) return false;
  if (body == PackPlan::Body::block) return true;
  return nest.depth == 0 && other.nest.depth == 0 && triangle.columns == other.triangle.columns &&
         triangle.first_bytes == other.triangle.first_bytes &&
         triangle.step_bytes == other.triangle.step_bytes;
}

namespace {

/// Shorter blocks are moved part of a line by part of a line.
constexpr std::int64_t short_bytes = 64;

}  // namespace

bool LoopShape::goes_with(const LoopShape& other) const {
  if (!fits(other)) return false;
  if (body == PackPlan::Body::triangle ||
      std::min(nest.body_bytes, other.nest.body_bytes) >= short_bytes) {
    return true;
  }
  return nest.body_bytes == other.nest.body_bytes && nest.depth == other.nest.depth &&
         std::equal(nest.loops.begin(), nest.loops.begin() + nest.depth, other.nest.loops.begin(),
                    [](const auto& a, const auto& b) { return a.count == b.count; });
}

bool LoopShape::goes_far_with(const LoopShape& near) const {
  return goes_with(near) || (fits(near) && nest.body_bytes >= short_bytes);
}

std::optional<LoopShape> loop_shape(const PackPlan& plan, std::int64_t count) {
  if (plan.body == PackPlan::Body::units || plan.stream_bytes(count) == 0) return std::nullopt;
  LoopShape shape{plan.body, plan.nest_of(count), plan.triangle};
  // Elements may go backwards.
  const std::int64_t last = (count - 1) * plan.extent;
  shape.nest.offset -= std::min<std::int64_t>(0, last) + plan.true_lower_bound;
  return shape;
}

}  // namespace heddle
