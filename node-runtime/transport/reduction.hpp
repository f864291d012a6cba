#pragma once

#include <cstdint>

namespace heddle {

/// A reduction over all nodes, element by element; every node gets the same result.
enum class Reduction : std::uint8_t { sum, maximum, minimum };

}  // namespace heddle
