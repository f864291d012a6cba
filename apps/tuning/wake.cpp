#include "apps/tuning/wake.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/futex.hpp"
#include "base/median.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t sleepers_max = 8;
constexpr int wakings_of_sleeper = 12;

/// Seconds that each waking took: ringing on the one side, waking up on the other.
struct Timed {
  std::vector<double> rings;
  std::vector<double> wakes;
};

/// One more thread sleeps, on that core if there is one.
void time_wakings(std::span<const CpuCore> core, Clock::duration asleep_for, Timed& timed) {
  Doorbell bell;
  Clock::time_point woken;
  std::atomic<int> rounds{0};  // over; released with `woken` written
  std::thread sleeper([&] {
    if (!core.empty()) pin_current_thread(core);
    for (int i = 1; i <= wakings_of_sleeper; ++i) {
      const Doorbell::Ticket ticket = bell.ticket();
      rounds.store(i, std::memory_order_release);
      while (!bell.rung_since(ticket)) bell.wait(ticket);
      woken = Clock::now();
    }
    rounds.store(wakings_of_sleeper + 1, std::memory_order_release);
  });
  for (int i = 1; i <= wakings_of_sleeper; ++i) {
    while (rounds.load(std::memory_order_acquire) < i) std::this_thread::yield();
    const Clock::time_point begin = Clock::now();
    while (Clock::now() < begin + asleep_for) {
    }
    const Clock::time_point rung = Clock::now();
    bell.ring();
    const Clock::time_point goes_on = Clock::now();
    while (rounds.load(std::memory_order_acquire) <= i) std::this_thread::yield();
    timed.rings.push_back(std::chrono::duration<double>(goes_on - rung).count());
    timed.wakes.push_back(std::chrono::duration<double>(woken - rung).count());
  }
  sleeper.join();
}

}  // namespace

Waking measure_waking(std::span<const CpuCore> cores) {
  Timed after_long;
  Timed after_short;
  const auto time_on = [&](std::span<const CpuCore> core) {
    time_wakings(core, std::chrono::microseconds(1000), after_long);
    time_wakings(core, std::chrono::microseconds(100), after_short);
  };
  if (cores.size() < 2) {
    time_on({});  // who rings has the one core, too
  } else {
    const std::array before{CpuCore{current_thread_binding()}};
    const std::size_t sleepers = std::min(cores.size(), sleepers_max);
    for (std::size_t i = 0; i < sleepers; ++i) {
      const std::size_t at = i * cores.size() / sleepers;
      pin_current_thread(cores.subspan((at + 1) % cores.size(), 1));
      time_on(cores.subspan(at, 1));
    }
    pin_current_thread(before);
  }
  return {median(after_long.rings), median(after_long.wakes), after_long.wakes, after_short.wakes};
}

}  // namespace heddle::tuning
