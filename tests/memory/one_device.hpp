#pragma once

#include <cstddef>

#include "node-runtime/device/devices.hpp"

namespace heddle::testing {

/// Bytes of a block.
inline constexpr std::size_t tile = 4096;

/// An emulated one with memory for so many blocks.
inline DeviceSet one_device(std::size_t tiles) {
  EmulatedOptions emulated;
  emulated.memory_bytes = tiles * tile;
  emulated.fill_allocations = true;  // what nobody wrote is not a number
  return make_devices({DeviceBackend::emulated, 1, emulated, {}});
}

}  // namespace heddle::testing
