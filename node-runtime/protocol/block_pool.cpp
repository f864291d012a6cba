#include "node-runtime/protocol/block_pool.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "node-runtime/protocol/records.hpp"

namespace heddle::protocol {

using State = BlockRequest::State;

BlockPool::BlockPool(PlaceId place, const PoolOptions& options)
    : place_(place), id_(options.id), capacity_(options.capacity), minimum_(options.minimum) {
  HEDDLE_CHECK(0 <= minimum_ && minimum_ <= capacity_, "place {}: {} blocks of {}", place.value(),
               capacity_, minimum_);
  for (std::int32_t i = capacity_; i-- > 0;) free_.push_back(i);
}

bool BlockPool::request(BlockRequest& request, std::uint64_t oldest) {
  HEDDLE_DEBUG(request.state == State::idle);
  request.pool = this;
  request.sequence = ++requests_;
  return enter(request, oldest);
}

bool BlockPool::prioritize(BlockRequest& request, std::uint64_t oldest) {
  HEDDLE_DEBUG(request.state == State::waiting && !request.prioritized);
  queue(request.use()).erase(&request);
  request.prioritized = true;
  return enter(request, oldest);
}

bool BlockPool::enter(BlockRequest& request, std::uint64_t oldest) {
  is_used_[static_cast<std::size_t>(request.use())] = true;
  if (take(request, oldest)) return true;
  request.state = State::waiting;
  queue(request.use()).insert(&request);
  return false;
}

BlockRequest* BlockPool::grant_next(std::uint64_t oldest) {
  if (free_.empty()) return nullptr;
  for (Queue& queue : waiting_) {
    if (queue.empty()) continue;
    BlockRequest& first = **queue.begin();
    if (!take(first, oldest)) continue;  // the others of its use have no better chance
    queue.erase(queue.begin());
    return &first;
  }
  return nullptr;
}

bool BlockPool::take(BlockRequest& request, std::uint64_t oldest) {
  if (free_.empty()) return false;
  if (request.user_order > oldest) {
    if (extra_ >= extra_max(request.use())) return false;
    request.extra = true;
    ++extra_;
    request.insert_before(request.first_user->extra_blocks);
  }
  request.state = State::held;
  request.granted = {id_, free_.back()};
  free_.pop_back();
  ++held_;
  return true;
}

/// Limit of `extra` for a holder of that use. Each use leaves a quarter to each sooner use that the
/// job has: early requests, of tasks far ahead, would otherwise hold the blocks that earlier tasks
/// need.
std::int32_t BlockPool::extra_max(BlockRequest::Use use) const {
  const std::int32_t all = capacity_ - minimum_;
  const auto sooner = std::count(is_used_.begin(), is_used_.begin() + static_cast<int>(use), true);
  return all - static_cast<std::int32_t>(sooner) * (all / 4);
}

void BlockPool::give_back(BlockRequest& holder) {
  HEDDLE_DEBUG(holder.state == State::held && holder.pool == this);
  if (holder.extra) no_longer_extra(holder);
  free_.push_back(holder.granted.index);
  holder.state = State::idle;
  --held_;
}

void BlockPool::no_longer_extra(BlockRequest& holder) {
  holder.extra = false;
  --extra_;
  holder.unlink();
}

std::size_t BlockPool::waiting() const {
  std::size_t count = 0;
  for (const Queue& queue : waiting_) count += queue.size();
  return count;
}

bool BlockPool::is_valid() const {
  for (std::size_t use = 0; use < BlockRequest::use_count; ++use) {
    for (const BlockRequest* request : waiting_[use]) {
      if (request->state != State::waiting || request->pool != this) return false;
      if (static_cast<std::size_t>(request->use()) != use || !is_used_[use]) return false;
    }
  }
  return free() + held_ == capacity_ && 0 <= extra_ &&
         extra_ <= std::min(held_, capacity_ - minimum_);
}

}  // namespace heddle::protocol
