#pragma once

#include <cstdint>

#include "node-runtime/transport/datatype/pack_plan.hpp"

namespace heddle {

/// Bytes [begin, begin + bytes) of the packed stream of some elements.
struct StreamRange {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

/// Copies a range of the packed stream of `count` elements at `memory`, on the host, to `packed`,
/// where the range's first byte goes. Any range will do, so that a pipeline can cut the stream
/// where it likes; ranges that do not overlap may be packed at the same time by different threads.
/// `packed` must not overlap the elements.
///
/// No allocation. Throws Error(usage) for a range beyond the stream, a negative count, and offsets
/// that do not fit 64 bits.
void pack(const PackPlan& plan, std::int64_t count, const void* memory, StreamRange range,
          void* packed);

/// The way back: bytes of the range go from `packed` to their places in the elements at `memory`;
/// all other bytes there stay as they are.
void unpack(const PackPlan& plan, std::int64_t count, StreamRange range, const void* packed,
            void* memory);

}  // namespace heddle
