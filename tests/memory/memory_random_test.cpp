#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "tests/memory/one_device.hpp"
#include "tests/support/seeds.hpp"

/// Everything that may happen to the memory of a node, in sequences chosen by a seed. After each
/// step the invariants hold.
namespace heddle {
namespace {

using protocol::AccessMode;
using simulation::replay_hint;
using testing::one_device;
using testing::tile;

constexpr PlaceId device_place{1};
constexpr AccessMode modes[] = {AccessMode::read, AccessMode::write, AccessMode::read_write};

/// A device's memory with pools, requests and transfers; contents do not matter.
class RandomCache {
 public:
  explicit RandomCache(std::uint64_t seed)
      : random_(seed), set_(one_device(30 + random_() % 40)), cache_(device(), [this](auto bytes) {
          return std::make_shared<Backing>(HostRegion(bytes, "a test"), device());
        }) {}

  void step() {
    switch (random_() % 10) {
      case 0:
        pools_.push_back(cache_.add_pool(std::vector<std::size_t>(1 + random_() % 12, tile)));
        return;
      case 1:
        return remove_pool();
      case 2:
        if (!pools_.empty()) cache_.discard(idle_block());
        return;
      case 3:
        return pass_a_message();
      case 4:
      case 5:
        return ask();
      case 6:
        return collect();
      case 7:
        return finish_use();
      default:
        return finish_transfer();
    }
  }
  /// Ends everything that is under way.
  void drain() {
    while (is_busy()) {
      collect();
      finish_use();
      finish_transfer();
    }
    pools_.clear();
  }
  [[nodiscard]] DeviceCache& cache() { return cache_; }
  [[nodiscard]] std::size_t transfers() const { return transfers_done_; }

 private:
  /// A request, or what it has been given.
  struct User {
    DeviceCache::Use use;
    bool on_host = false;
    bool is_ready = false;
  };

  [[nodiscard]] Device& device() const { return *set_.devices[0]; }
  [[nodiscard]] bool is_busy() {
    for (const auto& t : cache_.take_transfers()) transfers_.push_back(t);
    return !users_.empty() || !transfers_.empty();
  }
  [[nodiscard]] bool is_used(ResidentBlock block) const {
    return std::ranges::any_of(users_, [&](const auto& u) { return u->use.block == block; });
  }
  /// A block that nobody uses, in a new pool if need be.
  [[nodiscard]] ResidentBlock idle_block() {
    const std::vector<ResidentBlock>& pool = pools_[random_() % pools_.size()];
    const ResidentBlock block = pool[random_() % pool.size()];
    if (!is_used(block)) return block;
    pools_.push_back(cache_.add_pool(std::vector<std::size_t>(1, tile)));
    return pools_.back().front();
  }
  void remove_pool() {
    if (pools_.empty() || std::ranges::any_of(pools_.back(), [this](auto b) { return is_used(b); }))
      return;
    cache_.remove_pool(pools_.back());
    pools_.pop_back();
  }
  void pass_a_message() {
    if (pools_.empty()) return;
    const DeviceCache::Use use{idle_block(), modes[random_() % 2]};
    const auto buffer = cache_.acquire_for_message(use);
    if (!buffer) return;
    EXPECT_TRUE(cache_.is_valid());
    cache_.release_for_message(use, *buffer);
  }
  void ask() {
    if (pools_.empty() || users_.size() > 12) return;
    const DeviceCache::Use use{
        idle_block(), modes[random_() % 3], {}, static_cast<int>(random_() % 9)};
    auto& user = *users_.emplace_back(std::make_unique<User>(User{use}));
    user.on_host = random_() % 4 == 0;
    if (user.on_host) return cache_.request_host({&use, 1}, &user);
    user.is_ready = cache_.try_acquire({&use, 1});
    if (!user.is_ready) cache_.request({&use, 1}, DeviceCache::Requester::manager, &user);
  }
  void collect() {
    for (const auto requester : {DeviceCache::Requester::manager, DeviceCache::Requester::host}) {
      for (void* cookie : cache_.take_ready(requester)) static_cast<User*>(cookie)->is_ready = true;
    }
  }
  void finish_use() {
    const auto found = std::ranges::find_if(users_, [](const auto& u) { return u->is_ready; });
    if (found == users_.end()) return;
    const User user = **found;
    users_.erase(found);
    user.on_host ? cache_.release_host({&user.use, 1}) : cache_.release({&user.use, 1});
  }
  void finish_transfer() {
    for (const auto& t : cache_.take_transfers()) transfers_.push_back(t);
    if (transfers_.empty()) return;
    const std::size_t chosen = cache_.most_urgent(transfers_);
    const DeviceCache::Transfer transfer = transfers_[chosen];
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(chosen));
    cache_.prepare(transfer);
    cache_.transfer_finished(transfer);
    ++transfers_done_;
  }

