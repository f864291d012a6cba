#include "node-runtime/transport/p2p/matching.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

#include "base/optional_index.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::p2p {
namespace {

constexpr ChannelId channel{0};

Envelope from(std::int32_t source, std::int32_t tag, ChannelId in = channel) {
  return {NodeId{source}, tag, in};
}
Pattern wanting(std::int32_t source, std::int32_t tag, ChannelId in = channel) {
  return {NodeId{source}, tag, in};
}
constexpr std::int32_t any = -1;

TEST(Matching, gives_a_message_to_the_receive_that_was_posted_first) {
  Matching matching;
  EXPECT_FALSE(matching.post(ReceiveId{1}, wanting(any, 7)));
  EXPECT_FALSE(matching.post(ReceiveId{2}, wanting(3, 7)));
  EXPECT_FALSE(matching.post(ReceiveId{3}, wanting(3, any)));
  EXPECT_EQ(matching.arrive(ArrivalId{1}, from(3, 7)), ReceiveId{1});
  EXPECT_EQ(matching.arrive(ArrivalId{2}, from(3, 7)), ReceiveId{2});
  EXPECT_EQ(matching.arrive(ArrivalId{3}, from(3, 7)), ReceiveId{3});
  EXPECT_FALSE(matching.arrive(ArrivalId{4}, from(3, 7)));
  EXPECT_EQ(matching.unexpected(), 1U);
  EXPECT_EQ(matching.posted(), 0U);
}

TEST(Matching, gives_a_receive_the_message_that_came_first) {
  Matching matching;
  EXPECT_FALSE(matching.arrive(ArrivalId{1}, from(1, 5)));
  EXPECT_FALSE(matching.arrive(ArrivalId{2}, from(2, 5)));
  EXPECT_FALSE(matching.arrive(ArrivalId{3}, from(1, 6)));
  EXPECT_EQ(matching.post(ReceiveId{1}, wanting(any, 6)), ArrivalId{3});
  EXPECT_EQ(matching.post(ReceiveId{2}, wanting(any, any)), ArrivalId{1});
  EXPECT_EQ(matching.post(ReceiveId{3}, wanting(2, any)), ArrivalId{2});
  EXPECT_FALSE(matching.post(ReceiveId{4}, wanting(any, any)));
}

TEST(Matching, keeps_channels_apart) {
  Matching matching;
  EXPECT_FALSE(matching.post(ReceiveId{1}, wanting(any, any, ChannelId{1})));
  EXPECT_FALSE(matching.arrive(ArrivalId{1}, from(0, 0, ChannelId{2})));
  EXPECT_EQ(matching.arrive(ArrivalId{2}, from(0, 0, ChannelId{1})), ReceiveId{1});
}

TEST(Matching, forgets_a_receive_that_is_taken_back) {
  Matching matching;
  EXPECT_FALSE(matching.post(ReceiveId{1}, wanting(any, any)));
  EXPECT_FALSE(matching.post(ReceiveId{2}, wanting(any, any)));
  EXPECT_TRUE(matching.cancel(ReceiveId{1}));
  EXPECT_FALSE(matching.cancel(ReceiveId{1}));
  EXPECT_EQ(matching.arrive(ArrivalId{1}, from(0, 0)), ReceiveId{2});
  EXPECT_FALSE(matching.cancel(ReceiveId{2}));
}

TEST(Matching, gives_up_receives_of_a_source_that_is_gone_but_not_what_it_has_sent) {
  Matching matching;
  EXPECT_FALSE(matching.post(ReceiveId{5}, wanting(2, 1)));
  EXPECT_FALSE(matching.post(ReceiveId{6}, wanting(any, 1)));
  EXPECT_FALSE(matching.post(ReceiveId{7}, wanting(2, any)));
  EXPECT_FALSE(matching.arrive(ArrivalId{1}, from(2, 9, ChannelId{3})));
  EXPECT_EQ(matching.lose(NodeId{2}), (std::vector{ReceiveId{5}, ReceiveId{7}}));
  EXPECT_EQ(matching.post(ReceiveId{8}, wanting(2, 9, ChannelId{3})), ArrivalId{1});
  EXPECT_EQ(matching.posted(), 1U);
}

/// The rules written down: both queues are searched from their beginning.
class Reference {
 public:
  OptionalIndex<ArrivalId> post(ReceiveId id, const Pattern& pattern) {
    const auto found = std::ranges::find_if(
        arrivals_, [&](const auto& arrival) { return pattern.matches(arrival.second); });
    if (found == arrivals_.end()) {
      receives_.emplace_back(id, pattern);
      return {};
    }
    const ArrivalId taken = found->first;
    arrivals_.erase(found);
    return taken;
  }
  OptionalIndex<ReceiveId> arrive(ArrivalId id, const Envelope& envelope) {
    const auto found = std::ranges::find_if(
        receives_, [&](const auto& receive) { return receive.second.matches(envelope); });
    if (found == receives_.end()) {
      arrivals_.emplace_back(id, envelope);
      return {};
    }
    const ReceiveId taker = found->first;
    receives_.erase(found);
    return taker;
  }
  bool cancel(ReceiveId id) {
    return std::erase_if(receives_, [&](const auto& r) { return r.first == id; }) > 0;
  }
  [[nodiscard]] std::size_t posted() const { return receives_.size(); }
  [[nodiscard]] std::size_t unexpected() const { return arrivals_.size(); }

