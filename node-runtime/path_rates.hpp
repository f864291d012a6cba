#pragma once

#include "node-runtime/machine/measurements.hpp"
#include "node-runtime/transport/p2p/path.hpp"

namespace heddle {

/// What the choice of paths goes by, as far as `heddle tune` has measured it; otherwise what the
/// machines have that heddle was built on.
[[nodiscard]] p2p::PathRates path_rates(const Measurements& measured);

}  // namespace heddle
