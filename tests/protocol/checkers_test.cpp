#include <gtest/gtest.h>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "tests/support/block_ledger.hpp"
#include "tests/support/random_case.hpp"
#include "tests/support/seeds.hpp"

/// A checker that cannot fail checks nothing: each kind of fault is injected into runs that are
/// right without it, and every single one must be found.
namespace heddle::simulation {
namespace {

struct Expectation {
  const char* name;
  Fault fault;
  std::set<Check> found_by;
  std::int32_t share = 4;                      ///< at least one seed in `share` can have the fault
  std::optional<std::int32_t> extra_frames{};  ///< for faults of lent tasks; all seeds lend then

  friend std::ostream& operator<<(std::ostream& out, const Expectation& e) { return out << e.name; }
};

class InjectedFault : public testing::TestWithParam<Expectation> {};

std::string name_of(const testing::TestParamInfo<Expectation>& info) {
  return info.param.name;
}

}  // namespace

TEST_P(InjectedFault, is_found_by_the_check_that_is_meant_for_it) {
  std::int32_t injected = 0;
  const auto all = seeds(300);
  for (const std::uint64_t seed : all) {
    RandomCase random(seed);
    random.cluster.fault = GetParam().fault;
    if (GetParam().extra_frames) {
      random.cluster.placement = Placement::dynamic;
      random.cluster.extra_frames = *GetParam().extra_frames;
    }
    const Outcome outcome = random.run();
    if (!outcome.fault_injected) {
      EXPECT_TRUE(outcome.ok) << outcome.failure << '\n' << replay_hint(seed);
      continue;
    }
    ++injected;
    ASSERT_FALSE(outcome.ok) << "not found\n" << replay_hint(seed);
    EXPECT_TRUE(GetParam().found_by.contains(outcome.check)) << outcome.failure << '\n'
                                                             << replay_hint(seed);
  }
  if (!one_seed_only()) {
    EXPECT_GE(injected, static_cast<std::int32_t>(all.size()) / GetParam().share);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , InjectedFault,
    testing::Values(
        Expectation{"task_runs_twice", Fault::task_runs_twice, {Check::executions}},
        Expectation{
            "task_does_not_run", Fault::task_does_not_run, {Check::executions, Check::reads}},
        Expectation{"task_runs_elsewhere", Fault::task_runs_elsewhere, {Check::place}},
        Expectation{"copy_before_source", Fault::copy_before_source, {Check::reads}},
        Expectation{"copy_report_lost", Fault::copy_report_lost, {Check::progress}},
        Expectation{"payload_corrupted", Fault::payload_corrupted, {Check::reads}},
        Expectation{"payload_lost", Fault::payload_lost, {Check::progress}},
        Expectation{"payload_twice", Fault::payload_twice, {Check::messages}},
        Expectation{"grant_lost", Fault::grant_lost, {Check::progress}},
        Expectation{"block_freed_early", Fault::block_freed_early, {Check::blocks}},
        Expectation{"block_handed_out_twice", Fault::block_handed_out_twice, {Check::blocks}},
        Expectation{"send_repeated", Fault::send_repeated, {Check::messages}},
        Expectation{"sent_from_elsewhere", Fault::sent_from_elsewhere, {Check::place}},
        Expectation{"granted_elsewhere", Fault::granted_elsewhere, {Check::place}},
        Expectation{"fine_task_early", Fault::fine_task_early, {Check::fine_tasks}},
        Expectation{"fine_task_lost", Fault::fine_task_lost, {Check::progress}},
        // Nothing is evicted, which would bring the device to the host's copy.
        Expectation{
            "lent_write_not_left", Fault::lent_write_not_left, {Check::coherence}, 20, 1000},
        Expectation{"lent_task_early", Fault::lent_task_early, {Check::coherence}, 20, 1000},
        Expectation{"device_task_early", Fault::device_task_early, {Check::coherence}, 20, 0}),
    name_of);

TEST(Progress, failure_tells_what_the_oldest_item_of_each_node_waits_for) {
  ProgramWriter w;
  const auto a = w.tile(0, 0);
  const auto b = w.tile(1, 0);
  w.task({w.write(a), w.read(b)});
  SimulatedCluster cluster({.nodes = 2, .extra_blocks = -1}, w.matrices());
  cluster.submit(w.program());

  const Outcome outcome = cluster.run();

  EXPECT_EQ(outcome.check, Check::progress);
  EXPECT_NE(outcome.failure.find("expected from node 1, no block to receive it"), std::string::npos)
      << outcome.failure;
  EXPECT_NE(outcome.failure.find("to node 0 (data present, not granted by its receiver)"),
            std::string::npos)
      << outcome.failure;
}

TEST(BlockLedger, accepts_many_readers_and_then_one_writer) {
  BlockLedger ledger;
  const protocol::BlockRef block{1, 2};
  ledger.begin_read(block, {"reader", 1});
  ledger.begin_read(block, {"reader", 2});
  EXPECT_FALSE(ledger.idle());
  ledger.end_read(block);
  ledger.end_read(block);
  ledger.begin_write(block, {"writer", 3});
  ledger.end_write(block);
  ledger.freed(block);
  EXPECT_TRUE(ledger.idle());
  EXPECT_EQ(ledger.violation(), "");
}

TEST(BlockLedger, names_both_sides_of_every_conflict) {
  const protocol::BlockRef block{1, 2};
  const auto violation = [&](auto act) {
    BlockLedger ledger;
    act(ledger);
    return ledger.violation();
  };
  using L = BlockLedger;
  EXPECT_EQ(violation([&](L& l) {
              l.begin_write(block, {"task", 1});
              l.begin_read(block, {"copy", 2});
            }),
            "copy 2 reads block 2 of pool 1 while task 1 writes it");
  EXPECT_EQ(violation([&](L& l) {
              l.begin_read(block, {"task", 1});
              l.begin_write(block, {"copy", 2});
            }),
            "copy 2 writes block 2 of pool 1 while task 1 reads it");
  EXPECT_EQ(violation([&](L& l) {
              l.begin_write(block, {"task", 1});
              l.begin_write(block, {"task", 2});
            }),
            "task 2 writes block 2 of pool 1 while task 1 writes it");
  EXPECT_EQ(violation([&](L& l) {
              l.begin_read(block, {"task", 1});
              l.freed(block);
            }),
            "block 2 of pool 1 is freed while task 1 reads it");
  EXPECT_EQ(violation([&](L& l) { l.end_read(block); }), "nobody reads block 2 of pool 1");
  EXPECT_EQ(violation([&](L& l) { l.end_write(block); }), "nobody writes block 2 of pool 1");
}

TEST(BlockLedger, knows_the_blocks_that_were_never_given_up) {
  BlockLedger ledger;
  ledger.content({1, 0}) = 5;
  ledger.content({1, 1}) = 6;
  EXPECT_EQ(ledger.not_given_up({{1, 0}}), (protocol::BlockRef{1, 1}));
  ledger.freed({1, 1});
  EXPECT_FALSE(ledger.not_given_up({{1, 0}}).valid());
}

}  // namespace heddle::simulation
