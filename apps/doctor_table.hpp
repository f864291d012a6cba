#pragma once

#include <span>
#include <string>

#include "apps/doctor_facts.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// Facts about the nodes for a terminal; equal facts are shown once.
[[nodiscard]] std::string facts_table(std::span<const NodeSheet> nodes);

/// One line per group of equal pairs, with the reasons for missing paths. Verbose: also one line
/// per pair with all attempts.
[[nodiscard]] std::string ways_table(std::span<const PairReport> pairs, const ProbeOptions& options,
                                     bool is_verbose);

}  // namespace heddle
