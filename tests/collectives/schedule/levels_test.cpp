#include "node-runtime/collectives/schedule/levels.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle::collectives {
namespace {

template <class Key>
std::int32_t changes(const Places& places, const Key& key) {
  std::int32_t count = 0;
  for (std::size_t i = 1; i < places.order().size(); ++i) {
    if (key(places[places.order()[i - 1]]) != key(places[places.order()[i]])) ++count;
  }
  return count;
}

TEST(Places, are_in_an_order_that_enters_each_host_socket_switch_and_gpu_once) {
  std::mt19937 random(46);
  for (int k = 0; k < 200; ++k) {
    const std::vector<RankPlace> all =
        random_places(random, 1 + static_cast<std::int32_t>(random() % 40));
    const Places places(all);
    EXPECT_TRUE(places.is_valid());
    const auto expect_once = [&](const auto& key) {
      std::set<decltype(key(all.front()))> kinds;
      for (const RankPlace& place : all) kinds.insert(key(place));
      EXPECT_EQ(changes(places, key), std::ssize(kinds) - 1);
    };
    expect_once([](const RankPlace& p) { return p.host; });
    expect_once([](const RankPlace& p) { return std::tuple(p.host, p.socket); });
    expect_once([](const RankPlace& p) { return std::tuple(p.host, p.socket, p.pci_switch); });
    expect_once(
        [](const RankPlace& p) { return std::tuple(p.host, p.socket, p.pci_switch, p.gpu); });
  }
}

TEST(Places, by_the_names_of_hosts_are_the_same_for_the_same_name) {
  const std::vector<std::string> names{"b", "a", "b"};
  const Places places = places_on_hosts(names, 5);
  std::vector<std::int32_t> hosts;
  for (std::int32_t r = 0; r < places.size(); ++r) {
    hosts.push_back(places[Rank{r}].host);
    EXPECT_EQ(places[Rank{r}].gpu, RankPlace::no_gpu);
  }
  EXPECT_EQ(hosts, (std::vector<std::int32_t>{0, 1, 0, 0, 0})) << "no name: on the first host";
  EXPECT_EQ(places_on_hosts({}, 1).size(), 1) << "a node on its own has no names";
}

TEST(Places, of_a_subset_are_those_of_its_members_in_their_order) {
  std::mt19937 random(7);
  const Places world(random_places(random, 20));
  const std::vector<Rank> members{Rank{7}, Rank{3}, Rank{19}};
  const Places some = world.subset(members);
  ASSERT_EQ(some.size(), 3);
  for (std::int32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(some[Rank{r}], world[members[static_cast<std::size_t>(r)]]);
  }
  EXPECT_TRUE(some.is_valid());
  EXPECT_THROW(static_cast<void>(world.subset(std::vector{Rank{3}, Rank{3}})), Error);
  EXPECT_THROW(static_cast<void>(world.subset(std::vector{Rank{20}})), Error);
  EXPECT_THROW(static_cast<void>(world.subset(std::vector{Rank{-1}})), Error);
  EXPECT_THROW(static_cast<void>(world.subset({})), Error);
}

/// All groups of an operation, each as its members see it.
std::map<std::tuple<Level, Rank>, LevelGroup> all_groups(const Levels& levels, std::int32_t ranks,
                                                         Rank root) {
  std::map<std::tuple<Level, Rank>, LevelGroup> all;
  for (Rank rank{0}; rank.value() < ranks; ++rank) {
    for (const LevelGroup& group : levels.groups_of(rank, root)) {
      const auto [known, is_new] = all.emplace(std::tuple(group.level, group.leader), group);
      EXPECT_EQ(known->second.members, group.members) << "two members see two groups";
      EXPECT_NE(std::ranges::find(group.members, rank), group.members.end());
      EXPECT_GT(group.members.size(), 1U);
    }
  }
  return all;
}

TEST(Levels, make_one_tree_from_the_root_whatever_the_ranks_are) {
  std::mt19937 random(46);
  for (int k = 0; k < 300; ++k) {
    const auto ranks = static_cast<std::int32_t>(1 + random() % 40);
    const Places places(random_places(random, ranks));
    const auto sockets = k % 2 == 0 ? Levels::Sockets::ignored : Levels::Sockets::counted;
    const Levels levels(places, sockets);
    ASSERT_TRUE(levels.is_valid());
    const Rank root{static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(ranks))};
    const auto groups = all_groups(levels, ranks, root);
    // Each rank but the root comes to the message in exactly one group that it does not lead.
    std::map<Rank, std::int32_t> comes_in;
    for (const auto& [key, group] : groups) {
      for (const Rank rank : group.members) {
        if (rank != group.leader) ++comes_in[rank];
        // By the order of places.
        EXPECT_EQ(group.at(group.position(rank)), rank);
      }
      EXPECT_EQ(group.position(group.leader), 0);
      for (const Rank rank : group.members) {
        if (group.level == Level::gpu) {
          EXPECT_EQ(places[rank].gpu, places[group.leader].gpu);
          EXPECT_NE(places[rank].gpu, RankPlace::no_gpu);
        }
        if (group.level == Level::socket) {
          EXPECT_EQ(places[rank].socket, places[group.leader].socket);
          EXPECT_EQ(sockets, Levels::Sockets::counted);
        }
        if (group.level != Level::network) {
          EXPECT_EQ(places[rank].host, places[group.leader].host);
        }
      }
    }
    EXPECT_EQ(std::ssize(comes_in), ranks - 1);
    EXPECT_FALSE(comes_in.contains(root));
    for (const auto& [rank, count] : comes_in) EXPECT_EQ(count, 1) << rank.value();
    // The network has one member of each host.
    std::set<std::int32_t> hosts;
    for (Rank rank{0}; rank.value() < ranks; ++rank) hosts.insert(places[rank].host);
    const auto network = std::ranges::find_if(
        groups, [](const auto& one) { return std::get<0>(one.first) == Level::network; });
    EXPECT_EQ(network != groups.end(), hosts.size() > 1);
    if (network != groups.end()) {
      EXPECT_EQ(network->second.members.size(), hosts.size());
      EXPECT_EQ(network->second.leader, root);
    }
  }
}

