/// The direct way, and what ranks do where it cannot be taken: whole executions of all ranks of a
/// group, as their planner makes them.

#include "node-runtime/collectives/call/direct_call.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/group_calls.hpp"
#include "tests/collectives/call/device_ranks.hpp"

namespace heddle::collectives {
namespace {

constexpr std::size_t doubles = 10'000;

/// An operation under way on all ranks.
struct Begun {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<std::unique_ptr<Doubles>> inputs{};
  std::vector<std::unique_ptr<Doubles>> outputs{};
  std::vector<std::unique_ptr<Execution>> executions{};
  std::vector<std::unique_ptr<RankCourier>> couriers{};
};

/// A group on one host.
class TestGroup {
 public:
  explicit TestGroup(std::int32_t ranks, std::uint32_t seed = 1, bool maps_slowly = false)
      : device_(make_device()),
        devices_(*device_),
        table(*device_, seed),
        ranks_(ranks),
        random_(seed) {
    std::vector<NodeId> nodes;
    for (std::int32_t r = 0; r < ranks; ++r) nodes.emplace_back(r);
    // A GPU on which turns are dear: the direct way is predicted to be fastest.
    RankPlace place;
    place.gpu = 0;
    const Places places(std::vector<RankPlace>(static_cast<std::size_t>(ranks), place));
    CollectiveRates rates;
    rates.devices.turn_s = 140e-6;
    for (std::int32_t r = 0; r < ranks; ++r) {
      planners_.push_back(std::make_unique<Planner>(Rank{r}, places, rates, &devices_));
      planners_.back()->set_direct({Rank{r}, nodes, std::make_shared<KnownMemory>(), maps_slowly});
    }
  }

  /// Memory of the ranks in `on_host` is there, the others' on the device.
  [[nodiscard]] Begun begin(CollectiveKind kind, const std::string& algorithm = "",
                            bool is_in_place = false, const std::set<std::int32_t>& on_host = {}) {
    Begun begun{kind};
    const std::int64_t number = ++operations_;
    const auto blocks = static_cast<std::size_t>(kind == CollectiveKind::all_gather ? ranks_ : 1);
    for (std::int32_t r = 0; r < ranks_; ++r) {
      const bool is_on_host = on_host.contains(r);
      std::vector<double> own(doubles);
      for (std::size_t i = 0; i < doubles; ++i) own[i] = value(r, i);
      begun.inputs.push_back(std::make_unique<Doubles>(*device_, own, is_on_host));
      begun.outputs.push_back(
          is_in_place ? std::make_unique<Doubles>(*device_, own, is_on_host)
                      : std::make_unique<Doubles>(
                            *device_, std::vector<double>(doubles * blocks, -1), is_on_host));
    }
    for (std::int32_t r = 0; r < ranks_; ++r) {
      const auto k = static_cast<std::size_t>(r);
      const Outgoing from{begun.inputs[k]->address(), doubles, Scalar::float64};
      const Incoming to{begun.outputs[k]->address(), doubles, Scalar::float64};
      CollectiveOptions options;
      options.algorithm = algorithm;
      const auto sum = ReduceOperation::sum();
      Call call = kind == CollectiveKind::all_gather ? all_gather_call(from, to, options)
                  : is_in_place                      ? all_reduce_in_place_call(to, sum, options)
                                                     : all_reduce_call(from, to, sum, options);
      begun.couriers.push_back(std::make_unique<RankCourier>(table, r, [](std::int64_t) {}));
      begun.executions.push_back(std::make_unique<Execution>(
          std::move(planners_[k]->plan(call, number).task), *begun.couriers.back()));
      begun.couriers.back()->tell([execution = begun.executions.back().get()](std::int64_t ticket) {
        try {
          execution->ended(ticket);
        } catch (const Error& error) {
          execution->fail(error);
        }
      });
    }
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < begun.executions.size(); ++r) order.push_back(r);
    std::ranges::shuffle(order, random_);
    for (const std::size_t r : order) {
      begun.executions[r]->begin();
      for (std::uint32_t k = 0; k < random_() % 5; ++k) static_cast<void>(table.step());
    }
    return begun;
  }

