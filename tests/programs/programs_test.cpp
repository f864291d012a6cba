#include <gtest/gtest.h>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/programs/checks.hpp"
#include "tests/programs/program_case.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

class ProductPrograms : public testing::Test {
 protected:
  HandleLender lender_;
};

ProgramCase single(std::uint64_t seed) {
  constexpr std::uint64_t prime =
      19;  // independent of what else follows from the seed's remainders
  static_assert(prime >= algorithm_count);
  return {seed, {static_cast<Algorithm>(seed % prime % algorithm_count)}};
}

/// Two to four programs on the same matrices, in the order of a solve that is checked.
ProgramCase several(std::uint64_t seed) {
  using enum Algorithm;
  if (seed % 4 == 1) {
    if (seed % 5 == 0) return {seed, {qr, subtract_general_product, subtract_transposed_product}};
    if (seed % 3 == 0) return {seed, {qr, apply_q_transposed, solve_upper}};
    return {seed, {qr, apply_q_transposed, seed % 8 == 1 ? apply_q_to_triangle : apply_q}};
  }
  std::vector<Algorithm> jobs{cholesky, solve_cholesky};
  if (seed % 3 == 0) jobs.push_back(subtract_symmetric_product);
  if (seed % 5 == 0) jobs.push_back(subtract_product);
  return {seed, std::move(jobs)};
}

std::string where(const ProgramCase& c, std::uint64_t seed) {
  return '\n' + c.describe() + '\n' + replay_hint(seed);
}

}  // namespace

TEST_F(ProductPrograms, are_walked_by_the_nodes_as_parts_of_one_sequential_program) {
  for (const std::uint64_t seed : seeds(3000)) {
    const ProgramCase c = single(seed);
    const Recording one = c.record_on_one(lender_.node());
    const Recording many = c.record(lender_.node());
    ASSERT_EQ(one.defect(), "") << where(c, seed);
    ASSERT_EQ(many.defect(), "") << where(c, seed);
    const SequentialOrder order(one.jobs.front(), one.table);
    ASSERT_EQ(order.check_tasks(many.jobs.front(), many.table), "") << where(c, seed);
    ASSERT_EQ(order.check_order(many.jobs.front(), many.table), "") << where(c, seed);
  }
}

TEST_F(ProductPrograms, announce_each_version_to_each_node_that_reads_it_and_to_no_other) {
  for (const std::uint64_t seed : seeds(3000)) {
    const ProgramCase c = single(seed);
    const Recording recording = c.record(lender_.node());
    ASSERT_EQ(check_announcements(recording.jobs.front()), "") << where(c, seed);
    ASSERT_EQ(check_releases(recording.jobs.front(), recording.table), "") << where(c, seed);
  }
}

TEST_F(ProductPrograms,
       know_the_readers_of_each_version_as_a_walk_of_the_whole_program_finds_them) {
  using enum Algorithm;
  std::size_t named = 0;
  std::size_t in_trees = 0;  // versions that several nodes read
  const auto all = seeds(600);
  for (const std::uint64_t seed : all) {
    constexpr Algorithm with_readers[] = {
        cholesky, solve_cholesky,     solve_upper,        qr, apply_q,
        qr,       apply_q_transposed, apply_q_to_triangle};
    const Algorithm algorithm = with_readers[seed / 4 % 8];
    ProgramCase c(seed, {algorithm});
    // Grids of one row or column, and more nodes than tiles, are more frequent than by chance.
    if (seed % 4 == 0) c.distribution.grid_rows = 1;
    if (seed % 4 == 1) c.distribution.grid_columns = 1;
    if (seed % 4 == 2) c.distribution.grid_columns = 7;
    c.cluster.nodes = c.distribution.node_count();
    const Recording one = c.record_on_one(lender_.node());
    const Recording many = c.record(lender_.node());
    const SequentialOrder order(one.jobs.front(), one.table);
    const bool has_products = algorithm == solve_cholesky || algorithm == solve_upper;
    ASSERT_EQ(order.check_readers(many.jobs.front(), many.table, has_products), "")
        << where(c, seed);
    for (const auto& [version, readers] : many.jobs.front().readers) {
      named += readers.empty() ? 0U : 1U;
      in_trees += readers.size() > 1 ? 1U : 0U;
    }
  }
  if (one_seed_only()) return;
  EXPECT_GT(named, 10 * all.size());
  EXPECT_GT(in_trees, 5 * all.size());
}

TEST_F(ProductPrograms, leave_the_same_history_in_every_tile_on_every_grid) {
  for (const std::uint64_t seed : seeds(1000)) {
    const ProgramCase c = several(seed);
    ASSERT_EQ(final_contents(c.record(lender_.node())),
              final_contents(c.record_on_one(lender_.node())))
        << where(c, seed);
  }
}

TEST_F(ProductPrograms, run_on_simulated_nodes_as_the_sequential_program_would_under_every_seed) {
  std::set<std::string_view> divided;
  std::int64_t lent = 0;
  const auto all = seeds(3000);
  for (const std::uint64_t seed : all) {
    const ProgramCase c = single(seed);
    const Outcome outcome = c.run(c.record(lender_.node()));
    ASSERT_TRUE(outcome.ok) << outcome.failure << where(c, seed);
    divided.insert(outcome.kernels_divided.begin(), outcome.kernels_divided.end());
    lent += outcome.lent;
  }
  if (std::ssize(all) < 3000) return;  // what follows needs luck
  EXPECT_EQ(divided,
            (std::set<std::string_view>{"potrf", "trsm", "syrk", "gsmm", "geqrt", "tsqrt", "ttqrt",
                                        "unmqr", "unmqr_back", "tsmqr", "tsmqr_back", "ttmqr",
                                        "ttmqr_back", "copy_rows", "copy_triangle"}));
  EXPECT_GT(lent, 100);
}

TEST_F(ProductPrograms, advance_with_pools_of_the_planned_minimum) {
  for (const std::uint64_t seed : seeds(2000)) {
    ProgramCase c = single(seed);
    c.cluster.extra_blocks = 0;
    c.cluster.window = seed % 2 == 0 ? 1 : 1000;
    c.spare_count = 0;
    const Outcome outcome = c.run(c.record(lender_.node()));
    ASSERT_TRUE(outcome.ok) << outcome.failure << where(c, seed);
  }
}

TEST_F(ProductPrograms, run_one_behind_the_other_on_the_same_matrices) {
  for (const std::uint64_t seed : seeds(800)) {
    const ProgramCase c = several(seed);
    const Outcome outcome = c.run(c.record(lender_.node()));
    ASSERT_TRUE(outcome.ok) << outcome.failure << where(c, seed);
  }
}

TEST_F(ProductPrograms, end_with_every_count_right_when_they_are_cancelled_anywhere) {
  for (const std::uint64_t seed : seeds(400)) {
    ProgramCase c = several(seed);
    c.cluster.cancel_probability = 0.003;
    const Outcome outcome = c.run(c.record(lender_.node()));
    ASSERT_TRUE(outcome.ok) << outcome.failure << where(c, seed);
  }
}

}  // namespace heddle::simulation
