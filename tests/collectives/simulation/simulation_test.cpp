/// Groups of up to 256 nodes on one thread, in hostile orders of everything.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <memory>

#include "tests/collectives/simulation/simulated_run.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::testing {
namespace {

void run_seeds(std::uint64_t count, Fault fault) {
  FiberStacks stacks;
  std::int64_t clock_moves = 0;
  for (const std::uint64_t seed : simulation::seeds(count)) {
    auto run = std::make_unique<SimulatedRun>(seed, fault, stacks, simulation::one_seed_only());
    const std::string wrong = run->run();
    EXPECT_EQ(wrong, "") << simulation::replay_hint(seed);
    clock_moves += run->clock_moves();
    if (!run->has_callers_left()) continue;
    // A caller that never returns cannot be taken off its stack.
    static_cast<void>(run.release());
    break;
  }
  ::testing::Test::RecordProperty("clock_moves", static_cast<int>(clock_moves));
}

TEST(SimulatedGroups, EndWithTheirValuesInAnyOrderOfEvents) {
  run_seeds(2000, Fault::none);
}

TEST(SimulatedGroups, AllMembersHearOfAWrongCall) {
  run_seeds(400, Fault::wrong_call);
}

TEST(SimulatedGroups, AllMembersHearOfCallsThatDoNotFit) {
  run_seeds(400, Fault::misfit);
}

TEST(SimulatedGroups, ALostNodeEndsItsGroupsAndNoOthers) {
  run_seeds(600, Fault::lost_node);
}

TEST(SimulatedGroups, AllMembersHearOfADeviceThatFails) {
  run_seeds(400, Fault::device);
}

}  // namespace
}  // namespace heddle::testing
