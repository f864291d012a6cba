#pragma once

#include <string_view>

#include "node-runtime/topology/mapping/traffic.hpp"

namespace heddle {

/// The traffic of a common pattern (004 section 5.1), one slot for each rank; ranks count the last
/// dimension first. Each rank sends to and receives from its neighbours.
///
///   2d 4x4, 3d 2x2x4      stencils: neighbours along each dimension
///   ring 8                the rank before and the one after
///   alltoall 4x2x2        all ranks of its group along the first dimension
///
/// followed by any of
///
///   wrap                  stencils: the ends of each dimension are neighbours, too; a dimension of
///                         two has its pair twice
///   weight W              stencils: messages along the first dimension are W times as large
///   bytes SIZE            size of a message ("64KiB"); then messages are counted. Without it a
///                         message has one byte and is not counted, so that costs and loads are
///                         the paper's ratios
///
/// Throws Error(usage) that says which word is wrong and what is expected.
[[nodiscard]] Traffic traffic_of_pattern(std::string_view pattern);

}  // namespace heddle
