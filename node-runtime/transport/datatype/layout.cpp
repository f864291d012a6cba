#include "node-runtime/transport/datatype/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/checked.hpp"

namespace heddle::datatype {
namespace {

constexpr std::int64_t count_max = std::numeric_limits<std::int64_t>::max();

/// A triangle of fewer columns is a list: that of two blocks would be one of any two lengths.
constexpr std::size_t triangle_columns_min = 3;

std::int64_t bounded_product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? count_max : result;
}

std::int64_t bounded_sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? count_max : result;
}

/// Adds a block behind the others, as part of the last one where it goes on there.
void append(std::vector<Block>& blocks, const Block& added) {
  if (added.bytes == 0) return;
  if (!blocks.empty() && blocks.back().offset + blocks.back().bytes == added.offset) {
    blocks.back().bytes += added.bytes;
  } else {
    blocks.push_back(added);
  }
}

void append(std::vector<Block>& blocks, const Layout& layout, std::int64_t origin);

void append_body(std::vector<Block>& blocks, const Layout& layout, std::int64_t origin) {
  switch (layout.body) {
    case Layout::Body::block:
      append(blocks, Block{origin, layout.body_bytes});
      return;
    case Layout::Body::triangle:
      for (std::int64_t j = 0; j < layout.triangle.columns; ++j) {
        append(blocks,
               Block{checked_sum(origin, j * layout.triangle.stride), layout.triangle.bytes_of(j)});
      }
      return;
    case Layout::Body::list:
      for (const Block& b : *layout.list) {
        append(blocks, Block{checked_sum(origin, b.offset), b.bytes});
      }
      return;
    case Layout::Body::sequence:
      for (const Layout& part : *layout.sequence) append(blocks, part, origin);
      return;
  }
}

void append_loops(std::vector<Block>& blocks, const Layout& layout, std::size_t depth,
                  std::int64_t origin) {
  if (depth == layout.loops.size()) {
    append_body(blocks, layout, origin);
    return;
  }
  const Loop& loop = layout.loops[depth];
  for (std::int64_t i = 0; i < loop.count; ++i) {
    append_loops(blocks, layout, depth + 1, checked_sum(origin, checked_product(i, loop.stride)));
  }
}

void append(std::vector<Block>& blocks, const Layout& layout, std::int64_t origin) {
  if (layout.bytes > 0) append_loops(blocks, layout, 0, checked_sum(origin, layout.offset));
}

bool is_triangle(const std::vector<Block>& blocks) {
  if (blocks.size() < triangle_columns_min) return false;
  const std::int64_t stride = blocks[1].offset - blocks[0].offset;
  const std::int64_t step = blocks[1].bytes - blocks[0].bytes;
  if (step == 0) return false;
  for (std::size_t j = 2; j < blocks.size(); ++j) {
    if (blocks[j].offset - blocks[j - 1].offset != stride ||
        blocks[j].bytes - blocks[j - 1].bytes != step) {
      return false;
    }
  }
  return true;
}

/// The least number p of blocks, a divisor of their number, such that block i + p is block i at
/// one and the same distance for all i; the number of blocks if there is no other. By the failure
/// function of Knuth, Morris and Pratt over lengths and distances to the next block.
std::size_t period_of(const std::vector<Block>& blocks) {
  const std::size_t n = blocks.size();
  const auto alike = [&](std::size_t i, std::size_t j) {
    return blocks[i].bytes == blocks[j].bytes &&
           blocks[i + 1].offset - blocks[i].offset == blocks[j + 1].offset - blocks[j].offset;
  };
  // border[i]: longest proper prefix of the first i + 1 symbols that also ends them. The last
  // block has no next one, so there are n - 1 symbols.
  std::vector<std::size_t> border(n - 1, 0);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && !alike(i, length)) length = border[length - 1];
    border[i] = alike(i, length) ? length + 1 : 0;
  }
  for (std::size_t length = border[n - 2];; length = border[length - 1]) {
    const std::size_t period = n - 1 - length;
    if (n % period == 0 && blocks[n - 1].bytes == blocks[n - 1 - period].bytes) return period;
    if (length == 0) return n;
  }
}

/// Blocks that `append` has put together, folded.
Layout folded(std::vector<Block> blocks) {
  Layout layout;
  if (blocks.empty()) return layout;
  const std::int64_t origin = blocks.front().offset;
  if (blocks.size() == 1) return moved(block(blocks.front().bytes), origin);
  if (is_triangle(blocks)) {
    const Triangle shape{static_cast<std::int64_t>(blocks.size()),
                         blocks[1].offset - blocks[0].offset, blocks[0].bytes,
                         blocks[1].bytes - blocks[0].bytes};
    return moved(triangle(shape), origin);
  }
  const std::size_t period = period_of(blocks);
  if (period < blocks.size()) {
    const auto count = static_cast<std::int64_t>(blocks.size() / period);
    const std::int64_t stride = blocks[period].offset - origin;
    blocks.resize(period);
    return repeated(folded(std::move(blocks)), count, stride);
  }
  for (Block& b : blocks) {
    b.offset = checked_difference(b.offset, origin);
    layout.bytes += b.bytes;
  }
  layout.body = Layout::Body::list;
  layout.offset = origin;
  layout.body_bytes = layout.bytes;
  layout.block_count = static_cast<std::int64_t>(blocks.size());
  layout.list = std::make_shared<const std::vector<Block>>(std::move(blocks));
  return layout;
}

