#include "apps/tuning/wake.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/median.hpp"
#include "node-runtime/threads/futex.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int wakings = 31;
/// The sleeper's core has gone idle by then: virtual machines and their hosts look for work for
/// some tenths of a millisecond before.
constexpr auto asleep_for = std::chrono::microseconds(1000);

}  // namespace

Waking measure_waking() {
  Doorbell bell;
  Clock::time_point woken;
  std::atomic<int> rounds{0};  // over; released with `woken` written
  std::thread sleeper([&] {
    for (int i = 1; i <= wakings; ++i) {
      const Doorbell::Ticket ticket = bell.ticket();
      rounds.store(i, std::memory_order_release);
      while (!bell.rung_since(ticket)) bell.wait(ticket);
      woken = Clock::now();
    }
    rounds.store(wakings + 1, std::memory_order_release);
  });
  std::vector<double> rings;
  std::vector<double> wakes;
  for (int i = 1; i <= wakings; ++i) {
    while (rounds.load(std::memory_order_acquire) < i) std::this_thread::yield();
    const Clock::time_point begin = Clock::now();
    while (Clock::now() < begin + asleep_for) {
    }
    const Clock::time_point rung = Clock::now();
    bell.ring();
    const Clock::time_point goes_on = Clock::now();
    while (rounds.load(std::memory_order_acquire) <= i) std::this_thread::yield();
    rings.push_back(std::chrono::duration<double>(goes_on - rung).count());
    wakes.push_back(std::chrono::duration<double>(woken - rung).count());
  }
  sleeper.join();
  return {median(std::move(rings)), median(std::move(wakes))};
}

}  // namespace heddle::tuning
