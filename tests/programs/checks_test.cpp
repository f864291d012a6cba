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

/// Whether an announcement may change places with the call before it: other announcements keep
/// their order, and what is announced must have been written.
bool may_go_ahead(const Call& announcement, const Call& before) {
  const protocol::TileId tile = announcement.accesses.front().tile;
  return is_announcement(announcement) && !is_announcement(before) &&
         std::none_of(before.accesses.begin(), before.accesses.end(), [&](const auto& access) {
           return access.tile == tile &&
                  (before.kind == Step::Kind::release || access.mode != protocol::AccessMode::read);
         });
}

/// Moves every announcement ahead of what is not needed for it.
void announce_early(RecordedJob& job) {
  for (Calls& calls : job.nodes) {
    for (std::size_t i = 1; i < calls.size(); ++i) {
      for (std::size_t k = i; k > 0 && may_go_ahead(calls[k], calls[k - 1]); --k) {
        std::swap(calls[k], calls[k - 1]);
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
  /// The node with the most calls for which `wanted` holds, and the middle one of these.
  template <class Wanted>
  std::pair<Calls&, Calls::iterator> some(Wanted wanted) {
    const auto count = [&](const Calls& w) { return std::count_if(w.begin(), w.end(), wanted); };
    Calls& calls =
        *std::max_element(job().nodes.begin(), job().nodes.end(),
                          [&](const Calls& a, const Calls& b) { return count(a) < count(b); });
    auto left = count(calls) / 2;
    return {calls, std::find_if(calls.begin(), calls.end(),
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
  const auto [calls, call] = some(is_announcement);
  const Call lost = *call;
  std::erase_if(calls, [&](const Call& c) {  // with its repetitions
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
    const auto [calls, call] = some(is_announcement);
    call->reader = NodeId{reader};
    defect = check_announcements(job());
  }
  EXPECT_NE(defect, "");
}

TEST_P(ProgramChecks, find_a_task_that_no_node_inserts_and_one_that_is_inserted_twice) {
  const auto [calls, call] = some(is_task);
  const Call twice = *call;
  calls.erase(call);
  EXPECT_NE(tasks_defect(), "");
  calls.push_back(twice);
  EXPECT_EQ(tasks_defect(), "");
  calls.push_back(twice);
  EXPECT_NE(tasks_defect(), "");
}

TEST_P(ProgramChecks, find_a_use_after_the_release) {
  for (Calls& calls : job().nodes) {  // all releases at the beginning
    std::stable_partition(calls.begin(), calls.end(),
                          [](const Call& c) { return c.kind == Step::Kind::release; });
  }
  EXPECT_NE(check_releases(job(), recording_.table), "");
}

TEST_P(ProgramChecks, find_a_task_that_stands_behind_a_later_one) {
  const auto [calls, call] = some(is_task);
  calls.push_back(*call);
  calls.erase(call);
  EXPECT_NE(order_defect(), "");
}

INSTANTIATE_TEST_SUITE_P(, ProgramChecks,
                         testing::Values(Algorithm::lu, Algorithm::solve_cholesky,
                                         Algorithm::subtract_symmetric_product,
                                         Algorithm::subtract_product),
                         [](const auto& a) { return std::string(name(a.param)); });

TEST(EarlyAnnouncements, let_nodes_with_pools_of_the_planned_minimum_advance) {
  HandleLender lender;
  using enum Algorithm;
  for (const Algorithm algorithm : {lu, subtract_symmetric_product, subtract_product}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      ProgramCase c = roomy_case(seed, algorithm);
      c.cluster.window = seed % 2 == 0 ? 1 : 1000;
      Recording recording = c.record(lender.node());
      announce_early(recording.jobs.front());
      const Outcome outcome = c.run(recording);
      ASSERT_TRUE(outcome.ok) << outcome.failure << " seed " << seed;
    }
  }
}

/// Programs that publish what others read.
class Publications : public testing::TestWithParam<Algorithm> {};

TEST_P(Publications, are_missed_when_one_is_lost) {
  HandleLender lender;
  const ProgramCase c = roomy_case(1, GetParam());
  Recording recording = c.record(lender.node());
  RecordedJob& job = recording.jobs.front();
  EXPECT_EQ(check_announcements(job), "");
  for (Calls& calls : job.nodes) {
    const auto is_publication = [](const Call& call) { return call.kind == Step::Kind::publish; };
    const auto lost = std::find_if(calls.begin(), calls.end(), is_publication);
    if (lost == calls.end()) continue;
    const auto version = std::pair(lost->accesses.front().tile, lost->versions.front());
    std::erase_if(calls, [&](const Call& call) {  // with its repetitions
      return is_publication(call) &&
             std::pair(call.accesses.front().tile, call.versions.front()) == version;
    });
    break;
  }
  EXPECT_NE(check_announcements(job), "");
  EXPECT_EQ(c.run(recording).check, Check::progress);
}

INSTANTIATE_TEST_SUITE_P(, Publications,
                         testing::Values(Algorithm::cholesky, Algorithm::qr, Algorithm::apply_q,
                                         Algorithm::solve_cholesky),
                         [](const auto& a) { return std::string(name(a.param)); });

}  // namespace heddle::simulation