/// Whether two layouts are the same but for their offsets. Of long bodies only whether they are
/// shared, since comparing nested ones could take forever.
bool alike(const Layout& a, const Layout& b) {
  return a.body == b.body && a.bytes == b.bytes && a.body_bytes == b.body_bytes &&
         a.loops == b.loops && a.triangle == b.triangle && a.sequence == b.sequence &&
         (a.list == b.list || (a.list && b.list && *a.list == *b.list));
}

/// Whether the parts are one and the same at a constant distance.
bool is_loop(const std::vector<Layout>& parts) {
  const std::int64_t stride = checked_difference(parts[1].offset, parts[0].offset);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!alike(parts[i], parts[0]) ||
        checked_difference(parts[i].offset, parts[i - 1].offset) != stride) {
      return false;
    }
  }
  return true;
}

}  // namespace

Layout block(std::int64_t bytes) {
  Layout layout;
  layout.bytes = layout.body_bytes = bytes;
  layout.block_count = bytes > 0 ? 1 : 0;
  return layout;
}

Layout triangle(const Triangle& triangle) {
  Layout layout;
  layout.body = Layout::Body::triangle;
  layout.triangle = triangle;
  layout.bytes = layout.body_bytes = triangle.bytes_before(triangle.columns);
  layout.block_count = triangle.columns;
  if (triangle.columns >= static_cast<std::int64_t>(triangle_columns_min)) return layout;
  std::vector<Block> blocks;
  append(blocks, layout, 0);
  return folded(std::move(blocks));
}

Layout moved(Layout layout, std::int64_t offset) {
  if (layout.bytes > 0) layout.offset = checked_sum(layout.offset, offset);
  return layout;
}

Layout repeated(Layout layout, std::int64_t count, std::int64_t stride) {
  if (count == 0 || layout.bytes == 0) return {};
  if (count == 1) return layout;
  layout.bytes = checked_product(count, layout.bytes);
  if (layout.body == Layout::Body::block && layout.loops.empty() && stride == layout.body_bytes) {
    layout.body_bytes = layout.bytes;
    return layout;
  }
  layout.block_count = bounded_product(count, layout.block_count);
  if (!layout.loops.empty()) {
    Loop& outer = layout.loops.front();
    std::int64_t length = 0;
    if (!__builtin_mul_overflow(outer.count, outer.stride, &length) && length == stride) {
      outer.count = checked_product(outer.count, count);
      return layout;
    }
  }
  layout.loops.insert(layout.loops.begin(), Loop{count, stride});
  return layout;
}

Layout in_sequence(std::vector<Layout> parts) {
  std::erase_if(parts, [](const Layout& part) { return part.bytes == 0; });
  if (parts.empty()) return {};
  if (parts.size() == 1) return std::move(parts.front());
  const bool listed = std::all_of(parts.begin(), parts.end(), [](const Layout& part) {
    return part.loops.empty() &&
           (part.body == Layout::Body::block || part.body == Layout::Body::list);
  });
  Layout layout;
  for (const Layout& part : parts) {
    layout.bytes = checked_sum(layout.bytes, part.bytes);
    layout.block_count = bounded_sum(layout.block_count, part.block_count);
  }
  if (listed && layout.block_count <= blocks_max) {
    std::vector<Block> blocks;
    for (const Layout& part : parts) append(blocks, part, 0);
    return folded(std::move(blocks));
  }
  if (is_loop(parts)) {
    const std::int64_t stride = parts[1].offset - parts[0].offset;
    const auto count = static_cast<std::int64_t>(parts.size());
    return repeated(std::move(parts.front()), count, stride);
  }
  layout.body = Layout::Body::sequence;
  layout.body_bytes = layout.bytes;
  layout.sequence = std::make_shared<const std::vector<Layout>>(std::move(parts));
  return layout;
}

Layout without_sequence(const Layout& layout) {
  if (layout.body != Layout::Body::sequence) return layout;
  Layout body = layout;
  body.loops.clear();
  body.bytes = layout.body_bytes;
  // Blocks of one iteration; a count that does not fit is beyond the limit either way.
  body.block_count = 0;
  for (const Layout& part : *layout.sequence) {
    body.block_count = bounded_sum(body.block_count, part.block_count);
  }
  Layout result = folded(expanded(body));
  for (std::size_t i = layout.loops.size(); i-- > 0;) {
    result = repeated(std::move(result), layout.loops[i].count, layout.loops[i].stride);
  }
  return result;
}

std::vector<Block> expanded(const Layout& layout) {
  if (layout.block_count > blocks_max) {
    throw Error(ErrorCode::usage,
                fmt::format("a datatype of {} blocks without a common stride is beyond the limit "
                            "of {}; describe a part of it and send that several times",
                            layout.block_count, blocks_max));
  }
  std::vector<Block> blocks;
  append(blocks, layout, 0);
  return blocks;
}

}  // namespace heddle::datatype
