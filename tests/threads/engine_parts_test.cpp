#include <atomic>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "node-runtime/threads/counters.hpp"
#include "node-runtime/threads/failure.hpp"
#include "node-runtime/threads/wakes.hpp"
#include "node-runtime/threads/watchdog.hpp"

/// The engine's smallest parts.
namespace heddle {
namespace {

constexpr std::int64_t second = 1'000'000'000;
using Finding = Watchdog::Finding;

}  // namespace

TEST(Failure, keeps_the_first_of_many_reasons) {
  Failure failure;
  EXPECT_FALSE(failure.failed());
  EXPECT_FALSE(failure.reason());
  std::atomic<int> first{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (failure.set(Error(ErrorCode::internal, "reason " + std::to_string(t)))) ++first;
      // Whoever sees the failure sees a reason.
      ASSERT_TRUE(failure.failed());
      EXPECT_EQ(std::string(failure.reason()->what()).substr(0, 7), "reason ");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 1);
  EXPECT_TRUE(failure.is_valid());
}

TEST(Counters, tell_what_runs_from_what_waits_for_its_tiles) {
  Counters counters;
  for (int t = 0; t < 3; ++t) counters.task_taken();
  counters.wait_for_tiles(2);
  EXPECT_EQ(counters.running(), 1);
  EXPECT_TRUE(counters.is_valid());
  counters.wait_for_tiles(-2);
  counters.task_ended();
  EXPECT_EQ(counters.running(), 2);
  counters.copy(100);
  counters.copy(20);
  counters.message(7);
  EXPECT_EQ(counters.events(), 2U) << "a copy is an event";
  const Counters::Traffic traffic = counters.traffic();
  EXPECT_EQ(traffic.copies, 2U);
  EXPECT_EQ(traffic.bytes_copied, 120U);
  EXPECT_EQ(traffic.messages, 1U);
  EXPECT_EQ(traffic.bytes_sent, 7U);
  counters.worker_idle(true);
  EXPECT_EQ(counters.idle_workers(), 1);
  counters.worker_idle(false);
  counters.worker_idle(false);
  EXPECT_FALSE(counters.is_valid()) << "more workers found work than had none";
}

TEST(Watchdog, says_that_nothing_advances_where_nothing_runs) {
  Watchdog watchdog(10, 0, 5);
  EXPECT_EQ(watchdog.look(10 * second, 5, 0), Finding::advances);
  EXPECT_EQ(watchdog.look(11 * second, 5, 0), Finding::stands);
  EXPECT_EQ(watchdog.look(12 * second, 6, 0), Finding::advances) << "an event";
  EXPECT_EQ(watchdog.look(22 * second, 6, 0), Finding::advances);
  EXPECT_EQ(watchdog.look(23 * second, 6, 0), Finding::stands);
}

TEST(Watchdog, waits_for_what_runs_and_says_so_once_in_a_while) {
  Watchdog watchdog(10, 0, 0);
  EXPECT_EQ(watchdog.look(5 * second, 0, 1), Finding::runs);
  EXPECT_EQ(watchdog.look(11 * second, 0, 1), Finding::quiet);
  EXPECT_EQ(watchdog.look(12 * second, 0, 1), Finding::runs);
  EXPECT_EQ(watchdog.look(20 * second, 0, 1), Finding::runs);
  EXPECT_EQ(watchdog.look(22 * second, 0, 1), Finding::quiet);
  EXPECT_EQ(watchdog.look(31 * second, 0, 0), Finding::advances) << "it has run until now";
  EXPECT_EQ(watchdog.look(33 * second, 0, 0), Finding::stands);
}

TEST(Watchdog, of_no_time_never_says_that_anything_stands) {
  Watchdog watchdog(0, 0, 0);
  EXPECT_EQ(watchdog.look(1'000'000 * second, 0, 0), Finding::advances);
  EXPECT_EQ(watchdog.look(2'000'000 * second, 0, 1), Finding::runs);
}

TEST(Bells, ring_for_those_that_are_named) {
  Bells bells(2);
  const Doorbell* const all[] = {
      &bells.cpu,     &bells.generation,      &bells.room,           &bells.copy,
      &bells.message, bells.devices[0].get(), bells.devices[1].get()};
  std::vector<Doorbell::Ticket> tickets;
  for (const Doorbell* bell : all) tickets.push_back(bell->ticket());
  Wakes wakes;
  wakes.devices = 2;
  Wakes more;
  more.generation = true;
  more.cpu = 3;
  wakes |= more;
  bells.ring(wakes);
  const std::vector<bool> expected{true, true, true, false, false, false, true};
  for (std::size_t b = 0; b < std::size(all); ++b) {
    EXPECT_EQ(all[b]->rung_since(tickets[b]), expected[b]) << b;
  }
  bells.ring_all();
  for (std::size_t b = 0; b < std::size(all); ++b) EXPECT_TRUE(all[b]->rung_since(tickets[b]));
}

}  // namespace heddle
