#include "node-runtime/memory/device_cache.hpp"

#include <algorithm>
#include <memory>

#include "base/assert.hpp"

namespace heddle {

using protocol::AccessMode;

DeviceCache::DeviceCache(Device& device, Provider provider)
    : device_(device),
      budget_(device.memory_available()),
      residency_({.bytes = 0}),
      pools_(std::move(provider)) {}

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

void DeviceCache::set_budget(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  budget_ = std::min(budget_, std::max<std::uint64_t>(Residency::alignment_usual, bytes));
}

std::uint64_t DeviceCache::bytes() const {
  const std::scoped_lock lock(mutex_);
  return memory_ ? residency_.bytes()
                 : budget_ / Residency::alignment_usual * Residency::alignment_usual;
}

/// With the lock.
void DeviceCache::take_memory() {
  if (memory_) return;
  memory_.emplace(device_, budget_);
  residency_.grow(memory_->bytes());
}

std::vector<ResidentBlock> DeviceCache::add_pool(std::span<const std::size_t> bytes) {
  std::vector<ResidentBlock> added;
  added.reserve(bytes.size());
  if (bytes.empty()) return added;
  const std::scoped_lock lock(mutex_);
  take_memory();
  for (const std::size_t size : bytes) added.push_back(residency_.add_block(size));
  pools_.add(added, bytes);
  return added;
}

void DeviceCache::remove(ResidentBlock block) {
  residency_.remove_block(block);
  pools_.drop(block);
}

void DeviceCache::remove_pool(std::span<const ResidentBlock> blocks) {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    for (const ResidentBlock block : blocks) residency_.discard(block, actions_);
    // Before blocks go, so that no transfer of them is left in the actions.
    news = collect();
    pools_.remove(blocks);
    for (const ResidentBlock block : blocks) {
      // The others go when their transfers end.
      if (!residency_.is_in_transfer(block)) remove(block);
    }
  }
  tell(news);
}

std::uint64_t DeviceCache::block_bytes() const {
  const std::scoped_lock lock(mutex_);
  return pools_.block_bytes();
}

std::size_t DeviceCache::largest_block_bytes() const {
  const std::scoped_lock lock(mutex_);
  return pools_.largest_block_bytes();
}

std::uint64_t DeviceCache::backing_bytes() const {
  const std::scoped_lock lock(mutex_);
  return pools_.backing_bytes();
}

