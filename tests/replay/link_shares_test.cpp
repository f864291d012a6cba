#include "replay/collectives/link_shares.hpp"

#include <gtest/gtest.h>
#include <map>
#include <utility>
#include <vector>

/// Ends of messages on shared links, against those worked out by hand. Links of a byte per ns.
namespace heddle::replay {
namespace {

struct Begin {
  std::int64_t at_ns = 0;
  double bytes = 0;
  std::vector<LinkId> path;
  double bytes_per_s = 1e12;
};

/// When each message ends.
std::vector<std::int64_t> ends_of(LinkShares& shares, const std::vector<Begin>& begins) {
  std::vector<std::int64_t> ends(begins.size(), -1);
  std::multimap<std::int64_t, LinkShares::Foreseen> ahead;
  std::vector<LinkShares::Foreseen> foreseen;
  std::size_t next = 0;
  while (next < begins.size() || !ahead.empty()) {
    const std::int64_t now =
        ahead.empty() || (next < begins.size() && begins[next].at_ns <= ahead.begin()->first)
            ? begins[next].at_ns
            : ahead.begin()->first;
    while (!ahead.empty() && ahead.begin()->first == now) {
      const LinkShares::Foreseen end = ahead.begin()->second;
      ahead.erase(ahead.begin());
      const auto ended = shares.comes(end, foreseen);
      if (!ended) continue;
      ends[static_cast<std::size_t>(shares.tag(*ended))] = now;
      shares.end(now, *ended);
    }
    for (; next < begins.size() && begins[next].at_ns == now; ++next) {
      const Begin& one = begins[next];
      shares.begin(now, one.bytes, one.bytes_per_s, one.path, static_cast<std::int64_t>(next));
    }
    shares.settle(now, foreseen);
    EXPECT_TRUE(shares.is_valid());
    for (const LinkShares::Foreseen& one : foreseen) ahead.emplace(one.end_ns, one);
    foreseen.clear();
  }
  return ends;
}

using Ends = std::vector<std::int64_t>;

}  // namespace

TEST(LinkShares, one_message_has_the_slowest_link_of_its_path) {
  LinkShares shares;
  const LinkId fast = shares.add_link(4e9);
  const LinkId slow = shares.add_link(1e9);
  EXPECT_EQ(ends_of(shares, {{10, 800, {fast, slow}}}), (Ends{810}));
  EXPECT_EQ(shares.busy_ns(slow), 800);
  EXPECT_EQ(ends_of(shares, {{2000, 800, {fast}}}), (Ends{2200}));
  EXPECT_EQ(ends_of(shares, {{3000, 800, {fast, slow}, 0.5e9}}), (Ends{4600}));
}

TEST(LinkShares, messages_get_equal_shares_while_they_overlap) {
  LinkShares shares;
  const LinkId link = shares.add_link(1e9);
  // 100 alone, then both at half: the first one's other 100 take 200.
  EXPECT_EQ(ends_of(shares, {{0, 200, {link}}, {100, 300, {link}}}), (Ends{300, 500}));
  EXPECT_EQ(shares.busy_ns(link), 500);
}

TEST(LinkShares, a_link_in_the_middle_is_shared_by_messages_of_different_ends) {
  LinkShares shares;
  const LinkId a = shares.add_link(1e9);
  const LinkId b = shares.add_link(1e9);
  const LinkId middle = shares.add_link(1e9);
  const LinkId c = shares.add_link(1e9);
  EXPECT_EQ(ends_of(shares, {{0, 100, {a, middle, c}}, {0, 300, {b, middle}}, {0, 50, {a}}}),
            (Ends{200, 400, 100}));
}

TEST(LinkShares, many_into_one_end_together) {
  LinkShares shares;
  const LinkId into = shares.add_link(1e9);
  std::vector<Begin> begins;
  for (int k = 0; k < 1000; ++k) begins.push_back({0, 10, {shares.add_link(1e9), into}});
  EXPECT_EQ(ends_of(shares, begins), Ends(1000, 10'000));
}

}  // namespace heddle::replay
