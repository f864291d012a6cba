#include "apps/tuning/timing.hpp"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

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

TEST(TimesOn, are_one_of_each_worker) {
  const Workers workers{3, {}};
  const auto work_of = [](std::int32_t /*worker*/) {
    return Work{[](int /*run*/) {}, [](int /*run*/) {}};
  };
  EXPECT_EQ(times_on(workers, 2, work_of, 1e-4).size(), 2U);
  EXPECT_GE(time_on(workers, 3, work_of, 1e-4), 0);
}

}  // namespace heddle::tuning
