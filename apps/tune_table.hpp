#pragma once

#include <string>

#include "node-runtime/node.hpp"

namespace heddle {

/// What was measured, for a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string measurements_table(const Measurements& measured);

/// The sizes that follow for some matrices on a node like `facts`, likewise.
[[nodiscard]] std::string choices_table(const NodeFacts& facts);

}  // namespace heddle
