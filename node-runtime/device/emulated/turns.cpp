#include "node-runtime/device/emulated/turns.hpp"

#include <cerrno>
#include <csignal>
#include <optional>
#include <unistd.h>

#include "base/assert.hpp"
#include "node-runtime/device/emulated/shared_arena.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t holder_shift = 32;
constexpr std::uint64_t one_holder = std::uint64_t{1} << holder_shift;
/// NVIDIA's default time slice of a GPU that processes share.
constexpr std::chrono::nanoseconds slice = 2ms;
/// How long a process whose slice is over leaves the GPU to those who wait.
constexpr std::chrono::nanoseconds courtesy = 1ms;
constexpr std::chrono::nanoseconds turn_look_interval = 10ms;

std::int64_t now_in_ns() {
  return DeviceClock::now().time_since_epoch().count();
}

std::uint64_t holder_of(std::uint64_t turn) {
  return turn >> holder_shift;
}

bool is_free(std::uint64_t turn) {
  return turn % one_holder == 0;
}

}  // namespace

EmulatedTurns::EmulatedTurns(GpuWords& words, std::int32_t sharer, double turn_us)
    : words_(&words),
      own_(static_cast<std::uint64_t>(sharer) + 1),
      turn_(static_cast<std::int64_t>(turn_us * 1e3)) {
  HEDDLE_CHECK(0 <= sharer && sharer < static_cast<std::int32_t>(GpuWords::sharers_max),
               "sharer {} of an emulated device", sharer);
  // Release: pairs with the acquire in is_alive().
  words.processes.at(static_cast<std::size_t>(sharer)).store(::getpid(), std::memory_order_release);
}

bool EmulatedTurns::is_alive(std::uint64_t holder) const {
  const std::int32_t process =
      words_->processes.at(static_cast<std::size_t>(holder - 1)).load(std::memory_order_acquire);
  return process == 0 || ::kill(process, 0) == 0 || errno == EPERM;
}

/// One more operation of this process, or the first one of its turn.
bool EmulatedTurns::take(std::uint64_t known) {
  const bool is_mine = holder_of(known) == own_;
  const std::uint64_t taken = is_mine ? known + 1 : own_ * one_holder + 1;
  // Acquire-release: who enters sees what the turn before has written to the words below.
  if (!words_->turn.compare_exchange_strong(known, taken, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
    return false;
  }
  if (is_mine && !is_free(known)) return true;
  const std::int64_t now = now_in_ns();
  // Relaxed: only durations depend on them. A thread of this process that enters at the same moment
  // may see the turn before, and starts early once.
  if (!is_mine) words_->turn_ready_ns.store(now + turn_.count(), std::memory_order_relaxed);
  const bool is_over = now - words_->turn_since_ns.load(std::memory_order_relaxed) > slice.count();
  if (!is_mine || is_over) words_->turn_since_ns.store(now, std::memory_order_relaxed);
  return true;
}

bool EmulatedTurns::enter(const std::function<bool()>& is_interrupted) {
  if (words_ == nullptr) return true;
  std::optional<std::int64_t> free_since_ns;
  bool is_counted = false;
  bool has_entered = false;
  while (!has_entered) {
    // Before the look at the turn: an end behind it changes the word, and nobody sleeps over it.
    const std::uint32_t ends = words_->turn_ends.load(std::memory_order_acquire);
    const std::uint64_t turn = words_->turn.load(std::memory_order_acquire);
    bool may_take = false;
    if (holder_of(turn) == own_) {
      const std::int64_t now = now_in_ns();
      const std::uint32_t others =
          words_->waiting.load(std::memory_order_relaxed) - (is_counted ? 1 : 0);
      const bool is_over =
          now - words_->turn_since_ns.load(std::memory_order_relaxed) > slice.count();
      if (is_free(turn) && !free_since_ns) free_since_ns = now;
      may_take =
          !is_over || others == 0 || (is_free(turn) && now - *free_since_ns > courtesy.count());
    } else {
      may_take = is_free(turn) || !is_alive(holder_of(turn));
    }
    if (may_take) {
      has_entered = take(turn);
      continue;
    }
    if (is_interrupted()) break;
    // Those of the holder who defer do not count: they wait for the others.
    if (holder_of(turn) != own_ && !is_counted) {
      words_->waiting.fetch_add(1, std::memory_order_relaxed);
      is_counted = true;
    }
    const bool defers = holder_of(turn) == own_ && is_free(turn);
    futex_wait(words_->turn_ends, ends, defers ? courtesy : turn_look_interval);
  }
  if (is_counted) words_->waiting.fetch_sub(1, std::memory_order_relaxed);
  return has_entered;
}

DeviceClock::time_point EmulatedTurns::ready() const {
  if (words_ == nullptr) return {};
  return DeviceClock::time_point(
      std::chrono::nanoseconds(words_->turn_ready_ns.load(std::memory_order_relaxed)));
}

void EmulatedTurns::leave() {
  if (words_ == nullptr) return;
  // Release: pairs with the acquire of the next one's take().
  const std::uint64_t before = words_->turn.fetch_sub(1, std::memory_order_acq_rel);
  if (!is_free(before - 1)) return;
  words_->turn_ends.fetch_add(1, std::memory_order_release);
  futex_wake_all(words_->turn_ends);
}

}  // namespace heddle
