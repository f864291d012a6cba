#include "node-runtime/transport/locked_scratch.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace heddle {

/// Locks: mutex guards the pieces. The device is called without it: locking pages may wait for
/// streams that the progress thread lets go on (decision 042), and that thread gives pieces back.
///
/// Invariant: allocated <= bytes_max is the sum of the pieces, free, given away or being allocated.
struct LockedScratch::Pool {
  explicit Pool(Device& on) : device(on) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// Pieces that are given back later find no pool.
  ~Pool() {
    for (const auto& [size, address] : free) device.free_host(address);
    for (void* const address : given) device.free_host(address);
  }

  static constexpr std::size_t smallest = 65536;

  Device& device;
  std::mutex mutex;
  std::multimap<std::size_t, void*> free;  ///< by size
  std::set<void*> given;
  std::size_t allocated = 0;

  using Kept = std::pair<std::size_t, void*>;

  /// Null: there is no room.
  [[nodiscard]] Kept take(std::size_t wanted) {
    std::vector<Kept> unused;
    {
      const std::scoped_lock lock(mutex);
      const auto found = free.lower_bound(wanted);
      if (found != free.end() && found->first <= 2 * wanted) {
        const Kept piece = *found;
        free.erase(found);
        given.insert(piece.second);
        return piece;
      }
      if (wanted > bytes_max) return {0, nullptr};
      // Sizes that nobody asks for any more make room.
      while (!free.empty() && allocated + wanted > bytes_max) {
        unused.emplace_back(*free.begin());
        allocated -= free.begin()->first;
        free.erase(free.begin());
      }
      if (allocated + wanted <= bytes_max) {
        allocated += wanted;
      } else {
        wanted = 0;
      }
    }
    for (const auto& [size, address] : unused) device.free_host(address);
    if (wanted == 0) return {0, nullptr};
    try {
      void* const made = device.allocate_host(wanted);
      const std::scoped_lock lock(mutex);
      given.insert(made);
      return {wanted, made};
    } catch (...) {
      const std::scoped_lock lock(mutex);
      allocated -= wanted;
      throw;
    }
  }
  void give_back(const Kept& piece) {
    const std::scoped_lock lock(mutex);
    given.erase(piece.second);
    free.insert(piece);
  }
};

LockedScratch::LockedScratch(std::span<Device* const> devices) {
  for (Device* device : devices) pools_.push_back(std::make_shared<Pool>(*device));
}

LockedScratch::~LockedScratch() = default;

LockedScratch::Piece LockedScratch::take(p2p::LaneId lane, std::size_t bytes) {
  const std::shared_ptr<Pool>& pool = pools_.at(static_cast<std::size_t>(lane.value()));
  const auto piece = pool->take(std::bit_ceil(std::max(bytes, Pool::smallest)));
  if (piece.second == nullptr) return nullptr;
  return {static_cast<std::byte*>(piece.second),
          [piece, weak = std::weak_ptr(pool)](const std::byte*) {
            if (const auto alive = weak.lock()) alive->give_back(piece);
          }};
}

std::size_t LockedScratch::bytes(p2p::LaneId lane) const {
  Pool& pool = *pools_.at(static_cast<std::size_t>(lane.value()));
  const std::scoped_lock lock(pool.mutex);
  return pool.allocated;
}

}  // namespace heddle
