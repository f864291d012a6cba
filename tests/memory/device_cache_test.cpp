#include "node-runtime/memory/device_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "tests/memory/one_device.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using protocol::AccessMode;
using Requester = DeviceCache::Requester;
using Uses = std::vector<DeviceCache::Use>;

using testing::one_device;
using testing::tile;

/// The host memory that a cache has taken.
struct Backings {
  int taken = 0;
  std::size_t bytes = 0;                                            ///< now
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();  ///< that there are

  DeviceCache::Provider provider(Device& device) {
    return [this, &device](std::size_t wanted) {
      if (bytes + wanted > bytes_max) throw Error(ErrorCode::usage, "no memory");
      ++taken;
      bytes += wanted;
      const auto give_back = [this, wanted](Backing* backing) {
        bytes -= wanted;
        delete backing;
      };
      return std::shared_ptr<Backing>(new Backing(HostRegion(wanted, "a test"), device), give_back);
    };
  }
};

/// Carries a cache's transfers out, in place of the copy thread.
class Carrier {
 public:
  Carrier(Device& device, DeviceCache& cache)
      : device_(device), cache_(cache), stream_(device.create_stream()) {}

  /// Takes what there is to do, does nothing.
  void look() {
    for (const DeviceCache::Transfer& t : cache_.take_transfers()) waiting_.push_back(t);
  }
  /// The most urgent, to its end; false if there is none.
  bool carry_one() {
    look();
    if (waiting_.empty()) return false;
    const std::size_t chosen = cache_.most_urgent(waiting_);
    const DeviceCache::Transfer t = waiting_[chosen];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(chosen));
    carried_.push_back(t.block);
    cache_.prepare(t);
    if (t.is_fetch) {
      stream_->copy({t.device, &device_}, {t.host, nullptr}, t.bytes);
    } else {
      stream_->copy({t.host, nullptr}, {t.device, &device_}, t.bytes);
    }
    stream_->synchronize();
    cache_.transfer_finished(t);
    return true;
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] bool has_fetch() {
    look();
    return std::ranges::any_of(waiting_, &DeviceCache::Transfer::is_fetch);
  }
  /// Since they were last taken.
  [[nodiscard]] std::vector<ResidentBlock> take_carried() { return std::exchange(carried_, {}); }

 private:
  Device& device_;
  DeviceCache& cache_;
  std::unique_ptr<Stream> stream_;
  std::vector<DeviceCache::Transfer> waiting_;
  std::vector<ResidentBlock> carried_;
};

/// Blocks of one size, all of whose elements are one number.
class User {
 public:
  explicit User(Device& device, DeviceCache& cache)
      : device_(device), cache_(cache), stream_(device.create_stream()), host_(tile / 8) {}

  void write(ResidentBlock block, double value) {
    std::fill(host_.begin(), host_.end(), value);
    stream_->copy({cache_.address(block), &device_}, {host_.data(), nullptr}, tile);
    stream_->synchronize();
  }
  /// What all elements are.
  [[nodiscard]] double read(ResidentBlock block) {
    stream_->copy({host_.data(), nullptr}, {cache_.address(block), &device_}, tile);
    stream_->synchronize();
    for (const double element : host_) EXPECT_EQ(element, host_.front());
    return host_.front();
  }

 private:
  Device& device_;
  DeviceCache& cache_;
  std::unique_ptr<Stream> stream_;
  std::vector<double> host_;
};

class DeviceCacheTest : public ::testing::Test {
 protected:
  /// A device with memory for so many blocks.
  void make(std::size_t tiles) {
    set_ = one_device(tiles);
    cache_ = std::make_unique<DeviceCache>(device(), backings_.provider(device()));
    carrier_ = std::make_unique<Carrier>(device(), *cache_);
    user_ = std::make_unique<User>(device(), *cache_);
  }
  [[nodiscard]] Device& device() const { return *set_.devices[0]; }

