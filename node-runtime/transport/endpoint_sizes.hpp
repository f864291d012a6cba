#pragma once

#include <cstdint>

#include "node-runtime/transport/p2p/endpoint_options.hpp"

namespace heddle {

/// What an endpoint may take of each device's memory, which has `memory_bytes` in all: rings
/// (without: 0) and the descriptions that packing needs.
struct EndpointSizes {
  std::int64_t ring_piece_bytes = 0;  ///< of each of the 2 * ring_slots slots; 0: no rings
  packing::UnitsStore::Options units;

  static constexpr std::int32_t ring_slots = 8;

  [[nodiscard]] static EndpointSizes for_device(std::uint64_t memory_bytes, bool has_rings);
  [[nodiscard]] std::uint64_t device_bytes() const;
  void apply_to(p2p::EndpointOptions& options) const;
};

}  // namespace heddle
