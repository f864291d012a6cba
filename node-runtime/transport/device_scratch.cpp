#include "node-runtime/transport/device_scratch.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

namespace heddle {

/// Locks: mutex guards the pieces; the device's own lock is taken under it, never the other way
/// round.
struct DeviceScratch::Pool {
  explicit Pool(Device& on) : device(on) {}

  static constexpr std::size_t smallest = 65536;

  Device& device;
  std::mutex mutex;
  std::multimap<std::size_t, DeviceBuffer> free;  ///< by size

  DeviceBuffer take(std::size_t bytes) {
    const std::size_t wanted = std::bit_ceil(std::max(bytes, smallest));
    const std::scoped_lock lock(mutex);
    if (const auto found = free.lower_bound(wanted);
        found != free.end() && found->first <= 2 * wanted) {
      DeviceBuffer taken = std::move(found->second);
      free.erase(found);
      return taken;
    }
    return {device, wanted};
  }
  void give_back(DeviceBuffer piece) {
    const std::size_t bytes = piece.bytes();
    const std::scoped_lock lock(mutex);
    free.emplace(bytes, std::move(piece));
  }
};

DeviceScratch::DeviceScratch(std::span<Device* const> devices) {
  for (Device* device : devices) pools_.push_back(std::make_shared<Pool>(*device));
}

DeviceScratch::~DeviceScratch() = default;

DeviceScratch::Piece DeviceScratch::take(p2p::LaneId lane, std::size_t bytes) {
  const std::shared_ptr<Pool>& pool = pools_[static_cast<std::size_t>(lane.value())];
  const auto piece = std::make_shared<DeviceBuffer>(pool->take(bytes));
  // The piece goes back where its pool still is; otherwise its memory went with the pool.
  return {piece->address(), [piece, weak = std::weak_ptr(pool)](const std::byte*) {
            if (const auto alive = weak.lock()) alive->give_back(std::move(*piece));
          }};
}

}  // namespace heddle