/// Memory is allocated and page-locked without the lock, since that takes long; the pools get it
/// when all of it could be had.
void DeviceCache::back_all(Locking locking) {
  std::vector<std::shared_ptr<BackedPools::Pool>> pools;
  {
    const std::scoped_lock lock(mutex_);
    pools = pools_.unbacked();
  }
  std::vector<std::shared_ptr<Backing>> made;
  made.reserve(pools.size());
  for (const auto& pool : pools) {
    made.push_back(pools_.make_backing(*pool));
    if (locking == Locking::later) continue;
    for (const BackedPools::Part& part : pool->parts) {
      made.back()->lock_part(part.begin, part.bytes);
    }
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

/// A block that is read without ever having been written (by jobs after a cancelled one, whose
/// results are undefined, and by visitors of new tiles) gets a content: whatever is in its frame,
/// or in the one that it is given, or else in its backing. With the lock.
void DeviceCache::define(std::span<const Use> uses) {
  for (const Use& use : uses) {
    if (!is_undefined(use)) continue;
    if (residency_.adopt_frame(use.block)) continue;
    pools_.ensure_backing(use.block);
    residency_.adopt_backing(use.block);
  }
}

bool DeviceCache::try_acquire(std::span<const Use> uses) {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::any_of(uses, [this](const Use& use) { return is_undefined(use); })) {
    return false;
  }
  return residency_.try_acquire(uses);
}

void DeviceCache::request(std::span<const Use> uses, Requester requester, void* cookie) {
  HEDDLE_CHECK(requester != Requester::host && cookie != nullptr);
  change([&] {
    define(uses);
    const Residency::TicketId ticket = residency_.request(uses, actions_);
    pending_.emplace(ticket.value(), Pending{requester, cookie});
  });
}

std::vector<void*> DeviceCache::take_ready(Requester requester) {
  const std::scoped_lock lock(mutex_);
  return std::exchange(ready_[static_cast<std::size_t>(requester)], {});
}

void DeviceCache::release(std::span<const Use> uses) {
  change([&] { residency_.release(uses, actions_); });
}

void DeviceCache::request_host(std::span<const Use> uses, void* cookie) {
  HEDDLE_CHECK(cookie != nullptr);
  change([&] {
    define(uses);
    for (const Use& use : uses) pools_.ensure_backing(use.block);
    const Residency::TicketId ticket = residency_.request_host(uses, actions_);
    pending_.emplace(ticket.value(), Pending{Requester::host, cookie});
  });
}

void DeviceCache::release_host(std::span<const Use> uses) {
  change([&] { residency_.release_host(uses, actions_); });
}

std::byte* DeviceCache::host_address(ResidentBlock block) const {
  const std::scoped_lock lock(mutex_);
  return pools_.address(block);
}

std::optional<DeviceCache::MessageBuffer> DeviceCache::acquire_for_message(const Use& use) {
  const std::scoped_lock lock(mutex_);
  define({&use, 1});
  if (residency_.try_acquire({&use, 1}, Residency::Overtaking::free)) {
    return MessageBuffer{frame(residency_.offset_of(use.block)), false};
  }
  // A block that is being fetched is in its backing too.
  const bool is_backed =
      use.mode == AccessMode::read && residency_.content(use.block) == Residency::Content::backed;
  const bool may_move = residency_.is_in_transfer(use.block) || residency_.is_resident(use.block);
  if (may_move && !is_backed) return std::nullopt;
  pools_.ensure_backing(use.block);
  return MessageBuffer{pools_.address(use.block), true};
}

void DeviceCache::release_for_message(const Use& use, const MessageBuffer& buffer) {
  if (!buffer.is_backing) return release({&use, 1});
  if (use.mode == AccessMode::read) return;
  change([&] {
    residency_.discard(use.block, actions_);
    residency_.adopt_backing(use.block);
  });
}

std::byte* DeviceCache::address(ResidentBlock block) const {
  const std::scoped_lock lock(mutex_);
  return frame(residency_.offset_of(block));
}

void DeviceCache::discard(ResidentBlock block) {
  change([&] { residency_.discard(block, actions_); });
}

std::uint64_t DeviceCache::missing_host_bytes(std::span<const Use> uses) const {
  const std::scoped_lock lock(mutex_);
  return residency_.missing_host_bytes(uses);
}

// ---- transfers -------------------------------------------------------------------------------

/// Carries out the actions of an event. With the lock.
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
    HEDDLE_DEBUG(transfer.offset + transfer.bytes <= residency_.bytes(), "{} bytes at {} of {}",
                 transfer.bytes, transfer.offset, residency_.bytes());
    pools_.ensure_backing(transfer.block);
    transfers_.push_back({transfer.block, is_fetch, frame(transfer.offset),
                          pools_.address(transfer.block), transfer.bytes, transfer.tile});
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
  HEDDLE_CHECK(!transfers.empty());
  const std::scoped_lock lock(mutex_);
  const auto first = std::ranges::max_element(
      transfers, {}, [this](const Transfer& t) { return residency_.priority_of(t.block); });
  return static_cast<std::size_t>(first - transfers.begin());
}

void DeviceCache::prepare(const Transfer& transfer) {
  std::shared_ptr<Backing> backing;
  BackedPools::Part part;
  {
    const std::scoped_lock lock(mutex_);
    backing = pools_.pool(transfer.block).backing;
    part = pools_.part(transfer.block);
  }
  HEDDLE_CHECK(backing != nullptr, "block {} has no backing", transfer.block.value());
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
    if (pools_.is_removed(transfer.block)) remove(transfer.block);
  }
  tell(news);
}

Residency::Statistics DeviceCache::statistics() const {
  const std::scoped_lock lock(mutex_);
  return residency_.statistics();
}

bool DeviceCache::is_valid() const {
  const std::scoped_lock lock(mutex_);
  const auto is_due = [this](const Transfer& t) {
    return residency_.is_in_transfer(t.block) && pools_.pool(t.block).backing != nullptr &&
           t.host == pools_.address(t.block);
  };
  return residency_.is_valid() && pools_.is_valid() && actions_.empty() &&
         pending_.size() == residency_.waiting() + residency_.waiting_on_host() &&
         std::ranges::all_of(transfers_, is_due);
}

}  // namespace heddle