TEST(Levels, without_a_root_are_led_by_the_lowest_ranks) {
  // Two hosts, two GPUs each, two ranks on a GPU, numbered by turns over the hosts.
  std::vector<RankPlace> all;
  for (std::int32_t r = 0; r < 8; ++r) all.push_back({.host = r % 2, .gpu = r / 2 % 2});
  const Levels levels{Places(all)};
  const std::vector<LevelGroup> of_two = levels.groups_of(Rank{2});
  ASSERT_EQ(of_two.size(), 2U);
  EXPECT_EQ(of_two[0].level, Level::gpu);
  EXPECT_EQ(of_two[0].members, (std::vector{Rank{2}, Rank{6}}));
  EXPECT_EQ(of_two[1].level, Level::host);
  EXPECT_EQ(of_two[1].members, (std::vector{Rank{0}, Rank{2}}));
  EXPECT_EQ(of_two[1].leader, Rank{0});
  EXPECT_EQ(levels.groups_of(Rank{0}).size(), 3U);
  EXPECT_EQ(levels.groups_of(Rank{7}).size(), 1U);
  // The root takes the place of those who led its groups.
  const std::vector<LevelGroup> of_root = levels.groups_of(Rank{7}, Rank{7});
  ASSERT_EQ(of_root.size(), 3U);
  EXPECT_EQ(of_root[1].members, (std::vector{Rank{1}, Rank{7}}));
  EXPECT_EQ(of_root[2].members, (std::vector{Rank{0}, Rank{7}}));
  EXPECT_THROW(static_cast<void>(levels.groups_of(Rank{0}, Rank{8})), Error);
}

TEST(Levels, of_one_member_vanish) {
  const Levels alone{Places({RankPlace{}})};
  EXPECT_TRUE(alone.groups_of(Rank{0}).empty());
  // Four hosts with a rank each: only the network is left.
  std::vector<RankPlace> all;
  for (std::int32_t r = 0; r < 4; ++r) all.push_back({.host = 3 - r});
  const Levels hosts{Places(all)};
  const std::vector<LevelGroup> groups = hosts.groups_of(Rank{1});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].level, Level::network);
  EXPECT_EQ(groups[0].members, (std::vector{Rank{3}, Rank{2}, Rank{1}, Rank{0}}));
}

}  // namespace
}  // namespace heddle::collectives