  [[nodiscard]] std::vector<ResidentBlock> add_pool(std::size_t blocks) {
    return cache_->add_pool(std::vector<std::size_t>(blocks, tile));
  }
  void request(const Uses& uses) { cache_->request(uses, Requester::manager, this); }
  [[nodiscard]] bool is_ready() { return !cache_->take_ready(Requester::manager).empty(); }
  void acquire(const Uses& uses) {
    if (cache_->try_acquire(uses)) return;
    request(uses);
    while (!is_ready()) ASSERT_TRUE(carrier_->carry_one()) << "nothing will make it ready";
  }
  void write(ResidentBlock block, double value) {
    const Uses uses{{block, AccessMode::write}};
    acquire(uses);
    user_->write(block, value);
    cache_->release(uses);
  }
  [[nodiscard]] double read(ResidentBlock block) {
    const Uses uses{{block, AccessMode::read}};
    acquire(uses);
    const double value = user_->read(block);
    cache_->release(uses);
    return value;
  }
  void drain() {
    while (carrier_->carry_one()) {
    }
  }

  DeviceSet set_;
  Backings backings_;
  std::unique_ptr<DeviceCache> cache_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<User> user_;
};

}  // namespace

TEST_F(DeviceCacheTest, moves_nothing_and_takes_no_host_memory_while_everything_fits) {
  make(8);
  const auto blocks = add_pool(8);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) write(blocks[i], static_cast<double>(i));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(read(blocks[i]), static_cast<double>(i));
    }
  }
  EXPECT_FALSE(carrier_->carry_one());
  EXPECT_EQ(backings_.taken, 0);
  EXPECT_EQ(cache_->statistics().evictions, 0);
}

TEST_F(DeviceCacheTest, takes_memory_for_the_first_pool_and_no_more_than_its_budget) {
  make(8);
  const std::uint64_t all = device().memory_available();
  EXPECT_EQ(cache_->bytes(), all);
  EXPECT_TRUE(add_pool(0).empty());
  EXPECT_EQ(device().memory_available(), all) << "nothing is needed yet";
  cache_->set_budget(all + tile);
  EXPECT_EQ(cache_->bytes(), all) << "there is no more";
  cache_->set_budget(4 * tile);
  EXPECT_EQ(cache_->bytes(), 4 * tile);
  const auto blocks = add_pool(4);
  EXPECT_EQ(device().memory_available(), all - 4 * tile) << "the rest is for others";
  for (std::size_t i = 0; i < blocks.size(); ++i) write(blocks[i], static_cast<double>(i));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(read(blocks[i]), static_cast<double>(i));
  }
  cache_->set_budget(tile);
  EXPECT_EQ(cache_->bytes(), 4 * tile) << "it is taken";
  EXPECT_EQ(cache_->statistics().evictions, 0);
}

TEST_F(DeviceCacheTest, says_what_is_missing_when_somebody_else_has_taken_the_memory_meanwhile) {
  make(8);
  {
    const DeviceBuffer of_others(device(), 5 * tile);
    EXPECT_THROW((void)add_pool(4), Error);
    EXPECT_EQ(cache_->block_bytes(), 0U) << "nothing is half made";
  }
  EXPECT_EQ(add_pool(4).size(), 4U);
}

TEST_F(DeviceCacheTest, gives_contents_back_that_had_to_leave) {
  make(4);
  const auto blocks = add_pool(11);
  for (int round = 1; round <= 3; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      write(blocks[i], round * 100 + static_cast<double>(i));
    }
    for (std::size_t i = blocks.size(); i-- > 0;) {
      EXPECT_EQ(read(blocks[i]), round * 100 + static_cast<double>(i));
    }
  }
  EXPECT_GE(cache_->statistics().evictions, 3 * 7);
  EXPECT_LE(cache_->statistics().resident_bytes_max, 4 * tile);
}

TEST_F(DeviceCacheTest, takes_host_memory_for_the_pools_that_need_it_and_returns_it_with_them) {
  make(2);
  const auto first = add_pool(1);
  const auto second = add_pool(3);
  const auto unused = add_pool(5);
  write(first[0], 1);
  write(second[0], 2);
  EXPECT_EQ(backings_.bytes, 0U);
  write(second[1], 3);  // the first has to go
  write(second[2], 4);  // and now one of the others
  EXPECT_EQ(backings_.bytes, 4 * tile);
  drain();
  cache_->remove_pool(first);
  EXPECT_EQ(backings_.bytes, 3 * tile);
  EXPECT_EQ(read(second[0]), 2);
  drain();
  cache_->remove_pool(second);
  EXPECT_EQ(backings_.bytes, 0U);
  cache_->remove_pool(unused);
  EXPECT_EQ(cache_->block_bytes(), 0U);
}

