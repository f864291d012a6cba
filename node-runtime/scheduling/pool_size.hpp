#pragma once

#include <cstddef>
#include <cstdint>

#include "base/index.hpp"

namespace heddle {

/// Blocks of a job's pool beyond its planned minimum (protocol/pool_plan.hpp) that let data arrive
/// early. `passes_tiles_on`: the job has temporaries and the node has no devices; such a job gets
/// more blocks if they are small. (QR passes rows from tall tile to tall tile; with too few blocks
/// workers of several nodes wait for each other: decision 011.) On the host 1 GiB of them, but at
/// least 16, beside four times the minimum; on a device 4 of more than 64 MiB.
[[nodiscard]] std::int32_t useful_blocks(PlaceId place, std::int32_t minimum,
                                         std::int32_t cpu_workers, bool passes_tiles_on,
                                         std::size_t block_bytes);

/// The number of `useful` blocks that a job takes when memory has room for `left` blocks beyond the
/// minimum: at most half of the room, so that the next job has the other half.
[[nodiscard]] std::int32_t affordable_blocks(std::int32_t useful, std::int64_t left);

}  // namespace heddle
