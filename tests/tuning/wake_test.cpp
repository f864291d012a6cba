#include "apps/tuning/wake.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace heddle::tuning {
namespace {

TEST(Waking, takes_some_time_and_less_than_a_tenth_of_a_second) {
  const std::vector<CpuCore> cores{CpuCore{current_thread_binding()}};
  const Waking waking = measure_waking(cores);
  for (const double seconds : {waking.ring_s, waking.wake_s}) {
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 0.1);
  }
  EXPECT_GE(waking.after_long.size(), 8U);
  EXPECT_EQ(waking.after_long.size(), waking.after_short.size());
}

TEST(Waking, is_measured_on_several_cores_and_leaves_the_caller_where_it_was) {
  const CpuTopology topology = CpuTopology::detect();
  const auto before = current_thread_binding();
  const Waking waking = measure_waking(topology.cores());
  EXPECT_EQ(current_thread_binding(), before);
  EXPECT_EQ(waking.after_long.size() % std::min<std::size_t>(8, topology.cores().size()), 0U);
  for (const std::vector<double>* const all : {&waking.after_long, &waking.after_short}) {
    for (const double seconds : *all) EXPECT_GT(seconds, 0);
  }
}

}  // namespace
}  // namespace heddle::tuning
