#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "replay/analysis.hpp"
#include "replay/graph.hpp"
#include "replay/run.hpp"

namespace heddle::page {

/// What the page has of a run beside its columns: who is who (names, threads, matrices, causes),
/// `figures` as they are, how each kernel's times spread, what went from place to place, how many
/// tasks were ready, and the longest path. Times are nanoseconds from `origin_ns` on.
[[nodiscard]] nlohmann::json facts(const replay::RunTrace& run, const replay::Analysis& analysis,
                                   std::span<const replay::TaskId> longest_path,
                                   std::int64_t origin_ns, nlohmann::json figures);

}  // namespace heddle::page
