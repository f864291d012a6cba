#include "node-runtime/progress/job_agreement.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/threads/job_record.hpp"
#include "tests/support/seeds.hpp"

namespace heddle {
namespace {

using Status = JobResult::Status;

JobVerdict verdict(std::int32_t job, Status status, std::int64_t info = 0,
                   const std::string& error = {}) {
  JobVerdict made;
  made.job = protocol::JobId{job};
  made.status = static_cast<std::int32_t>(status);
  made.info = info;
  made.error = error;
  return made;
}

/// What the nodes agree on when they report in this order.
JobVerdict agreed(const std::vector<JobVerdict>& of_nodes, const std::vector<int>& order) {
  JobAgreement agreement(static_cast<int>(of_nodes.size()));
  std::optional<JobVerdict> result;
  for (const int node : order) {
    EXPECT_FALSE(result) << "not all nodes have reported";
    result = agreement.drained(of_nodes[static_cast<std::size_t>(node)], node);
    EXPECT_TRUE(agreement.is_valid());
  }
  EXPECT_EQ(agreement.open(), 0U);
  return result.value_or(JobVerdict{});
}

}  // namespace

TEST(JobAgreement, ends_a_job_when_all_nodes_have_drained_it_in_whatever_order) {
  const std::vector<JobVerdict> of_nodes{
      verdict(0, Status::done), verdict(0, Status::numerical_failure, 9),
      verdict(0, Status::numerical_failure, 4), verdict(0, Status::cancelled)};
  std::vector<int> order(of_nodes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    const JobVerdict result = agreed(of_nodes, order);
    EXPECT_EQ(result.status, static_cast<std::int32_t>(Status::numerical_failure));
    EXPECT_EQ(result.info, 4);
  } while (std::ranges::next_permutation(order).found);
}

TEST(JobAgreement, of_nodes_that_failed_alike_it_takes_the_lowest_one) {
  const std::vector<JobVerdict> of_nodes{verdict(0, Status::done),
                                         verdict(0, Status::failed, 0, "of node 1"),
                                         verdict(0, Status::failed, 0, "of node 2")};
  EXPECT_EQ(agreed(of_nodes, {0, 1, 2}).error, "of node 1");
  EXPECT_EQ(agreed(of_nodes, {2, 1, 0}).error, "of node 1");
}

TEST(JobAgreement, tells_apart_jobs_that_overlap) {
  JobAgreement agreement(2);
  EXPECT_FALSE(agreement.drained(verdict(1, Status::done), 0));
  EXPECT_FALSE(agreement.drained(verdict(2, Status::cancelled), 1));
  EXPECT_EQ(agreement.open(), 2U);
  const auto first = agreement.drained(verdict(2, Status::done), 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->job.value(), 2);
  const auto second = agreement.drained(verdict(1, Status::done), 1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->job.value(), 1);
  EXPECT_TRUE(agreement.is_valid());
}

TEST(JobAgreement, refuses_different_jobs_in_one_place_and_names_the_nodes) {
  JobAgreement agreement(3);
  agreement.begun({protocol::JobId{4}, 77}, 2);
  agreement.begun({protocol::JobId{4}, 77}, 0);
  try {
    agreement.begun({protocol::JobId{4}, 78}, 1);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what())
                  .find("nodes 1 and 2 have started different jobs as their "
                        "job 5"),
              std::string::npos)
        << error.what();
  }
}

TEST(JobAgreement, keeps_its_invariant_and_forgets_each_job_in_random_orders) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    std::mt19937_64 random(seed);
    const int nodes = 1 + static_cast<int>(random() % 5);
    const int jobs = 1 + static_cast<int>(random() % 6);
    // Each node begins and drains the jobs one after the other; nodes overtake each other.
    std::vector<int> begun(static_cast<std::size_t>(nodes));
    std::vector<int> drained(static_cast<std::size_t>(nodes));
    JobAgreement agreement(nodes);
    int ended = 0;
    while (ended < jobs) {
      const auto node = static_cast<std::size_t>(random() % static_cast<std::uint64_t>(nodes));
      const int from = static_cast<int>(node);
      if (begun[node] < jobs && random() % 2 == 0) {
        agreement.begun({protocol::JobId{begun[node]++}, 5}, from);
      } else if (drained[node] < begun[node]) {
        if (agreement.drained(verdict(drained[node]++, Status::done), from)) ++ended;
      }
      ASSERT_TRUE(agreement.is_valid()) << simulation::replay_hint(seed);
    }
    EXPECT_EQ(agreement.open(), 0U) << simulation::replay_hint(seed);
  }
}

}  // namespace heddle
