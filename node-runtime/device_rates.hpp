#pragma once

#include "config/config.hpp"
#include "node-runtime/collectives/schedule/device_rates.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/transport/p2p/path.hpp"

namespace heddle {

/// What operations on memory of a node's devices are chosen by: measured rates where there are such
/// (`paths`), and of emulated devices what the configuration says of their links.
[[nodiscard]] collectives::DeviceRates device_rates(const NodeFacts& facts,
                                                    const config::Devices& devices,
                                                    const p2p::PathRates& paths);

}  // namespace heddle
