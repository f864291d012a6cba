#include "base/futex.hpp"

#include <algorithm>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heddle {
namespace {

/// Times that a waiter for a lock relaxes between two looks.
constexpr int step_max = 16;
/// Times that who lets others in relaxes at most.
constexpr int courtesy = 200;

/// `operation`: FUTEX_WAIT or FUTEX_WAKE, quicker where only this process has the word.
constexpr int futex_operation(int operation, BellScope scope) {
  return scope == BellScope::process ? operation | FUTEX_PRIVATE_FLAG : operation;
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout,
                BellScope scope = BellScope::process) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), futex_operation(FUTEX_WAIT, scope),
            expected, timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count, BellScope scope = BellScope::process) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), futex_operation(FUTEX_WAKE, scope),
            count, nullptr, nullptr, 0);
}

}  // namespace

void SpinMutex::lock_contended() {
  arrived_.fetch_add(1, std::memory_order_relaxed);
  wait_for_turn();
  // Only who has the lock writes it.
  served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void SpinMutex::wait_for_turn() {
  // The holder is done within a microsecond or two unless the system took its processor away;
  // then sleeping is the only thing that helps it. Looks become rarer, as many who look at once
  // take the word's cache line from the holder.
  int step = 1;
  for (int relaxed = 0; relaxed < patience_; relaxed += step) {
    if (state_.load(std::memory_order_relaxed) == free && try_lock()) return;
    step = std::min(2 * step, step_max);
    for (int i = 0; i < step; ++i) relax_cpu();
  }
  // From here on the word says `awaited`, so that whoever unlocks wakes one; the one that wakes
  // keeps it so, because others may still sleep.
  while (state_.exchange(awaited, std::memory_order_acquire) != free) {
    futex_wait(state_, awaited, nullptr);
  }
}

void SpinMutex::let_others_in() const {
  const std::uint32_t arrived = arrived_.load(std::memory_order_relaxed);
  for (int i = 0; i < courtesy; ++i) {
    // By their difference, as the counts may come round.
    if (static_cast<std::int32_t>(served_.load(std::memory_order_relaxed) - arrived) >= 0) return;
    relax_cpu();
  }
}

void SpinMutex::wake_one() {
  futex_wake(state_, 1);
}

template <BellScope scope>
void BasicDoorbell<scope>::wait(Ticket ticket, std::int64_t timeout_us) {
  // Sequential consistency makes "count me as a sleeper, then compare the epoch" (here, the
  // comparison by the kernel) and "raise the epoch, then look for sleepers" (ring) a pair of which
  // at least one sees the other.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (epoch_.load(std::memory_order_seq_cst) == ticket) {
    timespec timeout{};
    timeout.tv_sec = timeout_us / 1000000;
    timeout.tv_nsec = timeout_us % 1000000 * 1000;
    futex_wait(epoch_, ticket, timeout_us > 0 ? &timeout : nullptr, scope);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

template <BellScope scope>
void BasicDoorbell<scope>::ring(int count) {
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(epoch_, count, scope);
}

template <BellScope scope>
void BasicDoorbell<scope>::ring_all() {
  ring(INT_MAX);
}

template class BasicDoorbell<BellScope::process>;
template class BasicDoorbell<BellScope::host>;

}  // namespace heddle
