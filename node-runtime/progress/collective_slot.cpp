#include "node-runtime/progress/collective_slot.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle {
namespace {

/// A failed node does not ring; its collectives are given up after at most this long.
constexpr std::int64_t look_again_us = 100'000;

}  // namespace

std::shared_ptr<CollectiveSlot::Collective> CollectiveSlot::begin(std::span<const double> values,
                                                                  Reduction reduction) {
  auto collective = std::make_shared<Collective>();
  collective->values.assign(values.begin(), values.end());
  collective->reduction = reduction;
  const std::lock_guard lock(mutex_);
  require(collective_ == nullptr,
          "Node: two threads reduce at the same time; one thread at a time calls collectives");
  collective_ = collective;
  return collective;
}

void CollectiveSlot::wait(const Collective& collective, const std::function<void()>& may_wait) {
  for (;;) {
    const Doorbell::Ticket ticket = bell_.ticket();
    if (collective.is_done.load(std::memory_order_acquire)) return;
    may_wait();
    bell_.wait(ticket, look_again_us);
  }
}

bool CollectiveSlot::is_empty() const {
  const std::lock_guard lock(mutex_);
  return collective_ == nullptr;
}

std::shared_ptr<CollectiveSlot::Collective> CollectiveSlot::take_to_post() {
  const std::lock_guard lock(mutex_);
  if (collective_ == nullptr || std::exchange(collective_->is_posted, true)) return nullptr;
  return collective_;
}

void CollectiveSlot::finish() {
  {
    const std::lock_guard lock(mutex_);
    HEDDLE_CHECK(collective_ != nullptr && collective_->is_posted);
    // Release: the waiting thread sees the result with `is_done`.
    std::exchange(collective_, nullptr)->is_done.store(true, std::memory_order_release);
  }
  wake();
}

}  // namespace heddle
