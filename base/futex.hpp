#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// The two primitives on which threads meet. Both are one 32-bit word that the kernel is only asked
/// about when somebody has to sleep.
namespace heddle {

/// Bytes that processors hand to each other as one; two lines, as they fetch pairs.
inline constexpr std::size_t cache_line = 128;

/// Mutual exclusion for sections of about a microsecond: spins for a while, then sleeps in the
/// kernel. Meets the standard's Lockable requirements.
class SpinMutex {
 public:
  /// How often a waiter relaxes (relax_cpu, 20 to 50 ns) before it sleeps: where the threads have a
  /// core each, longer than it takes to sleep and to be woken; where they share cores, little more
  /// than a section, as the holder may need this one.
  static constexpr int patience_with_cores = 4000;
  static constexpr int patience_on_shared_cores = 200;

  explicit SpinMutex(int patience = patience_on_shared_cores) : patience_(patience) {}

  void lock() {
    std::uint32_t expected = free;
    // Acquire pairs with the release in unlock(): what the last holder wrote is seen.
    if (!state_.compare_exchange_strong(expected, taken, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      lock_contended();
    }
  }
  bool try_lock() {
    std::uint32_t expected = free;
    return state_.compare_exchange_strong(expected, taken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  /// For a thread without the lock that takes it again and again: returns when all who waited for
  /// it have had it, or after some ten microseconds. Otherwise it would have it again before
  /// others, who look now and then, see that it was free.
  void let_others_in() const;
  /// Whether somebody has found it taken and waits. For tests.
  [[nodiscard]] bool is_awaited() const {
    return arrived_.load(std::memory_order_relaxed) != served_.load(std::memory_order_relaxed);
  }

  void unlock() {
    // Release publishes the section's writes; `awaited` means that somebody may sleep on the word.
    if (state_.exchange(free, std::memory_order_release) == awaited) wake_one();
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint32_t awaited = 2;

  void lock_contended();
  void wait_for_turn();
  void wake_one();

  std::atomic<std::uint32_t> state_{free};
  const int patience_;
  alignas(cache_line) std::atomic<std::uint32_t> arrived_{0};  ///< in lock_contended(),
  std::atomic<std::uint32_t> served_{0};                       ///< and that have had their turn
};

/// Whose threads meet at a doorbell: those of a process, or of several that share its memory.
enum class BellScope : std::uint8_t { process, host };

/// Threads wait here until somebody rings. A waiter takes a ticket, then looks whether there is
/// work, then waits with the ticket: rings after the ticket was taken are not missed.
template <BellScope scope>
class alignas(cache_line) BasicDoorbell {
 public:
  using Ticket = std::uint32_t;

  /// Acquire pairs with ring()'s increment: what was published before that ring is seen after this.
  [[nodiscard]] Ticket ticket() const { return epoch_.load(std::memory_order_acquire); }
  [[nodiscard]] bool rung_since(Ticket ticket) const { return this->ticket() != ticket; }

  /// Sleeps until a ring after `ticket` was taken, at most `timeout_us` if that is positive. May
  /// return early.
  void wait(Ticket ticket, std::int64_t timeout_us = 0);

  /// Wakes up to `count` waiters. Costs no system call when nobody sleeps.
  void ring(int count = 1);
  void ring_all();

 private:
  std::atomic<Ticket> epoch_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};
extern template class BasicDoorbell<BellScope::process>;
extern template class BasicDoorbell<BellScope::host>;
using Doorbell = BasicDoorbell<BellScope::process>;
/// In memory that processes share, which begins as zeros.
using SharedDoorbell = BasicDoorbell<BellScope::host>;

/// Tells the processor that this is a spin loop.
inline void relax_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace heddle
