#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"

namespace heddle::kernel {

/// Consecutive columns, or rows: [begin, begin + count).
struct Range {
  std::int64_t begin;
  std::int64_t count;
  [[nodiscard]] std::int64_t end() const { return begin + count; }
};

/// Calls `work` with the columns of each block of a panel's reflectors (kernels/kernels.hpp), from
/// the left or from the right.
template <class Work>
void for_blocks(std::int64_t columns, std::int64_t inner, bool from_left, const Work& work) {
  HEDDLE_CHECK(inner >= 1, "blocks of {} reflectors", inner);
  const std::int64_t blocks = (columns + inner - 1) / inner;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t begin = (from_left ? b : blocks - 1 - b) * inner;
    work(Range{begin, std::min(inner, columns - begin)});
  }
}

}  // namespace heddle::kernel
