#include "node-runtime/transport/probe/schedule.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace heddle {
namespace {

using Hosts = std::vector<std::string>;

TEST(ProbingRounds, have_every_node_and_every_two_nodes_once) {
  for (const Hosts& hosts :
       {Hosts{"a"}, Hosts{"a", "a", "a"}, Hosts{"a", "b", "c", "d"}, Hosts{"a", "a", "b", "b"}}) {
    std::multiset<NodePair> found;
    for (const auto& round : probing_rounds(hosts)) found.insert(round.begin(), round.end());
    std::multiset<NodePair> expected;
    for (std::int32_t first = 0; first < std::ssize(hosts); ++first) {
      for (std::int32_t second = first; second < std::ssize(hosts); ++second) {
        expected.emplace(first, second);
      }
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(ProbingRounds, disturb_no_host_twice_at_a_time) {
  const Hosts hosts{"a", "a", "b", "b", "c", "d"};
  for (const auto& round : probing_rounds(hosts)) {
    std::set<std::string> busy;
    for (const auto& [first, second] : round) {
      std::set<std::string> pair{hosts[static_cast<std::size_t>(first)],
                                 hosts[static_cast<std::size_t>(second)]};
      for (const std::string& host : pair) EXPECT_TRUE(busy.insert(host).second) << host;
    }
  }
}

TEST(ProbingRounds, work_side_by_side_where_hosts_differ) {
  EXPECT_EQ(probing_rounds(Hosts{"a", "a"}).size(), 3U);
  EXPECT_EQ(probing_rounds(Hosts{"a", "b"}).size(), 2U);
  // Not more than twice the rounds that any order needs, which are 7 for 8 hosts.
  EXPECT_LE(probing_rounds(Hosts{"a", "b", "c", "d", "e", "f", "g", "h"}).size(), 1U + 2 * 7);
}

}  // namespace
}  // namespace heddle