TEST_F(DeviceCacheTest, backs_all_pools_beforehand_if_told_to) {
  make(2);
  const auto first = add_pool(2);
  const auto second = add_pool(5);
  cache_->back_all(DeviceCache::Locking::later);
  EXPECT_EQ(backings_.bytes, 7 * tile);
  EXPECT_EQ(backings_.taken, 2);
  cache_->back_all(DeviceCache::Locking::later);
  EXPECT_EQ(backings_.taken, 2);
  cache_->remove_pool(first);
  cache_->remove_pool(second);
  EXPECT_EQ(backings_.bytes, 0U);
}

TEST_F(DeviceCacheTest, locks_host_memory_by_parts_before_the_first_transfer_or_all_at_once) {
  constexpr std::size_t block = std::size_t{9} << 20;  // two of them make a part
  make(5 * block / tile);
  // The device refuses what it has made good already.
  const auto is_locked = [this](ResidentBlock first_of_part) {
    std::byte* const begin = cache_->host_address(first_of_part);
    try {
      device().register_host(begin, tile);
      device().unregister_host(begin);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const auto blocks = cache_->add_pool(std::vector<std::size_t>(5, block));
  cache_->back_all(DeviceCache::Locking::later);
  for (const std::size_t i : {0U, 2U, 4U}) EXPECT_FALSE(is_locked(blocks[i])) << i;
  write(blocks[3], 7);
  const Uses on_host{{blocks[3], AccessMode::read}};
  cache_->request_host(on_host, this);
  drain();
  EXPECT_EQ(*reinterpret_cast<const double*>(cache_->host_address(blocks[3])), 7);
  cache_->release_host(on_host);
  EXPECT_FALSE(is_locked(blocks[0]));
  EXPECT_TRUE(is_locked(blocks[2]));
  EXPECT_FALSE(is_locked(blocks[4]));
  cache_->remove_pool(blocks);
  const auto others = cache_->add_pool(std::vector<std::size_t>(3, block));
  cache_->back_all(DeviceCache::Locking::now);
  EXPECT_TRUE(is_locked(others[0]));
  EXPECT_TRUE(is_locked(others[2]));
  cache_->remove_pool(others);
}

TEST_F(DeviceCacheTest, keeps_the_host_memory_of_a_removed_pool_until_its_write_back_has_ended) {
  make(2);
  const auto old = add_pool(2);
  write(old[0], 1);
  write(old[1], 2);
  const auto young = add_pool(2);
  const Uses uses{{young[0], AccessMode::write}, {young[1], AccessMode::write}};
  request(uses);
  carrier_->look();
  ASSERT_GT(carrier_->waiting(), 0U);
  cache_->remove_pool(old);
  EXPECT_EQ(cache_->block_bytes(), 2 * tile);
  EXPECT_EQ(backings_.bytes, 2 * tile);
  EXPECT_FALSE(is_ready());
  drain();
  EXPECT_TRUE(is_ready());
  EXPECT_EQ(backings_.bytes, 0U);
  user_->write(young[0], 3);
  user_->write(young[1], 4);
  cache_->release(uses);
  EXPECT_EQ(read(young[0]), 3);
  EXPECT_EQ(read(young[1]), 4);
}

TEST_F(DeviceCacheTest, takes_new_pools_while_transfers_of_removed_ones_are_under_way) {
  make(3);
  auto blocks = add_pool(6);
  for (int round = 1; round <= 50; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      write(blocks[i], round * 10 + static_cast<double>(i));
    }
    carrier_->look();
    const auto next = add_pool(6);
    cache_->remove_pool(blocks);
    blocks = next;
  }
  for (const ResidentBlock block : blocks) write(block, 7);
  for (const ResidentBlock block : blocks) EXPECT_EQ(read(block), 7);
  drain();
  cache_->remove_pool(blocks);
  EXPECT_EQ(backings_.bytes, 0U);
}

TEST_F(DeviceCacheTest, has_the_transfers_of_urgent_requests_done_before_those_asked_for_earlier) {
  make(4);
  const auto blocks = add_pool(8);
  for (const ResidentBlock block : blocks) write(block, 1);
  cache_->request_host(Uses{{blocks[4], AccessMode::read}}, this);  // so that these are backed
  cache_->request_host(Uses{{blocks[5], AccessMode::read}}, this);
  drain();
  EXPECT_EQ(cache_->take_ready(Requester::host).size(), 2U);
  for (const std::size_t i : {4U, 5U}) cache_->release_host(Uses{{blocks[i], AccessMode::read}});
  (void)carrier_->take_carried();
  // The two that are backed go for these, the two that are not for the urgent ones.
  const auto read = [&](std::size_t i, std::int32_t priority) {
    return Uses{{blocks[i], AccessMode::read, {}, priority}};
  };
  request(read(0, 3));
  request(read(1, 3));
  request(read(2, 9));
  request(read(3, 8));
  carrier_->look();
  drain();
  EXPECT_EQ(carrier_->take_carried(),
            (std::vector<ResidentBlock>{blocks[6], blocks[2], blocks[7], blocks[3], blocks[0],
                                        blocks[1]}));
  EXPECT_EQ(cache_->take_ready(Requester::manager).size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) cache_->release(read(i, 0));
}

TEST_F(DeviceCacheTest, lets_what_was_never_written_be_read_but_not_at_once) {
  make(2);
  const auto blocks = add_pool(4);
  EXPECT_FALSE(cache_->try_acquire(Uses{{blocks[0], AccessMode::read}}));
  // Whatever is there: only that it can be had is promised.
  const auto look_at = [this](ResidentBlock block) {
    const Uses reading{{block, AccessMode::read}};
    acquire(reading);
    cache_->release(reading);
  };
  look_at(blocks[0]);
  const Uses update{{blocks[1], AccessMode::read_write}};
  acquire(update);
  user_->write(blocks[1], 5);
  cache_->release(update);
  write(blocks[2], 6);
  cache_->discard(blocks[2]);
  look_at(blocks[2]);
  write(blocks[3], 8);
  EXPECT_EQ(read(blocks[1]), 5);
  look_at(blocks[0]);
}

// ---- messages --------------------------------------------------------------------------------

TEST_F(DeviceCacheTest, pins_blocks_that_messages_use_in_its_memory) {
  make(2);
  const auto blocks = add_pool(3);
  const DeviceCache::Use arriving{blocks[0], AccessMode::write};
  const auto landing = cache_->acquire_for_message(arriving);
  ASSERT_TRUE(landing && !landing->is_backing);
  EXPECT_EQ(landing->address, cache_->address(blocks[0]));
  user_->write(blocks[0], 3);
  write(blocks[1], 1);
  const Uses other{{blocks[2], AccessMode::write}};
  request(other);
  drain();
  EXPECT_TRUE(is_ready());  // instead of the other one, which is not pinned
  EXPECT_EQ(cache_->address(blocks[0]), landing->address);
  cache_->release_for_message(arriving, *landing);
  cache_->release(other);
  EXPECT_EQ(read(blocks[0]), 3);
  EXPECT_EQ(read(blocks[1]), 1);
}

TEST_F(DeviceCacheTest, lets_messages_go_by_what_backs_it_rather_than_wait_for_room) {
  make(2);
  const auto blocks = add_pool(4);
  write(blocks[2], 7);
  write(blocks[0], 1);
  write(blocks[1], 2);
  drain();
  const Uses all{{blocks[0], AccessMode::read}, {blocks[1], AccessMode::read}};
  acquire(all);  // there is no room any more, for whatever time
  const DeviceCache::Use arriving{blocks[3], AccessMode::write};
  const auto landing = cache_->acquire_for_message(arriving);
  ASSERT_TRUE(landing && landing->is_backing);
  std::vector<double> content(tile / sizeof(double), 9);
  std::memcpy(landing->address, content.data(), tile);
  cache_->release_for_message(arriving, *landing);
  const DeviceCache::Use leaving{blocks[2], AccessMode::read};
  const auto source = cache_->acquire_for_message(leaving);
  ASSERT_TRUE(source && source->is_backing);
  std::memcpy(content.data(), source->address, tile);
  EXPECT_EQ(content.front(), 7);
  cache_->release_for_message(leaving, *source);
  cache_->release(all);
  EXPECT_EQ(read(blocks[3]), 9);
  EXPECT_EQ(read(blocks[2]), 7);
}

TEST_F(DeviceCacheTest, lets_messages_wait_for_a_transfer_of_their_own_block_alone) {
  make(1);
  const auto blocks = add_pool(2);
  write(blocks[0], 4);
  const Uses other{{blocks[1], AccessMode::write}};
  request(other);
  carrier_->look();
  ASSERT_EQ(carrier_->waiting(), 1U);  // the first one is on its way out
  EXPECT_FALSE(cache_->acquire_for_message({blocks[0], AccessMode::read}));
  EXPECT_FALSE(cache_->acquire_for_message({blocks[0], AccessMode::write}));
  drain();
  ASSERT_TRUE(is_ready());
  const DeviceCache::Use leaving{blocks[0], AccessMode::read};
  const auto source = cache_->acquire_for_message(leaving);
  ASSERT_TRUE(source && source->is_backing);
  cache_->release_for_message(leaving, *source);
  cache_->release(other);
  // Being fetched, it is in what backs it too.
  const Uses again{{blocks[0], AccessMode::read}};
  request(again);
  while (!carrier_->has_fetch()) ASSERT_TRUE(carrier_->carry_one());
  EXPECT_TRUE(cache_->acquire_for_message(leaving));
  drain();
  ASSERT_TRUE(is_ready());
  cache_->release(again);
  EXPECT_EQ(read(blocks[0]), 4);
}

TEST_F(DeviceCacheTest, serves_two_threads_while_a_third_transfers) {
  constexpr std::size_t own = 9;
  make(7);
  const auto all = add_pool(2 * own + 3);
  const std::vector<ResidentBlock> common(all.end() - 3, all.end());
  for (std::size_t i = 0; i < common.size(); ++i) write(common[i], -1 - static_cast<double>(i));

  // Who waits, waits for its number to change. Release and acquire order nothing here: the cache's
  // lock does.
  std::array<std::atomic<int>, 2> ready_bells{};
  std::atomic<int> transfer_bell{0};
  std::atomic<bool> is_over{false};
  const auto ring = [](std::atomic<int>& bell) {
    bell.fetch_add(1, std::memory_order_release);
    bell.notify_all();
  };
  cache_->tell([&](Requester r) { ring(ready_bells[static_cast<std::size_t>(r)]); },
               [&] { ring(transfer_bell); });

  const auto use = [&](Requester requester) {
    User user(device(), *cache_);
    const auto index = static_cast<std::size_t>(requester);
    std::atomic<int>& bell = ready_bells[index];
    const auto acquire_all = [&](const Uses& uses) {
      if (cache_->try_acquire(uses)) return;
      cache_->request(uses, requester, &bell);
      for (;;) {
        const int seen = bell.load(std::memory_order_acquire);
        if (!cache_->take_ready(requester).empty()) return;
        bell.wait(seen, std::memory_order_acquire);
      }
    };
    std::vector<double> values(own, 0);
    const std::size_t rounds = 40 * simulation::seeds(8).size();
    for (std::size_t round = 1; round <= rounds; ++round) {
      const std::size_t i = round * 5 % own;
      const std::size_t c = round % common.size();
      const ResidentBlock block = all[index * own + i];
      const Uses uses{{block, round <= own ? AccessMode::write : AccessMode::read_write},
                      {common[c], AccessMode::read}};
      acquire_all(uses);
      EXPECT_TRUE(round <= own || user.read(block) == values[i]);
      EXPECT_EQ(user.read(common[c]), -1 - static_cast<double>(c));
      values[i] = static_cast<double>(round);
      user.write(block, values[i]);
      cache_->release(uses);
      if (round % 11 == 0 && round > own) {
        cache_->discard(block);
        const Uses again{{block, AccessMode::write}};
        acquire_all(again);
        user.write(block, values[i]);
        cache_->release(again);
      }
    }
  };
  std::thread carrying([&] {
    for (;;) {
      const int seen = transfer_bell.load(std::memory_order_acquire);
      if (carrier_->carry_one()) continue;
      if (is_over.load(std::memory_order_acquire)) return;
      transfer_bell.wait(seen, std::memory_order_acquire);
    }
  });
  std::thread manager(use, Requester::manager);
  std::thread copies(use, Requester::copies);
  manager.join();
  copies.join();
  is_over.store(true, std::memory_order_release);
  ring(transfer_bell);
  carrying.join();
  EXPECT_GT(cache_->statistics().evictions, 0);
}

}  // namespace heddle
