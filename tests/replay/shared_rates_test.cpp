#include "replay/simulation/shared_rates.hpp"

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>

#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

/// Runs what is foreseen until nothing is left; when each flow ended.
class Clock {
 public:
  explicit Clock(SharedRates& rates) : rates_(rates) {}

  FlowId begin(std::int64_t at_ns, double amount, ResourceId first,
               std::optional<ResourceId> second = {}) {
    run_until(at_ns);
    const FlowId flow = rates_.begin(at_ns, amount, first, second.value_or(first), foreseen_);
    take();
    return flow;
  }
  void run() { run_until(std::numeric_limits<std::int64_t>::max()); }
  [[nodiscard]] std::int64_t ended_ns(FlowId flow) const { return ends_.at(flow.value()); }

 private:
  void take() {
    for (const SharedRates::Foreseen& end : foreseen_) due_.emplace(end.end_ns, end);
    foreseen_.clear();
  }
  void run_until(std::int64_t limit_ns) {
    while (!due_.empty() && due_.begin()->first <= limit_ns) {
      const auto [now, end] = *due_.begin();
      due_.erase(due_.begin());
      if (const auto flow = rates_.comes(end, foreseen_)) {
        ends_[flow->value()] = now;
        rates_.end(now, *flow, foreseen_);
      }
      take();
    }
  }

  SharedRates& rates_;
  std::vector<SharedRates::Foreseen> foreseen_;
  std::multimap<std::int64_t, SharedRates::Foreseen> due_;
  std::map<std::int32_t, std::int64_t> ends_;
};

TEST(SharedRates, one_alone_has_all_of_the_rate) {
  SharedRates rates;
  Clock clock(rates);
  const FlowId flow = clock.begin(100, 2000, rates.add_resource(1e9));
  clock.run();
  EXPECT_EQ(clock.ended_ns(flow), 2100);
  EXPECT_EQ(rates.under_way(), 0);
}

TEST(SharedRates, two_share_it_while_both_are_there) {
  SharedRates rates;
  Clock clock(rates);
  const ResourceId link = rates.add_resource(1e9);
  const FlowId first = clock.begin(0, 1000, link);
  const FlowId second = clock.begin(400, 1000, link);
  clock.run();
  // 400 alone; then both at half: 600 left take 1200; then the second's last 400 alone.
  EXPECT_EQ(clock.ended_ns(first), 1600);
  EXPECT_EQ(clock.ended_ns(second), 2000);
}

TEST(SharedRates, the_slower_of_two_resources_counts) {
  SharedRates rates;
  Clock clock(rates);
  const ResourceId out = rates.add_resource(2e9);
  const ResourceId in_a = rates.add_resource(1e9);
  const ResourceId in_b = rates.add_resource(1e9);
  const FlowId one = clock.begin(0, 1000, out, in_a);
  const FlowId two = clock.begin(0, 1000, out, in_b);
  const FlowId three = clock.begin(0, 500, in_a);
  clock.run();
  EXPECT_EQ(clock.ended_ns(two), 1000);    // half of `out`, all of its own
  EXPECT_EQ(clock.ended_ns(three), 1000);  // half of in_a
  EXPECT_EQ(clock.ended_ns(one), 1500);    // half until then, 500 left at 1
}

TEST(SharedRates, nothing_takes_no_time) {
  SharedRates rates;
  Clock clock(rates);
  const FlowId flow = clock.begin(7, 0, rates.add_resource(1));
  clock.run();
  EXPECT_EQ(clock.ended_ns(flow), 7);
}

TEST(SharedRates, what_is_done_is_what_was_asked_for) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    SharedRates rates;
    Clock clock(rates);
    const ResourceId link = rates.add_resource(1e9);
    double all = 0;
    std::int64_t now = 0;
    std::vector<FlowId> flows;
    for (int i = 0; i < 30; ++i) {
      now += static_cast<std::int64_t>(random() % 300);
      const auto amount = static_cast<double>(random() % 4000);
      all += amount;
      flows.push_back(clock.begin(now, amount, link));
    }
    clock.run();
    std::int64_t last = 0;
    for (const FlowId flow : flows) last = std::max(last, clock.ended_ns(flow));
    // Busy from some time on until the end, at a rate of 1: no earlier than the work allows.
    EXPECT_GE(static_cast<double>(last), all);
    EXPECT_LE(static_cast<double>(last), static_cast<double>(now) + all + 30);
    EXPECT_EQ(rates.under_way(), 0);
  }
}

}  // namespace
}  // namespace heddle::replay
