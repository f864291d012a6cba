#pragma once

#include <string>

#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {

/// The measurements for a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string measurements_table(const Measurements& measured);

/// Resulting tile sizes for some matrices on a node like `facts`, for a terminal of 80 columns.
[[nodiscard]] std::string choices_table(const NodeFacts& facts);

}  // namespace heddle