  /// All of it happens. Then every rank has gone the same way: "direct", "gsb" or "steps", and
  /// why not the direct one; or the same error.
  [[nodiscard]] std::string end(Begun& begun) {
    while (table.step()) {
    }
    std::set<std::string> ways;
    for (std::int32_t r = 0; r < ranks_; ++r) {
      Execution& execution = *begun.executions[static_cast<std::size_t>(r)];
      EXPECT_TRUE(execution.is_over()) << "rank " << r << " waits for " << execution.waits_for();
      if (execution.failure()) {
        ways.insert(execution.failure()->what());
        continue;
      }
      if (!execution.is_over()) continue;
      execution.finish_task();
      const std::string way = execution.way().empty() ? "steps" : execution.way();
      ways.insert(way.substr(0, way.find(',')) +
                  (execution.why_not().empty() ? "" : "; " + execution.why_not()));
      check(begun, r);
    }
    EXPECT_EQ(ways.size(), 1U) << fmt::format("{}", fmt::join(ways, " | "));
    return ways.empty() ? "nothing" : *ways.begin();
  }
  [[nodiscard]] std::string run(CollectiveKind kind = CollectiveKind::all_reduce,
                                const std::string& algorithm = "", bool is_in_place = false,
                                const std::set<std::int32_t>& on_host = {}) {
    Begun begun = begin(kind, algorithm, is_in_place, on_host);
    return end(begun);
  }

 private:
  void check(const Begun& begun, std::int32_t rank) const {
    const std::vector<double>& got = begun.outputs[static_cast<std::size_t>(rank)]->get();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double wanted = begun.kind == CollectiveKind::all_gather
                                ? value(static_cast<std::int32_t>(i / doubles), i % doubles)
                                : bracket(0, ranks_, i);
      if (std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(wanted)) continue;
      ADD_FAILURE() << "rank " << rank << ", element " << i << ": " << got[i] << ", not " << wanted;
      return;
    }
  }

  std::unique_ptr<Device> device_;
  OneDevice devices_;

 public:
  Table table;

 private:
  std::int32_t ranks_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Planner>> planners_;
  std::int64_t operations_ = 0;
};

std::uint8_t of_its_own(std::int32_t rank) {
  return static_cast<std::uint8_t>(rank + 1);
}

constexpr const char* refusal =
    "direct: rank {} cannot map all memory: this one is not to be mapped";

}  // namespace

TEST(DirectWay, is_taken_where_all_memory_can_be_mapped) {
  for (const std::int32_t ranks : {2, 3, 4, 6}) {
    TestGroup one(ranks);
    EXPECT_EQ(one.run(), "direct");
    EXPECT_EQ(one.run(CollectiveKind::all_gather), "direct");
    EXPECT_EQ(one.run(CollectiveKind::all_reduce, "", true), "direct");
    TestGroup several(ranks);
    several.table.device_of = of_its_own;
    EXPECT_EQ(several.run(), "direct");
    EXPECT_EQ(several.run(CollectiveKind::all_reduce, "", true), "direct");
  }
}

TEST(DirectWay, gives_way_to_a_shared_buffer_where_the_one_device_cannot_map_a_members_memory) {
  for (const std::int32_t ranks : {2, 3, 4, 6}) {
    TestGroup group(ranks);
    group.table.refuses = {0};
    const std::string why = fmt::format(refusal, 0);
    for (const bool is_in_place : {false, true}) {
      EXPECT_EQ(group.run(CollectiveKind::all_reduce, "", is_in_place), "gsb; " + why);
    }
    EXPECT_EQ(group.table.refusals, 1) << "what is known to be refused is not tried again";
    // Another allocation is another matter.
    group.table.allocation = 2;
    EXPECT_EQ(group.run(CollectiveKind::all_gather), "steps; " + why) << "has no buffer";
    EXPECT_EQ(group.table.refusals, 2);
    group.table.refuses.clear();
    group.table.allocation = 3;
    EXPECT_EQ(group.run(), "direct");
  }
}

TEST(DirectWay, gives_way_to_messages_where_one_of_several_devices_cannot_map_a_members_memory) {
  for (const std::int32_t ranks : {2, 3, 4, 6}) {
    TestGroup group(ranks);
    group.table.device_of = of_its_own;
    group.table.refuses = {ranks - 1};
    for (const bool is_in_place : {false, true}) {
      EXPECT_EQ(group.run(CollectiveKind::all_reduce, "", is_in_place),
                "steps; " + fmt::format(refusal, ranks - 1));
    }
    EXPECT_EQ(group.table.refusals, 1);
  }
}

