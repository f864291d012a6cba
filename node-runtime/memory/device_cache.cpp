#include "node-runtime/memory/device_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle {

using protocol::AccessMode;

namespace {

/// Parts of backings begin at pages, whatever their size here; and each is locked in a few
/// milliseconds, which the copy thread can spare.
constexpr std::size_t part_alignment = std::size_t{64} << 10;
constexpr std::size_t part_bytes = std::size_t{16} << 20;

}  // namespace

Backing::Backing(HostRegion region, Device& device) : region_(std::move(region)), device_(device) {}

Backing::~Backing() {
  for (const auto& [begin, is_locked] : parts_) {
    if (is_locked) device_.unregister_host(address() + begin);
  }
}

void Backing::lock_part(std::size_t begin, std::size_t bytes) {
  const auto [part, is_new] = parts_.emplace(begin, false);
  if (!is_new || bytes == 0) return;
  try {
    device_.register_host(address() + begin, bytes);
    part->second = true;
  } catch (const Error&) {
    // Page-locked memory may be limited; copies work without, slower.
  }
}

DeviceCache::DeviceCache(Device& device, Provider provider)
    : device_(device),
      provider_(std::move(provider)),
      pool_(device, device.memory_available()),
      residency_({.bytes = pool_.bytes()}) {}

void DeviceCache::tell(std::function<void(Requester)> ready, std::function<void()> transfers) {
  on_ready_ = std::move(ready);
  on_transfers_ = std::move(transfers);
}

void DeviceCache::tell(const News& news) {
  for (std::size_t r = 0; r < requester_count; ++r) {
    if (news.ready[r]) on_ready_(static_cast<Requester>(r));
  }
  if (news.transfers) on_transfers_();
}

// ---- blocks ----------------------------------------------------------------------------------

std::size_t DeviceCache::Pool::append(std::size_t block_bytes) {
  bytes += Residency::frame_bytes(block_bytes);
  largest = std::max(largest, block_bytes);
  if (parts.empty() || parts.back().bytes >= part_bytes) {
    const std::size_t begin =
        (backing_bytes() + part_alignment - 1) / part_alignment * part_alignment;
    parts.push_back({begin, 0});
  }
  const std::size_t offset = backing_bytes();
  parts.back().bytes += block_bytes;
  return offset;
}

std::vector<ResidentBlock> DeviceCache::add_pool(std::span<const std::size_t> bytes) {
  auto pool = std::make_shared<Pool>();
  std::vector<ResidentBlock> added;
  added.reserve(bytes.size());
  const std::scoped_lock lock(mutex_);
  for (const std::size_t size : bytes) {
    const ResidentBlock block = residency_.add_block(size);
    const auto index = static_cast<std::size_t>(block.value());
    if (blocks_.size() <= index) blocks_.resize(index + 1);
    const std::size_t offset = pool->append(size);
    blocks_[index] = {pool, offset, pool->parts.size() - 1, false};
    added.push_back(block);
  }
  if (added.empty()) return added;
  block_bytes_ += pool->bytes;
  largest_.insert(pool->largest);
  return added;
}

void DeviceCache::remove(ResidentBlock block) {
  residency_.remove_block(block);
  at(block) = {};
}

void DeviceCache::remove_pool(std::span<const ResidentBlock> blocks) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    for (const ResidentBlock block : blocks) residency_.discard(block, actions_);
    // Before blocks go, so that no transfer of them is left behind in the actions.
    news = collect();
    if (!blocks.empty()) {
      const Pool& pool = *at(blocks.front()).pool;
      block_bytes_ -= pool.bytes;
      largest_.erase(largest_.find(pool.largest));
    }
    for (const ResidentBlock block : blocks) {
      if (residency_.is_in_transfer(block)) {
        at(block).is_removed = true;
      } else {
        remove(block);
      }
    }
  }
  tell(news);
}

std::uint64_t DeviceCache::block_bytes() const {
  const std::scoped_lock lock(mutex_);
  return block_bytes_;
}

