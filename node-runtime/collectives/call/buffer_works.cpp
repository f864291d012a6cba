#include "node-runtime/collectives/call/buffer_works.hpp"

#include <utility>

#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {

DeviceQueue copying(NearMemory to, NearMemory from, std::int64_t bytes) {
  return [=](const p2p::WorkPlace& place) {
    const Device* const device = &place.stream.device();
    place.stream.copy({to.at, to.is_on_host ? nullptr : device},
                      {from.at, from.is_on_host ? nullptr : device},
                      static_cast<std::size_t>(bytes));
  };
}

DeviceQueue reducing(BufferReduction reduction) {
  return [r = std::move(reduction)](const p2p::WorkPlace& place) {
    const Device* const device = &place.stream.device();
    const auto bytes = static_cast<std::size_t>(r.bytes);
    if (r.host_input != nullptr) {
      place.stream.copy({r.own_slot, device}, {r.host_input, nullptr}, bytes);
    }
    std::vector<Source> sources;
    for (const std::byte* one : r.from) sources.push_back({one, device});
    std::vector<Destination> destinations;
    for (std::byte* one : r.to) destinations.push_back({one, device});
    queue_reduction(place.stream, r.operation, r.scalar, destinations, sources,
                    r.bytes / r.operation.element_bytes(r.scalar));
    if (r.host_output != nullptr) {
      place.stream.copy({r.host_output, nullptr}, {r.to.front(), device}, bytes);
    }
  };
}

}  // namespace heddle::collectives
