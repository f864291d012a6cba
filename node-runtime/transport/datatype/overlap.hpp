#pragma once

#include <cstdint>

#include "node-runtime/transport/datatype/pack_plan.hpp"

namespace heddle {

/// Throws Error(usage) if some byte of memory would be written twice when `count` elements are
/// received, or where that cannot be told: interleaved loops that only a list of more than
/// datatype::blocks_max blocks would tell apart. Exact; O(1) for types whose parts lie one behind
/// the other, O(n log n) in the n blocks of those that interleave.
void check_receivable(const PackPlan& plan, std::int64_t count);

namespace datatype {

/// Whether copies of the plan's body overlap when these loops repeat it.
[[nodiscard]] PackPlan::Overlap overlap_of(const PackPlan& plan, const LoopNest& nest);

}  // namespace datatype

}  // namespace heddle
