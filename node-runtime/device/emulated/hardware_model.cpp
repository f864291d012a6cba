#include "node-runtime/device/emulated/hardware_model.hpp"

#include <algorithm>

namespace heddle {

Link::Transfer Link::reserve(DeviceClock::time_point ready, std::uint64_t bytes) const {
  if (!is_paced()) return {ready, DeviceClock::duration::zero()};
  const auto duration = std::chrono::duration_cast<DeviceClock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
  // Relaxed: the word says when the link is free, and nothing else.
  std::int64_t free_at = free_at_ns_->load(std::memory_order_relaxed);
  std::int64_t begin = 0;
  do {
    begin = std::max<std::int64_t>(ready.time_since_epoch().count(), free_at);
  } while (!free_at_ns_->compare_exchange_weak(free_at, begin + duration.count(),
                                               std::memory_order_relaxed));
  return {DeviceClock::time_point(DeviceClock::duration(begin)), duration};
}

LinkPath::Transfer LinkPath::reserve(DeviceClock::time_point ready, std::uint64_t bytes) const {
  Transfer made{ready, ready};
  for (std::size_t i = 0; i < count_; ++i) {
    const Link::Transfer one = links_.at(i)->reserve(ready, bytes);
    if (i == 0) made.left = one.end();
    made.arrived = std::max(made.arrived, one.end());
    ready = one.begin;
  }
  return made;
}

bool KernelGate::enter(StreamPriority priority, const std::function<bool()>& is_interrupted) {
  if (capacity_ == 0) return true;
  std::unique_lock lock(mutex_);
  const bool high = priority == StreamPriority::high;
  if (high) ++waiting_high_;
  const auto has_room = [&] { return running_ < capacity_ && (high || waiting_high_ == 0); };
  changed_.wait(lock, [&] { return has_room() || is_interrupted(); });
  if (high) --waiting_high_;
  const bool entered = has_room();
  if (entered) ++running_;
  // Kernels of normal priority may be waiting for this one.
  if (high) changed_.notify_all();
  return entered;
}

void KernelGate::leave() {
  if (capacity_ == 0) return;
  {
    const std::scoped_lock lock(mutex_);
    --running_;
  }
  changed_.notify_all();
}

void KernelGate::wake() {
  // Locks once so that no waiter is between testing its condition and sleeping.
  { const std::scoped_lock lock(mutex_); }
  changed_.notify_all();
}

std::uint32_t KernelGate::waiting_high() {
  const std::scoped_lock lock(mutex_);
  return waiting_high_;
}

std::uint64_t mixed(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
  // Three rounds of the splitmix64 finaliser, one per argument.
  std::uint64_t z = 0;
  for (const std::uint64_t part : {seed, stream, number}) {
    z = (z ^ part) + 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
  }
  return z;
}

}  // namespace heddle