std::size_t DeviceCache::largest_block_bytes() const {
  const std::scoped_lock lock(mutex_);
  return largest_.empty() ? 0 : *largest_.rbegin();
}

/// Each part but the last of a pool is full, and the next one begins at the alignment.
std::uint64_t DeviceCache::backing_bytes_max(std::uint64_t frame_bytes) {
  return frame_bytes + frame_bytes / part_bytes * part_alignment;
}

/// Of a pool that has one.
std::byte* DeviceCache::backing_of(ResidentBlock block) const {
  const Block& b = blocks_[static_cast<std::size_t>(block.value())];
  return b.pool->backing->address() + b.offset;
}

void DeviceCache::ensure_backing(Pool& pool) {
  if (pool.backing == nullptr) pool.backing = provider_(pool.backing_bytes());
}

/// Memory is made without the lock, since page-locking it takes long, and given to the pools when
/// there is all of it.
void DeviceCache::back_all(Locking locking) {
  std::vector<std::shared_ptr<Pool>> pools;
  {
    const std::scoped_lock lock(mutex_);
    for (const Block& block : blocks_) {
      if (block.pool == nullptr || block.is_removed || block.pool->backing != nullptr) continue;
      if (pools.empty() || pools.back() != block.pool) pools.push_back(block.pool);
    }
    std::ranges::sort(pools);
    pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
  }
  std::vector<std::shared_ptr<Backing>> made;
  made.reserve(pools.size());
  for (const auto& pool : pools) {
    made.push_back(provider_(pool->backing_bytes()));
    if (locking == Locking::later) continue;
    for (const Part& part : pool->parts) made.back()->lock_part(part.begin, part.bytes);
  }
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (pools[i]->backing == nullptr) pools[i]->backing = std::move(made[i]);
  }
}

// ---- use -------------------------------------------------------------------------------------

bool DeviceCache::is_undefined(const Use& use) const {
  return use.mode != AccessMode::write &&
         residency_.content(use.block) == Residency::Content::invalid;
}

/// What is read without ever having been written (by jobs after a cancelled one, whose results are
/// undefined, and by who visits new tiles) gets a content: whatever is in the memory that it has,
/// or is given. With the lock.
void DeviceCache::define(std::span<const Use> uses) {
  for (const Use& use : uses) {
    if (!is_undefined(use)) continue;
    if (residency_.adopt_frame(use.block)) continue;
    ensure_backing(*at(use.block).pool);
    residency_.adopt_backing(use.block);
  }
}

bool DeviceCache::try_acquire(std::span<const Use> uses) {
  const std::scoped_lock lock(mutex_);
  if (std::any_of(uses.begin(), uses.end(), [this](const Use& use) { return is_undefined(use); })) {
    return false;
  }
  return residency_.try_acquire(uses);
}

void DeviceCache::request(std::span<const Use> uses, Requester requester, void* cookie) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    define(uses);
    const Residency::TicketId ticket = residency_.request(uses, actions_);
    pending_.emplace(ticket.value(), Pending{requester, cookie});
    news = collect();
  }
  tell(news);
}

std::vector<void*> DeviceCache::take_ready(Requester requester) {
  const std::scoped_lock lock(mutex_);
  return std::exchange(ready_[static_cast<std::size_t>(requester)], {});
}

void DeviceCache::release(std::span<const Use> uses) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    residency_.release(uses, actions_);
    news = collect();
  }
  tell(news);
}

void DeviceCache::request_host(std::span<const Use> uses, void* cookie) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    define(uses);
    for (const Use& use : uses) ensure_backing(*at(use.block).pool);
    const Residency::TicketId ticket = residency_.request_host(uses, actions_);
    pending_.emplace(ticket.value(), Pending{Requester::host, cookie});
    news = collect();
  }
  tell(news);
}

void DeviceCache::release_host(std::span<const Use> uses) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    residency_.release_host(uses, actions_);
    news = collect();
  }
  tell(news);
}

std::byte* DeviceCache::host_address(ResidentBlock block) const {
  const std::scoped_lock lock(mutex_);
  return backing_of(block);
}

