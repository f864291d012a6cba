#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// Tries all ways between the places of one node, of which the first is its host: the host with
/// each device, and every two devices. Contents follow from `seed`. A path that does not work is in
/// the reports; no exception is thrown for it.
[[nodiscard]] std::vector<PairReport> probe_within_node(
    const std::vector<std::unique_ptr<ProbedPlace>>& places, const ProbeOptions& options,
    std::uint64_t seed);

}  // namespace heddle
