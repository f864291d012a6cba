#include "node-runtime/transport/device_scratch.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace heddle {

/// Locks: mutex guards the pieces; the device's own lock is taken under it, never the other way
/// round.
struct DeviceScratch::Pool {
  explicit Pool(Device& on) : device(on) {}

  static constexpr std::size_t smallest = 65536;
  /// A piece, and whom it was allocated for.
  struct Kept {
    DeviceBuffer memory;
    std::weak_ptr<User> user;
  };

  Device& device;
  std::mutex mutex;
  std::multimap<std::size_t, Kept> free;  ///< by size

  [[nodiscard]] std::optional<Kept> find(std::size_t wanted) {
    const std::scoped_lock lock(mutex);
    const auto found = free.lower_bound(wanted);
    if (found == free.end() || found->first > 2 * wanted) return std::nullopt;
    return std::move(free.extract(found).mapped());
  }
  void give_back(Kept piece) {
    const std::size_t bytes = piece.memory.bytes();
    const std::scoped_lock lock(mutex);
    free.emplace(bytes, std::move(piece));
  }
  void take_left(std::vector<DeviceBuffer>& left) {
    const std::scoped_lock lock(mutex);
    for (auto at = free.begin(); at != free.end();) {
      const auto one = at++;
      if (!one->second.user.expired()) continue;
      left.push_back(std::move(one->second.memory));
      free.erase(one);
    }
  }
};

DeviceScratch::DeviceScratch(std::span<Device* const> devices)
    : has_left_(std::make_shared<std::atomic<bool>>(false)) {
  for (Device* device : devices) pools_.push_back(std::make_shared<Pool>(*device));
}

DeviceScratch::~DeviceScratch() = default;

DeviceScratch::User::User(std::size_t lanes, std::shared_ptr<std::atomic<bool>> has_left)
    : bytes_(lanes), has_left_(std::move(has_left)) {}

DeviceScratch::User::~User() {
  has_left_->store(true, std::memory_order_relaxed);
}

std::int64_t DeviceScratch::User::bytes(p2p::LaneId lane) const {
  return bytes_.at(static_cast<std::size_t>(lane.value())).load(std::memory_order_relaxed);
}

std::shared_ptr<DeviceScratch::User> DeviceScratch::make_user() const {
  return std::make_shared<User>(pools_.size(), has_left_);
}

DeviceScratch::Piece DeviceScratch::take(p2p::LaneId lane, std::size_t bytes,
                                         const std::shared_ptr<User>& user) {
  const auto index = static_cast<std::size_t>(lane.value());
  const std::shared_ptr<Pool>& pool = pools_[index];
  const std::size_t wanted = std::bit_ceil(std::max(bytes, Pool::smallest));
  std::optional<Pool::Kept> found = pool->find(wanted);
  if (!found) {
    found.emplace(Pool::Kept{DeviceBuffer(pool->device, wanted), user});
    user->bytes_[index].fetch_add(static_cast<std::int64_t>(wanted), std::memory_order_relaxed);
  }
  const auto piece = std::make_shared<Pool::Kept>(std::move(*found));
  // The piece goes back where its pool still is; otherwise its memory went with the pool.
  return {piece->memory.address(),
          [piece, weak = std::weak_ptr(pool), has_left = has_left_](const std::byte*) {
            const auto alive = weak.lock();
            if (alive == nullptr) return;
            const bool is_left = piece->user.expired();
            alive->give_back(std::move(*piece));
            if (is_left) has_left->store(true, std::memory_order_relaxed);
          }};
}

std::vector<DeviceBuffer> DeviceScratch::take_left() {
  std::vector<DeviceBuffer> left;
  if (!has_left_->exchange(false, std::memory_order_relaxed)) return left;
  for (const auto& pool : pools_) pool->take_left(left);
  return left;
}

}  // namespace heddle