TEST(DirectWay, that_is_asked_for_fails_on_all_ranks_where_it_cannot_be_taken) {
  TestGroup group(3);
  group.table.refuses = {0};
  const std::string what = "all_reduce of 10000 elements of float64 with sum: 'direct' cannot be ";
  EXPECT_EQ(group.run(CollectiveKind::all_reduce, "direct"),
            what + "taken: rank 0 cannot map all memory: this one is not to be mapped");
}

TEST(DirectWay, maps_new_memory_when_it_comes_again_where_mapping_takes_long) {
  for (const bool is_one_device : {true, false}) {
    TestGroup group(3, 1, true);
    if (!is_one_device) group.table.device_of = of_its_own;
    const std::string why =
        "; direct: the memory is new to the group, and is mapped when it comes again";
    EXPECT_EQ(group.run(), (is_one_device ? "gsb" : "steps") + why);
    EXPECT_EQ(group.run(), "direct");
    EXPECT_EQ(group.run(), "direct");
    group.table.allocation = 2;
    EXPECT_EQ(group.run(CollectiveKind::all_reduce, "direct"), "direct") << "asked for";
  }
}

TEST(DirectWay, is_left_where_a_member_has_its_memory_on_the_host) {
  TestGroup group(4);
  EXPECT_EQ(group.run(CollectiveKind::all_reduce, "", false, {2}),
            "steps; direct: not all ranks have their memory on a device whose memory processes can "
            "share");
  group.table.is_shareable = false;
  EXPECT_NE(group.run(), "direct");
}

/// Some devices may have written by then.
TEST(DirectWay, is_left_where_memory_cannot_be_mapped_any_more_unless_inputs_may_be_lost) {
  TestGroup group(3);
  group.table.device_of = of_its_own;
  EXPECT_EQ(group.run(), "direct");
  group.table.refuses = {1};
  EXPECT_EQ(group.run(), "steps; " + fmt::format(refusal, 1));
  group.table.refuses.clear();
  group.table.allocation = 2;
  EXPECT_EQ(group.run(CollectiveKind::all_reduce, "", true), "direct");
  group.table.refuses = {1};
  EXPECT_EQ(group.run(CollectiveKind::all_reduce, "", true),
            "all_reduce of 10000 elements of float64 with sum, in place: memory that could be "
            "mapped cannot "
            "be any more: rank 1 cannot map all memory: this one is not to be mapped");
}

/// Ranks hear of the ends of operations in different orders, and must not use what others have not
/// heard yet.
TEST(DirectWay, of_operations_that_overlap_on_the_same_memory_is_the_same_on_all_ranks) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::int32_t ranks = 2 + static_cast<std::int32_t>(seed % 3);
    TestGroup group(ranks, seed, seed % 2 == 0);
    if (seed % 4 < 3) group.table.device_of = of_its_own;
    if (seed % 5 == 0) group.table.refuses = {ranks - 1};
    for (int round = 0; round < 3; ++round) {
      std::vector<Begun> begun;
      for (int k = 0; k < 4; ++k) begun.push_back(group.begin(CollectiveKind::all_reduce));
      for (Begun& one : begun) static_cast<void>(group.end(one));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(KnownMemory, is_what_all_operations_up_to_one_have_found_out) {
  using Knowledge = KnownMemory::Knowledge;
  KnownMemory known;
  EXPECT_EQ(known.heard_before(1), 0);
  known.begins(1);
  known.begins(3);
  EXPECT_EQ(known.heard_before(3), 0);
  known.learn(3, 7, {Knowledge::refused, "why"});
  known.ended(3);
  EXPECT_EQ(known.heard_before(4), 0) << "1 is under way";
  known.learn(1, 7, {Knowledge::mapped, {}});
  known.ended(1);
  EXPECT_EQ(known.heard_before(3), 2);
  EXPECT_EQ(known.heard_before(4), 3);
  EXPECT_EQ(known.of(7, 0).knowledge, Knowledge::unknown);
  EXPECT_EQ(known.of(7, 2).knowledge, Knowledge::mapped);
  EXPECT_EQ(known.of(7, 3).knowledge, Knowledge::refused);
  EXPECT_EQ(known.of(7, 3).why, "why");
  EXPECT_EQ(known.of(8, 3).knowledge, Knowledge::unknown);
  EXPECT_EQ(known.of(7, 5000).knowledge, Knowledge::unknown) << "long ago";
}

}  // namespace heddle::collectives
