#include "replay/simulation/event_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <tuple>
#include <vector>

namespace heddle::replay {
namespace {

using Queue = EventQueue<int>;

std::vector<int> drained(Queue& queue) {
  std::vector<int> all;
  while (!queue.empty()) all.push_back(queue.pop().event);
  return all;
}

TEST(EventQueue, gives_events_by_time) {
  Queue queue;
  EXPECT_TRUE(queue.empty());
  const std::vector<std::int64_t> times{7, 1'000'000'000, 0, 5'000, 3, 70'000'000};
  for (std::size_t i = 0; i < times.size(); ++i) queue.push(times[i], static_cast<int>(i));
  EXPECT_EQ(drained(queue), (std::vector{2, 4, 0, 3, 5, 1}));
}

TEST(EventQueue, gives_events_of_one_time_in_the_order_in_which_they_were_foreseen) {
  Queue queue;
  for (int i = 0; i < 100; ++i) queue.push(5, i);
  EXPECT_EQ(queue.pop().event, 0);
  for (int i = 100; i < 200; ++i) queue.push(5, i);
  for (int i = 1; i < 200; ++i) EXPECT_EQ(queue.pop().event, i);
}

/// As a simulation: each event foresees others, soon or much later.
TEST(EventQueue, is_as_a_sorted_list_whatever_the_distances) {
  for (const double scale : {3.0, 4e3, 5e6, 6e10}) {
    std::mt19937_64 random(17);
    std::exponential_distribution<double> distance(1 / scale);
    Queue queue;
    using Expected = std::tuple<std::int64_t, std::uint64_t, int>;
    std::vector<Expected> expected;  // a heap
    std::uint64_t pushed = 0;
    const auto push = [&](std::int64_t time_ns) {
      const auto event = static_cast<int>(random() % 1000);
      queue.push(time_ns, event);
      expected.emplace_back(time_ns, pushed++, event);
      std::ranges::push_heap(expected, std::greater<>{});
    };
    for (int i = 0; i < 300; ++i) push(static_cast<std::int64_t>(distance(random)));
    for (int i = 0; i < 200'000 && !queue.empty(); ++i) {
      const auto next = queue.pop();
      std::ranges::pop_heap(expected, std::greater<>{});
      ASSERT_EQ(std::tuple(next.time_ns, next.number, next.event), expected.back());
      expected.pop_back();
      const auto more = pushed < 100'000 ? random() % 3 : 0;
      for (std::uint64_t n = 0; n < more; ++n) {
        const bool far = random() % 8 == 0;
        push(next.time_ns + static_cast<std::int64_t>(distance(random) * (far ? 500 : 1)));
      }
    }
    EXPECT_EQ(queue.empty(), expected.empty());
  }
}

TEST(EventQueue, shows_each_event_of_a_slice_once_before_it_comes) {
  Queue queue;
  for (int i = 0; i < 500; ++i) queue.push(i % 7, i);
  std::vector<int> shown;
  std::vector<int> came;
  while (!queue.empty()) {
    came.push_back(queue.pop().event);
    for (const auto& entry : queue.soon()) shown.push_back(entry.event);
    EXPECT_LE(came.size(), shown.size()) << "it was not shown in time";
  }
  EXPECT_EQ(shown, came);
}

}  // namespace
}  // namespace heddle::replay
