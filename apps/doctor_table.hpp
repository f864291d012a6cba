#pragma once

#include <span>
#include <string>

#include "apps/doctor_facts.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// What is known of the nodes, by node, for a terminal: what is the same for all is told once.
[[nodiscard]] std::string facts_table(std::span<const NodeSheet> nodes);

/// Equal pairs in a line each, and why a better way is not there. Verbose: every pair in a line of
/// its own as well, with all that was tried.
[[nodiscard]] std::string ways_table(std::span<const PairReport> pairs, const ProbeOptions& options,
                                     bool is_verbose);

}  // namespace heddle
