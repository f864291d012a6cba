#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/reflector_blocks.hpp"

namespace heddle::kernel::fine {

/// Calls `work` with the parts of [begin, begin + count), `small` each, the last one perhaps
/// narrower.
template <class Work>
void for_parts_from(std::int64_t begin, std::int64_t count, std::int64_t small, const Work& work) {
  for (std::int64_t at = 0; at < count; at += small) {
    work(Range{begin + at, std::min(small, count - at)});
  }
}

template <class Work>
void for_parts(std::int64_t count, std::int64_t small, const Work& work) {
  for_parts_from(0, count, small, work);
}

}  // namespace heddle::kernel::fine
