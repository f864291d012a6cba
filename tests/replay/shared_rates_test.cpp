#include "replay/simulation/shared_rates.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle::replay {
namespace {

/// Runs what is foreseen until nothing is left; when each flow ended.
class Clock {
 public:
  explicit Clock(SharedRates& rates) : rates_(rates) {}

  /// The flow's number, by beginning.
  std::size_t begin(std::int64_t at_ns, double amount, ResourceId first,
                    std::optional<ResourceId> second = {}) {
    run_until(at_ns);
    numbers_[rates_.begin(at_ns, amount, first, second.value_or(first), foreseen_).value()] =
        ends_.size();
    ends_.push_back(-1);
    take();
    return ends_.size() - 1;
  }
  void run() { run_until(std::numeric_limits<std::int64_t>::max()); }
  [[nodiscard]] std::int64_t ended_ns(std::size_t flow) const { return ends_.at(flow); }

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
        ends_.at(numbers_.at(flow->value())) = now;
        rates_.end(now, *flow, foreseen_);
      }
      take();
    }
  }

  SharedRates& rates_;
  std::vector<SharedRates::Foreseen> foreseen_;
  std::multimap<std::int64_t, SharedRates::Foreseen> due_;
  std::map<std::int32_t, std::size_t> numbers_;  ///< of flows, by the id that they have now
  std::vector<std::int64_t> ends_;
};

TEST(SharedRates, one_alone_has_all_of_the_rate) {
  SharedRates rates;
  Clock clock(rates);
  const std::size_t flow = clock.begin(100, 2000, rates.add_resource(1e9));
  clock.run();
  EXPECT_EQ(clock.ended_ns(flow), 2100);
  EXPECT_EQ(rates.under_way(), 0);
}

TEST(SharedRates, two_share_it_while_both_are_there) {
  SharedRates rates;
  Clock clock(rates);
  const ResourceId link = rates.add_resource(1e9);
  const std::size_t first = clock.begin(0, 1000, link);
  const std::size_t second = clock.begin(400, 1000, link);
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
  const std::size_t one = clock.begin(0, 1000, out, in_a);
  const std::size_t two = clock.begin(0, 1000, out, in_b);
  const std::size_t three = clock.begin(0, 500, in_a);
  clock.run();
  EXPECT_EQ(clock.ended_ns(two), 1000);    // half of `out`, all of its own
  EXPECT_EQ(clock.ended_ns(three), 1000);  // half of in_a
  EXPECT_EQ(clock.ended_ns(one), 1500);    // half until then, 500 left at 1
}

TEST(SharedRates, nothing_takes_no_time) {
  SharedRates rates;
  Clock clock(rates);
  const std::size_t flow = clock.begin(7, 0, rates.add_resource(1));
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
    std::vector<std::size_t> flows;
    for (int i = 0; i < 30; ++i) {
      now += static_cast<std::int64_t>(random() % 300);
      const auto amount = static_cast<double>(random() % 4000);
      all += amount;
      flows.push_back(clock.begin(now, amount, link));
    }
    clock.run();
    std::int64_t last = 0;
    for (const std::size_t flow : flows) last = std::max(last, clock.ended_ns(flow));
    // Busy from some time on until the end, at a rate of 1: no earlier than the work allows.
    EXPECT_GE(static_cast<double>(last), all);
    EXPECT_LE(static_cast<double>(last), static_cast<double>(now) + all + 30);
    EXPECT_EQ(rates.under_way(), 0);
  }
}

struct Wanted {
  std::int64_t begin_ns = 0;
  double amount = 0;
  std::size_t first = 0;  ///< resources by number
  std::size_t second = 0;
};

/// When flows end, each followed by itself from one change of any of them to the next.
std::vector<double> ends_one_by_one(const std::vector<double>& rates_per_ns,
                                    const std::vector<Wanted>& flows) {
  std::vector<double> ends(flows.size(), -1);
  std::vector<double> left;
  for (const Wanted& flow : flows) left.push_back(flow.amount);
  double now = 0;
  for (std::size_t over = 0; over < flows.size();) {
    const auto is_there = [&](std::size_t i) {
      return ends[i] < 0 && static_cast<double>(flows[i].begin_ns) <= now;
    };
    std::vector<double> users(rates_per_ns.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!is_there(i)) continue;
      ++users[flows[i].first];
      if (flows[i].second != flows[i].first) ++users[flows[i].second];
    }
    const auto rate = [&](std::size_t i) {
      const auto part = [&](std::size_t resource) {
        return rates_per_ns[resource] / users[resource];
      };
      return std::min(part(flows[i].first), part(flows[i].second));
    };
    double next = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto begin = static_cast<double>(flows[i].begin_ns);
      if (begin > now) next = std::min(next, begin);
      if (is_there(i)) next = std::min(next, now + left[i] / rate(i));
    }
    const double before = now;
    std::vector<std::size_t> ended;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!is_there(i)) continue;
      left[i] -= rate(i) * (next - before);
      if (left[i] < 1e-6) ended.push_back(i);
    }
    now = next;
    for (const std::size_t i : ended) ends[i] = now;
    over += ended.size();
  }
  return ends;
}

TEST(SharedRates, flows_between_the_same_resources_end_as_each_by_itself) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    SharedRates rates;
    const std::vector<double> rates_per_ns{1, 2, 1, 0.5};
    std::vector<ResourceId> resources;
    for (const double rate : rates_per_ns) resources.push_back(rates.add_resource(rate * 1e9));
    std::vector<Wanted> flows;
    std::int64_t now_ns = 0;
    for (int i = 0; i < 40; ++i) {
      now_ns += static_cast<std::int64_t>(random() % 3000);
      // Two that send and two that receive, or one resource of both.
      const std::size_t first = random() % 2;
      const std::size_t second = random() % 5 == 0 ? first : 2 + random() % 2;
      flows.push_back({now_ns, static_cast<double>(1 + random() % 20'000), first, second});
    }
    Clock clock(rates);
    for (const Wanted& flow : flows) {
      static_cast<void>(
          clock.begin(flow.begin_ns, flow.amount, resources[flow.first], resources[flow.second]));
    }
    clock.run();
    const std::vector<double> expected = ends_one_by_one(rates_per_ns, flows);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      // Each end before it may be a nanosecond late.
      EXPECT_NEAR(static_cast<double>(clock.ended_ns(i)), expected[i], 40) << i;
    }
    EXPECT_EQ(rates.under_way(), 0);
  }
}

}  // namespace
}  // namespace heddle::replay