  std::mt19937_64 random_;
  DeviceSet set_;
  DeviceCache cache_;
  std::vector<std::vector<ResidentBlock>> pools_;
  std::vector<std::unique_ptr<User>> users_;
  std::vector<DeviceCache::Transfer> transfers_;
  std::size_t transfers_done_ = 0;
};

TileTable table_of(std::mt19937_64& random) {
  TileTable table;
  const std::size_t tiles = 1 + random() % 20;
  for (std::size_t i = 0; i < tiles; ++i) {
    const bool is_small = random() % 5 == 0;
    table.shapes.push_back({is_small ? 3 : 16, is_small ? 4 : 32});
    table.home_places.push_back(random() % 2 == 0 ? host_place : device_place);
    table.is_local.push_back(random() % 4 != 0);
  }
  table.temporary = random() % 8 == 0;
  table.spare_count = static_cast<std::int32_t>(random() % 3);
  return table;
}

}  // namespace

TEST(DeviceCacheRandom, keeps_its_invariant_with_pools_that_come_and_go_and_messages_in_between) {
  std::size_t transfers = 0;
  for (const std::uint64_t seed : simulation::seeds(60)) {
    RandomCache random(seed);
    for (int step = 0; step < 400; ++step) {
      random.step();
      ASSERT_TRUE(random.cache().is_valid()) << "step " << step << ", " << replay_hint(seed);
    }
    random.drain();
    ASSERT_TRUE(random.cache().is_valid()) << replay_hint(seed);
    transfers += random.transfers();
  }
  EXPECT_GT(transfers, 0U);
}

TEST(TileStoreRandom, keeps_its_invariant_while_matrices_and_jobs_come_go_and_are_refused) {
  int refused = 0;
  for (const std::uint64_t seed : simulation::seeds(60)) {
    std::mt19937_64 random(seed);
    const DeviceSet set = one_device(200);
    TileStore store({set.devices[0].get()}, 300 * tile,
                    seed % 2 == 0 ? TileStore::Backings::as_needed : TileStore::Backings::all);
    std::vector<protocol::MatrixId> matrices;
    std::vector<std::int32_t> pools;
    std::int32_t next = 0;
    for (int step = 0; step < 200; ++step) {
      try {
        const std::uint64_t choice = random() % 8;
        if (choice < 2) {
          const protocol::MatrixId id{next++};
          static_cast<void>(store.add_matrix(id, table_of(random)));
          matrices.push_back(id);
        } else if (choice < 5) {
          const auto capacity = static_cast<std::int32_t>(random() % 60);
          const PlaceId place = random() % 2 == 0 ? host_place : device_place;
          std::vector<std::size_t> soon;
          if (place == host_place) soon.assign(static_cast<std::size_t>(capacity) / 2, tile);
          pools.push_back(store.add_job_pool(place, tile, capacity, std::move(soon)));
        } else if (choice == 5 && !matrices.empty()) {
          store.remove_matrix(matrices.back());
          matrices.pop_back();
        } else if (choice == 6 && !pools.empty()) {
          store.remove_job_pool(pools.back());
          pools.pop_back();
        } else {
          static_cast<void>(store.populate_some());
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        ++refused;
      }
      ASSERT_TRUE(store.is_valid()) << "step " << step << ", " << replay_hint(seed);
    }
    for (const protocol::MatrixId id : matrices) store.remove_matrix(id);
    for (const std::int32_t pool : pools) store.remove_job_pool(pool);
    ASSERT_TRUE(store.is_valid()) << replay_hint(seed);
    EXPECT_EQ(store.out_of_core_bytes(), 0U) << replay_hint(seed);
  }
  EXPECT_GT(refused, 0);
}

}  // namespace heddle
