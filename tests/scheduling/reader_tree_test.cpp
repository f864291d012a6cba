#include "node-runtime/scheduling/reader_tree.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using protocol::Reader;

constexpr std::int32_t all = std::numeric_limits<std::int32_t>::max();

std::vector<Reader> readers_on(const std::vector<std::int32_t>& nodes) {
  std::vector<Reader> readers;
  for (const std::int32_t node : nodes) readers.push_back({NodeId{node}, 100 - node});
  return readers;
}

/// "0: 1 2, 2: 3": who passes a version on to whom.
std::string ways(ReaderTree& tree, const std::vector<std::int32_t>& nodes, std::int32_t home) {
  const std::vector<Reader> readers = readers_on(nodes);
  std::string text;
  const auto add = [&](std::int32_t node) {
    const protocol::Route route = tree.route(readers, NodeId{home}, NodeId{node});
    if (route.to.empty()) return;
    text += (text.empty() ? "" : ", ") + std::to_string(node) + ":";
    for (const Reader& to : route.to) text += " " + std::to_string(to.node.value());
  };
  add(home);
  for (const std::int32_t node : nodes) add(node);
  return text;
}

std::vector<std::int32_t> each_its_own(std::int32_t nodes) {
  std::vector<std::int32_t> hosts(static_cast<std::size_t>(nodes));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

}  // namespace

TEST(ReaderTree, goes_from_the_home_to_all_where_few_read) {
  ReaderTree tree(each_its_own(5), {.flat_max = 4});
  EXPECT_EQ(ways(tree, {3, 1, 4, 0}, 2), "2: 3 1 4 0");
}

TEST(ReaderTree, is_a_chain_in_the_order_of_first_reads) {
  ReaderTree tree(each_its_own(5), {.flat_max = 0});
  EXPECT_EQ(ways(tree, {3, 1, 4, 0}, 2), "2: 3, 3: 1, 1: 4, 4: 0");
}

TEST(ReaderTree, is_two_chains_that_take_turns_where_many_read) {
  ReaderTree tree(each_its_own(7), {.flat_max = 0, .one_chain_max = 5});
  EXPECT_EQ(ways(tree, {5, 1, 4, 0, 3}, 2), "2: 5, 5: 1, 1: 4, 4: 0, 0: 3");
  EXPECT_EQ(ways(tree, {5, 1, 4, 0, 3, 6}, 2), "2: 5 1, 5: 4, 1: 0, 4: 3, 0: 6");
}

TEST(ReaderTree, brings_a_version_to_each_host_once) {
  ReaderTree flat({0, 0, 1, 1, 2, 2}, {.flat_max = all});
  EXPECT_EQ(ways(flat, {2, 4, 3, 1, 5}, 0), "0: 2 4 1, 2: 3, 4: 5");
  ReaderTree chain({0, 0, 1, 1, 2, 2}, {.flat_max = 0});
  EXPECT_EQ(ways(chain, {2, 4, 3, 1, 5}, 0), "0: 2 1, 2: 4 3, 4: 5");
}

TEST(ReaderTree, goes_from_the_home_to_all_whatever_hosts_where_that_is_wanted) {
  ReaderTree tree = ReaderTree::of(ReaderWay::home, {0, 0, 0, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(ways(tree, {1, 2, 3, 4, 5, 6, 7, 8}, 0), "0: 1 2 3 4 5 6 7 8");
}

TEST(ReaderTree, keeps_the_priorities_of_readers) {
  ReaderTree tree(each_its_own(3), {.flat_max = all});
  EXPECT_EQ(tree.route(readers_on({2, 0}), NodeId{1}, NodeId{1}).to, readers_on({2, 0}));
}

TEST(ReaderTree, gives_each_reader_the_version_once_from_one_that_reads_it_before) {
  for (const std::uint64_t seed : simulation::seeds(2000)) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    const std::size_t nodes = 2 + below(40);
    const std::size_t host_count = 1 + below(nodes);
    std::vector<std::int32_t> hosts;
    for (std::size_t n = 0; n < nodes; ++n) {
      hosts.push_back(static_cast<std::int32_t>(below(host_count)));
    }
    std::vector<std::int32_t> order = each_its_own(static_cast<std::int32_t>(nodes));
    std::shuffle(order.begin(), order.end(), random);
    const NodeId home{order.back()};
    order.resize(below(nodes));
    ReaderTree tree(hosts, {.flat_max = static_cast<std::int32_t>(below(8)),
                            .one_chain_max = static_cast<std::int32_t>(below(20))});
    const std::vector<Reader> readers = readers_on(order);
    std::vector<NodeId> holders{home};
    std::set<NodeId> served;
    std::size_t between_hosts = 0;
    for (std::size_t h = 0; h <= readers.size(); ++h) {
      const NodeId holder = h == 0 ? home : readers[h - 1].node;
      if (h > 0) {
        const NodeId from = tree.route(readers, home, holder).from;
        ASSERT_NE(std::find(holders.begin(), holders.end(), from), holders.end())
            << simulation::replay_hint(seed);
        holders.push_back(holder);
        const auto host = [&](NodeId n) { return hosts[static_cast<std::size_t>(n.value())]; };
        between_hosts += host(from) != host(holder) ? 1U : 0U;
      }
      for (const Reader& to : tree.route(readers, home, holder).to) {
        ASSERT_TRUE(served.insert(to.node).second) << simulation::replay_hint(seed);
        ASSERT_EQ(tree.route(readers, home, to.node).from, holder) << simulation::replay_hint(seed);
      }
    }
    ASSERT_EQ(served.size(), readers.size()) << simulation::replay_hint(seed);
    std::set<std::int32_t> others;
    for (const Reader& reader : readers) {
      others.insert(hosts[static_cast<std::size_t>(reader.node.value())]);
    }
    others.erase(hosts[static_cast<std::size_t>(home.value())]);
    ASSERT_EQ(between_hosts, others.size()) << simulation::replay_hint(seed);
  }
}

}  // namespace heddle
