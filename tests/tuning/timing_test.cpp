#include "apps/tuning/timing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "kernels/kernels.hpp"

namespace heddle::tuning {
namespace {

/// A machine on which things take longer or shorter as time goes by.
class Machine {
 public:
  /// What takes `seconds` when nothing disturbs it; `slow(n)` says how much longer the n-th timing
  /// takes.
  template <class Slow>
  [[nodiscard]] std::function<double()> timing(double seconds, Slow slow) {
    return [this, seconds, slow] { return seconds * slow(timings_++); };
  }

 private:
  int timings_ = 0;
};

}  // namespace

TEST(RatioByTurns, is_that_of_a_quiet_machine) {
  Machine machine;
  const auto quiet = [](int /*timing*/) { return 1.0; };
  EXPECT_DOUBLE_EQ(ratio_by_turns(machine.timing(3, quiet), machine.timing(2, quiet)), 1.5);
}

TEST(RatioByTurns, does_not_change_when_the_machine_becomes_slower) {
  Machine machine;
  const auto half_way = [](int timing) { return timing < ratio_pairs ? 1.0 : 2.5; };
  EXPECT_DOUBLE_EQ(ratio_by_turns(machine.timing(3, half_way), machine.timing(2, half_way)), 1.5);
  Machine slower;
  const auto steadily = [](int timing) { return std::pow(1.1, timing); };
  EXPECT_NEAR(ratio_by_turns(slower.timing(3, steadily), slower.timing(2, steadily)), 1.5, 0.151);
}

TEST(RatioByTurns, leaves_single_disturbances_out) {
  // Each four of the timings, two of which are neighbours.
  for (int a = 0; a < 2 * ratio_pairs; ++a) {
    for (int b = a; b < 2 * ratio_pairs; ++b) {
      Machine machine;
      const auto some = [a, b](int timing) {
        return timing == a || timing == a + 1 || timing == b || timing == b + 4 ? 10.0 : 1.0;
      };
      EXPECT_DOUBLE_EQ(ratio_by_turns(machine.timing(3, some), machine.timing(2, some)), 1.5)
          << a << ", " << b;
    }
  }
}

namespace {

/// Three kernels that take 100, 200 and 400 us, in rounds that are slower by `paces`.
std::vector<KernelTimes> rounds_at(const std::vector<double>& paces) {
  std::vector<KernelTimes> rounds;
  for (const double pace : paces) {
    rounds.push_back({{&kernel::gsmm, 128, 128, 0, 100 * pace},
                      {&kernel::gsmm, 192, 192, 0, 200 * pace},
                      {&kernel::tsmqr, 1024, 96, 32, 400 * pace}});
  }
  return rounds;
}

}  // namespace

TEST(SettledTimes, are_those_of_the_fastest_round_of_a_machine_whose_pace_changes) {
  const KernelTimes times = settled_times(rounds_at({1.4, 1.1, 2.0, 1.2, 1.7}));
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[2].kernel, &kernel::tsmqr);
  EXPECT_EQ(times[2].rows, 1024);
  EXPECT_EQ(times[2].columns, 96);
  EXPECT_EQ(times[2].inner, 32);
  EXPECT_NEAR(times[0].microseconds, 110, 1e-9);
  EXPECT_NEAR(times[1].microseconds, 220, 1e-9);
  EXPECT_NEAR(times[2].microseconds, 440, 1e-9);
}

TEST(SettledTimes, compare_kernels_by_the_middle_of_rounds_and_not_by_a_lucky_one) {
  std::vector<KernelTimes> rounds = rounds_at({1.4, 1, 2, 1.2, 1.7});
  rounds[0][0].microseconds *= 0.6;  // alone faster than it is: the best of rounds would take it
  rounds[3][1].microseconds *= 5;
  const KernelTimes times = settled_times(rounds);
  EXPECT_NEAR(times[1].microseconds / times[0].microseconds, 2, 1e-9);
  EXPECT_NEAR(times[2].microseconds / times[0].microseconds, 4, 1e-9);
}

TEST(SettledTimes, need_not_be_in_each_round) {
  std::vector<KernelTimes> rounds = rounds_at({1, 2, 2});
  rounds[0].pop_back();
  rounds[2].erase(rounds[2].begin());
  const KernelTimes times = settled_times(rounds);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_NEAR(times[2].microseconds / times[1].microseconds, 2, 1e-9);
  EXPECT_TRUE(settled_times({}).empty());
  EXPECT_TRUE(settled_times(std::vector<KernelTimes>(2)).empty());
}

/// One works four times as long as the other two: their mean rate is that of 80 / 3 ms, the mean of
/// their times 40. What a busy machine makes of that is read from the work itself.
TEST(TimeOn, is_at_the_mean_rate_of_workers_of_which_some_are_slow) {
  const Workers workers{3, {}};
  std::array<std::atomic<double>, 3> longest{};
  const auto work_of = [&](std::int32_t worker) {
    return Work{[](int /*run*/) {},
                [&longest, worker](int run) {
                  const auto begin = std::chrono::steady_clock::now();
                  std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 80 : 20));
                  const std::chrono::duration<double> took =
                      std::chrono::steady_clock::now() - begin;
                  std::atomic<double>& most = longest.at(static_cast<std::size_t>(worker));
                  if (run > 0) most = std::max(most.load(), took.count());
                }};
  };
  const double seconds = time_on(workers, 3, work_of, 1e-3);
  double slowest_rate = 0;
  for (const std::atomic<double>& most : longest) slowest_rate += 1 / most.load();
  EXPECT_GE(seconds, 0.08 / 3);
  EXPECT_LE(seconds, 3 / slowest_rate * 1.05) << "no run took longer";
  EXPECT_LT(seconds, (longest[0] + longest[1] + longest[2]) / 3) << "that is the mean of times";
}

TEST(TimesOn, are_one_of_each_worker) {
  const Workers workers{3, {}};
  const auto work_of = [](std::int32_t /*worker*/) {
    return Work{[](int /*run*/) {}, [](int /*run*/) {}};
  };
  EXPECT_EQ(times_on(workers, 2, work_of, 1e-4).size(), 2U);
  EXPECT_GE(time_on(workers, 3, work_of, 1e-4), 0);
}

}  // namespace heddle::tuning
