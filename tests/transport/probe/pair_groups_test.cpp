#include "node-runtime/transport/probe/pair_groups.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace heddle {
namespace {

/// A pair whose ways before `best` do not work.
PairReport pair_of(ProbePlace first, ProbePlace second, Nearness nearness, Way best,
                   const std::string& reason = {}) {
  PairReport pair{first, second, nearness, {}};
  bool works = false;
  for (const Way way : ways_between(first, second, nearness)) {
    works = works || way == best;
    pair.attempts.push_back({way, works, works ? "" : reason, 2.0, 10.0});
  }
  return pair;
}

TEST(PairReports, have_the_ways_that_fit_their_places) {
  const ProbePlace host{0, ProbePlace::host};
  using Ways = std::vector<Way>;
  EXPECT_EQ(ways_between(host, {0, 0}, Nearness::node), (Ways{Way::staged, Way::host}));
  EXPECT_EQ(ways_between({0, 0}, {0, 1}, Nearness::node),
            (Ways{Way::peer, Way::staged, Way::host}));
  EXPECT_EQ(ways_between({0, 0}, {1, 0}, Nearness::host),
            (Ways{Way::mapped, Way::staged, Way::host}));
  EXPECT_EQ(ways_between({0, 0}, {1, 0}, Nearness::apart), (Ways{Way::staged, Way::host}));
  EXPECT_EQ(ways_between(host, {1, ProbePlace::host}, Nearness::host), (Ways{Way::host}));
}

TEST(PairReports, are_the_same_after_a_way_through_json) {
  PairReport pair = pair_of({0, 0}, {1, 2}, Nearness::host, Way::staged, "no access");
  const PairReport again = pair_from_json(to_json(pair));
  EXPECT_EQ(to_json(again), to_json(pair));
  EXPECT_TRUE(again.is_valid());
  ASSERT_NE(again.best(), nullptr);
  EXPECT_EQ(again.best()->way, Way::staged);
  EXPECT_EQ(again.attempts[0].reason, "no access");
  EXPECT_EQ(to_json(pair)["way"], "staged");
  pair.attempts.pop_back();
  EXPECT_FALSE(pair.is_valid());
  auto unknown = to_json(again);
  unknown["nearness"] = "elsewhere";
  EXPECT_THROW(static_cast<void>(pair_from_json(unknown)), nlohmann::json::exception);
}

TEST(PairGroups, put_pairs_together_whose_reasons_differ_in_numbers_alone) {
  std::vector<PairReport> pairs;
  for (std::int32_t device = 0; device < 4; ++device) {
    pairs.push_back(
        pair_of({0, device}, {1, device}, Nearness::host, Way::staged,
                fmt::format("device {}: opening 3f{}a00aaaaaaaaaaaaaaaaaaaaaaaaaa: refused", device,
                            device)));
  }
  pairs.push_back(pair_of({0, 0}, {1, 7}, Nearness::host, Way::staged, "something else"));
  const auto groups = group_pairs(pairs);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pairs.size(), 4U);
  EXPECT_EQ(groups[0].kind_count, 5U);
  ASSERT_EQ(groups[0].refused.size(), 1U);
  EXPECT_EQ(groups[0].refused[0].different, 4U);
  EXPECT_EQ(groups[0].refused[0].way, Way::mapped);
  EXPECT_EQ(groups[1].refused[0].reason, "something else");
}

TEST(PairGroups, come_from_near_to_far_and_know_whether_they_are_all) {
  const ProbePlace host{0, ProbePlace::host};
  const std::vector<PairReport> pairs{
      pair_of({0, 0}, {1, 0}, Nearness::apart, Way::staged),
      pair_of({0, 0}, {0, 1}, Nearness::node, Way::peer),
      pair_of(host, {0, 0}, Nearness::node, Way::staged),
      pair_of(host, {0, 1}, Nearness::node, Way::staged),
  };
  const auto groups = group_pairs(pairs);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].hosts, 1);
  EXPECT_EQ(groups[0].pairs.size(), 2U);
  EXPECT_EQ(groups[1].best, Way::peer);
  EXPECT_EQ(groups[2].nearness, Nearness::apart);
  for (const PairGroup& group : groups) EXPECT_EQ(group.kind_count, group.pairs.size());
  EXPECT_EQ(groups[1].rate.median, 10.0);
}

TEST(PairGroups, without_any_way_have_no_best_one) {
  PairReport pair = pair_of({0, 0}, {0, 1}, Nearness::node, Way::host, "broken");
  pair.attempts.back() = {Way::host, false, "worse", 0, 0};
  const auto groups = group_pairs(std::span(&pair, 1));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_FALSE(groups[0].best.has_value());
  EXPECT_EQ(groups[0].refused.size(), 3U);
}

TEST(PairGroups, name_their_places_in_runs) {
  const auto name = [](const std::vector<PairReport>& pairs) {
    return places_of(group_pairs(pairs).front());
  };
  std::vector<PairReport> devices;
  std::vector<PairReport> hosts;
  for (std::int32_t node = 0; node < 2; ++node) {
    for (std::int32_t device = 0; device < 3; ++device) {
      devices.push_back(pair_of({0, device}, {2 + node, device}, Nearness::host, Way::mapped));
      hosts.push_back(
          pair_of({node, ProbePlace::host}, {node, device}, Nearness::node, Way::staged));
    }
  }
  EXPECT_EQ(name(devices), "devices 0..2 of nodes 0, 2..3");
  devices.push_back(pair_of({0, 0}, {4, 5}, Nearness::host, Way::mapped));
  EXPECT_EQ(name(devices), "devices 0..2 of nodes 0, 2..3; device 5 of node 4");
  EXPECT_EQ(name(hosts), "hosts - devices 0..2 of nodes 0..1");
}

TEST(PairGroups, that_are_a_part_of_their_kind_name_both_sides) {
  const std::vector<PairReport> pairs{
      pair_of({0, 0}, {1, 0}, Nearness::host, Way::staged, "refused"),
      pair_of({1, 0}, {2, 0}, Nearness::host, Way::staged, "refused"),
      pair_of({0, 0}, {2, 0}, Nearness::host, Way::mapped),
  };
  const auto groups = group_pairs(pairs);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(places_of(groups[0]), "device 0 of node 1 - device 0 of nodes 0, 2");
  EXPECT_EQ(places_of(groups[1]), "device 0 of node 0 - device 0 of node 2");
  const PairReport pair = pair_of({0, 3}, {1, ProbePlace::host}, Nearness::host, Way::staged);
  EXPECT_EQ(places_of(group_pairs(std::span(&pair, 1)).front()),
            "host of node 1 - device 3 of node 0");
}

TEST(WithoutNumbers, words_stay_and_numbers_and_identities_go) {
  EXPECT_EQ(without_numbers("GPU 12 (NVIDIA H200): bad added"), "GPU # (NVIDIA H200): bad added");
  EXPECT_EQ(without_numbers("4.00 MiB of 00ff3c"), "#.# MiB of #");
  EXPECT_EQ(without_numbers("deadbeefdeadbeefdeadbeef"), "#");
}

}  // namespace
}  // namespace heddle
