#include "tests/programs/checks.hpp"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/programs/program_case.hpp"
#include "tests/support/seeds.hpp"

/// Whether mistakes of a program are found: recorded walks with one built in.
namespace heddle::simulation {
namespace {

using Calls = std::vector<Call>;

bool is_announcement(const Call& call) {
  return call.kind == Step::Kind::announce;
}
bool is_task(const Call& call) {
  return call.kind == Step::Kind::append;
}

/// A case with several rows and columns of tiles for every node of a 3 x 2 grid.
ProgramCase roomy_case(std::uint64_t seed, Algorithm algorithm) {
  ProgramCase c(seed, {algorithm});
  c.distribution = {3, 2, 0};
  c.layout = {.rows = 28, .columns = 28, .tile = 4, .strip = 2, .small = 2};
  c.sides = 3;
  c.cluster.nodes = 6;
  c.cluster.places = 1;
  c.cluster.window = 1000;
  c.cluster.extra_blocks = 0;
  return c;
}

/// The call at `index` and the one before it: whether they may change places in a walk. What is
/// announced must have been written; releases stay where they are.
bool may_go_ahead(const Call& announcement, const Call& before) {
  if (before.kind == Step::Kind::announce) return true;
  if (before.kind == Step::Kind::release) return false;
  return std::none_of(before.accesses.begin(), before.accesses.end(), [&](const auto& access) {
    return access.mode != protocol::AccessMode::read &&
           access.tile == announcement.accesses.front().tile;
  });
}

/// Moves every announcement ahead of what is not needed for it.
void announce_early(RecordedJob& job) {
  for (Calls& walk : job.nodes) {
    for (std::size_t i = 1; i < walk.size(); ++i) {
      for (std::size_t k = i; k > 0 && is_announcement(walk[k]) && is_task(walk[k - 1]) &&
                              may_go_ahead(walk[k], walk[k - 1]);
           --k) {
        std::swap(walk[k], walk[k - 1]);
      }
    }
  }
}

class ProgramChecks : public testing::TestWithParam<Algorithm> {
 protected:
  [[nodiscard]] std::string order_defect() {
    const Recording one = case_.record_on_one(lender_.node());
    return SequentialOrder(one.jobs.front(), one.table).check_order(job(), recording_.table);
  }
  [[nodiscard]] std::string tasks_defect() {
    const Recording one = case_.record_on_one(lender_.node());
    return SequentialOrder(one.jobs.front(), one.table).check_tasks(job(), recording_.table);
  }
  [[nodiscard]] RecordedJob& job() { return recording_.jobs.front(); }
  /// The walk with the most calls for which `wanted` holds, and the one of them in the middle.
  template <class Wanted>
  std::pair<Calls&, Calls::iterator> some(Wanted wanted) {
    const auto count = [&](const Calls& w) { return std::count_if(w.begin(), w.end(), wanted); };
    Calls& walk =
        *std::max_element(job().nodes.begin(), job().nodes.end(),
                          [&](const Calls& a, const Calls& b) { return count(a) < count(b); });
    auto left = count(walk) / 2;
    return {walk, std::find_if(walk.begin(), walk.end(),
                               [&](const Call& c) { return wanted(c) && left-- == 0; })};
  }

  HandleLender lender_;
  ProgramCase case_ = roomy_case(1, GetParam());
  Recording recording_ = case_.record(lender_.node());
};

}  // namespace

TEST_P(ProgramChecks, find_nothing_in_the_program_as_it_is) {
  EXPECT_EQ(recording_.defect(), "");
  EXPECT_EQ(tasks_defect(), "");
  EXPECT_EQ(order_defect(), "");
  EXPECT_EQ(check_announcements(job()), "");
  EXPECT_EQ(check_releases(job(), recording_.table), "");
  EXPECT_EQ(case_.run(recording_).failure, "");
}

TEST_P(ProgramChecks, find_a_version_that_is_not_announced) {
  const auto [walk, call] = some(is_announcement);
  const Call lost = *call;
  std::erase_if(walk, [&](const Call& c) {  // with its repetitions
    return is_announcement(c) && c.reader == lost.reader && c.versions == lost.versions &&
           c.accesses.front().tile == lost.accesses.front().tile;
  });

  EXPECT_NE(check_announcements(job()), "");
  EXPECT_EQ(case_.run(recording_).check, Check::progress);
}

TEST_P(ProgramChecks, find_a_version_that_is_announced_to_a_node_that_does_not_read_it) {
  std::string defect;
  for (std::int32_t reader = 0; reader < case_.cluster.nodes && defect.empty(); ++reader) {
    recording_ = case_.record(lender_.node());
    const auto [walk, call] = some(is_announcement);
    call->reader = NodeId{reader};
    defect = check_announcements(job());
  }
  EXPECT_NE(defect, "");
}

TEST_P(ProgramChecks, find_a_task_that_no_node_inserts_and_one_that_is_inserted_twice) {
  const auto [walk, call] = some(is_task);
  const Call twice = *call;
  walk.erase(call);
  EXPECT_NE(tasks_defect(), "");
  walk.push_back(twice);
  EXPECT_EQ(tasks_defect(), "");
  walk.push_back(twice);
  EXPECT_NE(tasks_defect(), "");
}

TEST_P(ProgramChecks, find_a_use_after_the_release) {
  for (Calls& walk : job().nodes) {  // all releases at the beginning
    std::stable_partition(walk.begin(), walk.end(),
                          [](const Call& c) { return c.kind == Step::Kind::release; });
  }
  EXPECT_NE(check_releases(job(), recording_.table), "");
}

TEST_P(ProgramChecks, find_announcements_that_stand_too_early) {
  announce_early(job());

  EXPECT_NE(order_defect(), "");
  EXPECT_EQ(check_announcements(job()), "");  // they are the right ones
}

INSTANTIATE_TEST_SUITE_P(, ProgramChecks,
                         testing::Values(Algorithm::cholesky, Algorithm::solve_cholesky,
                                         Algorithm::subtract_symmetric_product,
                                         Algorithm::subtract_product),
                         [](const auto& a) { return std::string(name(a.param)); });

/// Why it matters where an announcement stands: nodes whose pools are at their minimum can wait for
/// each other.
TEST(AnnouncementsThatStandTooEarly, make_nodes_wait_for_each_other_under_some_seed) {
  if (one_seed_only()) GTEST_SKIP() << "needs many seeds";
  HandleLender lender;
  std::int32_t stuck = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ProgramCase c = roomy_case(seed, Algorithm::cholesky);
    Recording recording = c.record(lender.node());
    announce_early(recording.jobs.front());
    const Outcome outcome = c.run(recording);
    ASSERT_TRUE(outcome.ok || outcome.check == Check::progress) << outcome.failure;
    stuck += outcome.ok ? 0 : 1;
  }
  EXPECT_GT(stuck, 0);
  std::printf("stuck %d\n", stuck);
}

}  // namespace heddle::simulation