 private:
  std::vector<std::pair<ReceiveId, Pattern>> receives_;
  std::vector<std::pair<ArrivalId, Envelope>> arrivals_;
};

TEST(Matching, agrees_with_the_rules_on_random_orders) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) {
      return static_cast<std::int32_t>(random() % bound);
    };
    const std::uint64_t nodes = 1 + random() % 4;
    const std::uint64_t tags = 1 + random() % 5;
    const bool more_receives = random() % 2 == 0;
    Matching matching;
    Reference reference;
    std::int64_t next = 0;
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t what = random() % 10;
      const ChannelId in{below(2)};
      if (what == 0 && next > 0) {
        const ReceiveId some{
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(next))};
        ASSERT_EQ(matching.cancel(some), reference.cancel(some));
      } else if (what < (more_receives ? 6U : 5U)) {
        const Pattern pattern{NodeId{random() % 3 == 0 ? any : below(nodes)},
                              random() % 3 == 0 ? any : below(tags), in};
        ASSERT_EQ(matching.post(ReceiveId{next}, pattern),
                  reference.post(ReceiveId{next}, pattern));
        ++next;
      } else {
        const Envelope envelope{NodeId{below(nodes)}, below(tags), in};
        ASSERT_EQ(matching.arrive(ArrivalId{next}, envelope),
                  reference.arrive(ArrivalId{next}, envelope));
        ++next;
      }
      ASSERT_TRUE(matching.is_valid()) << "step " << step;
      ASSERT_EQ(matching.posted(), reference.posted());
      ASSERT_EQ(matching.unexpected(), reference.unexpected());
    }
  }
}

/// Marks of many messages that were taken by patterns behind one that nobody takes do not pile up.
TEST(Matching, keeps_no_more_marks_than_entries) {
  Matching matching;
  EXPECT_FALSE(matching.arrive(ArrivalId{0}, from(0, 0)));
  for (std::int64_t i = 1; i < 20000; ++i) {
    ASSERT_FALSE(matching.arrive(ArrivalId{i}, from(0, 1)));
    ASSERT_EQ(matching.post(ReceiveId{i}, wanting(0, 1)), ArrivalId{i});
    if (i % 1000 == 0) {
      ASSERT_TRUE(matching.is_valid());
    }
  }
}

}  // namespace
}  // namespace heddle::p2p