std::optional<DeviceCache::Reach> DeviceCache::reach(const Use& use) {
  const std::scoped_lock lock(mutex_);
  define({&use, 1});
  if (residency_.try_acquire({&use, 1}, Residency::Overtaking::free)) {
    return Reach{pool_.address() + residency_.offset_of(use.block), false};
  }
  // What is being fetched is in the backing too.
  const bool is_backed =
      use.mode == AccessMode::read && residency_.content(use.block) == Residency::Content::backed;
  const bool may_move = residency_.is_in_transfer(use.block) || residency_.is_resident(use.block);
  if (may_move && !is_backed) return std::nullopt;
  ensure_backing(*at(use.block).pool);
  return Reach{backing_of(use.block), true};
}

void DeviceCache::end_reach(const Use& use, const Reach& reach) {
  if (!reach.is_backing) return release({&use, 1});
  if (use.mode == AccessMode::read) return;
  News news;
  {
    const std::scoped_lock lock(mutex_);
    residency_.discard(use.block, actions_);
    residency_.adopt_backing(use.block);
    news = collect();
  }
  tell(news);
}

std::byte* DeviceCache::address(ResidentBlock block) const {
  const std::scoped_lock lock(mutex_);
  return pool_.address() + residency_.offset_of(block);
}

void DeviceCache::discard(ResidentBlock block) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    residency_.discard(block, actions_);
    news = collect();
  }
  tell(news);
}

std::uint64_t DeviceCache::missing_host_bytes(std::span<const Use> uses) const {
  const std::scoped_lock lock(mutex_);
  return residency_.missing_host_bytes(uses);
}

// ---- transfers -------------------------------------------------------------------------------

/// Hands the actions of an event on. With the lock.
DeviceCache::News DeviceCache::collect() {
  News news;
  if (actions_.empty()) return news;
  for (const Residency::TicketId ticket : actions_.ready) {
    const auto found = pending_.find(ticket.value());
    HEDDLE_CHECK(found != pending_.end(), "ticket {}", ticket.value());
    const auto requester = static_cast<std::size_t>(found->second.requester);
    ready_[requester].push_back(found->second.cookie);
    news.ready[requester] = true;
    pending_.erase(found);
  }
  const auto add = [&](const Residency::Transfer& transfer, bool is_fetch) {
    ensure_backing(*at(transfer.block).pool);
    transfers_.push_back({transfer.block, is_fetch, pool_.address() + transfer.offset,
                          backing_of(transfer.block), transfer.bytes, transfer.tile});
    news.transfers = true;
  };
  for (const Residency::Transfer& transfer : actions_.write_backs) add(transfer, false);
  for (const Residency::Transfer& transfer : actions_.fetches) add(transfer, true);
  actions_.clear();
  return news;
}

std::vector<DeviceCache::Transfer> DeviceCache::take_transfers() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(transfers_, {});
}

std::size_t DeviceCache::most_urgent(std::span<const Transfer> transfers) const {
  const std::scoped_lock lock(mutex_);
  const auto first = std::ranges::max_element(
      transfers, {}, [this](const Transfer& t) { return residency_.priority_of(t.block); });
  return static_cast<std::size_t>(first - transfers.begin());
}

void DeviceCache::prepare(const Transfer& transfer) {
  std::shared_ptr<Backing> backing;
  Part part;
  {
    const std::scoped_lock lock(mutex_);
    const Block& block = at(transfer.block);
    backing = block.pool->backing;
    part = block.pool->parts[block.part];
  }
  backing->lock_part(part.begin, part.bytes);
}

void DeviceCache::transfer_finished(const Transfer& transfer) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    if (transfer.is_fetch) {
      residency_.fetch_finished(transfer.block, actions_);
    } else {
      residency_.write_back_finished(transfer.block, actions_);
    }
    news = collect();
    if (at(transfer.block).is_removed) remove(transfer.block);
  }
  tell(news);
}

Residency::Statistics DeviceCache::statistics() const {
  const std::scoped_lock lock(mutex_);
  return residency_.statistics();
}

}  // namespace heddle
