#include "base/futex.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::jthread> threads(int count, const std::function<void()>& work) {
  std::vector<std::jthread> started;
  started.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) started.emplace_back(work);
  return started;
}

void spend(int microseconds) {
  const auto until = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < until) relax_cpu();
}

}  // namespace

TEST(SpinMutex, lets_one_thread_in_at_a_time) {
  for (const int patience : {1, SpinMutex::patience_with_cores}) {  // asleep, too
    SpinMutex mutex(patience);
    std::int64_t count = 0;
    constexpr int each = 20000;
    threads(4, [&] {
      for (int i = 0; i < each; ++i) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
    EXPECT_EQ(count, 4 * each);
  }
}

/// One thread that takes it again and again would have it again before others see that it is free.
TEST(SpinMutex, is_left_to_others_by_who_takes_it_again_and_again) {
  SpinMutex mutex(SpinMutex::patience_with_cores);
  std::atomic<bool> has_ended{false};
  std::atomic<std::int64_t> turns{0};
  const std::jthread greedy([&] {
    while (!has_ended.load()) {
      {
        const std::lock_guard lock(mutex);
        spend(20);
      }
      turns.fetch_add(1);
      mutex.let_others_in();
    }
  });
  while (turns.load() == 0) std::this_thread::yield();
  std::vector<std::int64_t> waited;  // turns of the other thread
  for (int i = 0; i < 500; ++i) {
    spend(30);  // so that the other one has it
    const std::int64_t before = turns.load();
    const std::lock_guard lock(mutex);
    waited.push_back(turns.load() - before);
  }
  has_ended.store(true);
  std::ranges::sort(waited);
  EXPECT_LE(waited[waited.size() / 2], 2);  // the turn that it met, and perhaps another
}

TEST(SpinMutex, lets_nobody_in_at_once_and_whoever_does_not_come_not_for_long) {
  SpinMutex mutex(SpinMutex::patience_with_cores);
  mutex.let_others_in();
  mutex.lock();
  const std::jthread waiting([&] { const std::lock_guard lock(mutex); });
  while (!mutex.is_awaited()) std::this_thread::yield();
  mutex.let_others_in();  // returns, although nobody can have it
  mutex.unlock();
}

TEST(Doorbell, wakes_all_that_wait_and_misses_no_ring_since_the_ticket) {
  Doorbell bell;
  const Doorbell::Ticket ticket = bell.ticket();
  std::atomic<int> awake{0};
  {
    const auto waiting = threads(4, [&] {
      while (!bell.rung_since(ticket)) bell.wait(ticket);
      awake.fetch_add(1);
    });
    bell.ring_all();
  }
  EXPECT_EQ(awake.load(), 4);
  bell.wait(ticket);  // it was rung: no sleep
  const auto begin = Clock::now();
  bell.wait(bell.ticket(), 1000);
  EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(500));
}

}  // namespace heddle
