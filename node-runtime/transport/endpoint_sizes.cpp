#include "node-runtime/transport/endpoint_sizes.hpp"

#include <algorithm>

namespace heddle {
namespace {

/// Slots on a device hold 1/32 of its memory, of 16 MiB each at most: enough for a link to be busy
/// while pieces are packed and unpacked. Below 64 KiB they are not worth their notes.
constexpr std::int64_t ring_share = 32;
constexpr std::int64_t ring_piece_bytes_max = std::int64_t{16} << 20U;
constexpr std::int64_t ring_piece_bytes_min = std::int64_t{64} << 10U;

std::int64_t ring_piece(std::uint64_t memory_bytes) {
  constexpr std::int64_t page = 4096;
  const auto share =
      static_cast<std::int64_t>(memory_bytes) / ring_share / (2 * EndpointSizes::ring_slots);
  const std::int64_t piece = std::min(ring_piece_bytes_max, share / page * page);
  return piece < ring_piece_bytes_min ? 0 : piece;
}

/// Descriptions of parts of tiles: 1/64 of the device's memory at most.
packing::UnitsStore::Options units_for(std::uint64_t memory_bytes) {
  packing::UnitsStore::Options options;
  options.cache_bytes = std::min<std::size_t>(options.cache_bytes, memory_bytes / 128);
  const std::size_t chunk_bytes = memory_bytes / 128 / options.chunks;
  options.chunk_units =
      std::clamp<std::size_t>(chunk_bytes / sizeof(WorkUnit), 16, options.chunk_units);
  return options;
}

}  // namespace

EndpointSizes EndpointSizes::for_device(std::uint64_t memory_bytes, bool has_rings) {
  return {has_rings ? ring_piece(memory_bytes) : 0, units_for(memory_bytes)};
}

std::uint64_t EndpointSizes::device_bytes() const {
  return static_cast<std::uint64_t>(2 * ring_slots * ring_piece_bytes) + units.cache_bytes +
         units.chunks * units.chunk_units * sizeof(WorkUnit);
}

void EndpointSizes::apply_to(p2p::EndpointOptions& options) const {
  options.lanes.packer = units;
  options.sizes.ring_slots = options.ring_slots = ring_piece_bytes == 0 ? 0 : ring_slots;
  options.sizes.ring_piece_bytes = ring_piece_bytes;
}

}  // namespace heddle
