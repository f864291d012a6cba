#pragma once

#include <memory>

#include "node-runtime/collectives/schedule/copy_table.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle {

/// What `heddle tune` has measured of copies between ranks that share a device, of the first kind
/// of device in `measured`.
[[nodiscard]] std::shared_ptr<const collectives::CopyTable> measured_copies(
    const Measurements& measured);

}  // namespace heddle
