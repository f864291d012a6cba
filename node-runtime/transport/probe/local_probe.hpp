#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// Tries all ways between the places of one node, of which the first is its host: the host with
/// each device, and every two devices. Contents follow from `seed`. Throws nothing of what does not
/// work: that is in the reports.
[[nodiscard]] std::vector<PairReport> probe_within_node(
    const std::vector<std::unique_ptr<ProbedPlace>>& places, const ProbeOptions& options,
    std::uint64_t seed);

}  // namespace heddle
