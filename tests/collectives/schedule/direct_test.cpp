#include "node-runtime/collectives/schedule/direct.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace heddle::collectives {
namespace {

/// What every block holds: inputs by name, outputs by what was put into them.
using Memory = std::map<DirectPlace, std::string>;

std::string name_of_input(int rank, int block) {
  return fmt::format("{}.{}", rank, block);
}

/// Does all jobs, last one first: their order does not matter.
Memory done(CollectiveKind kind, int ranks, int root, bool is_in_place, Memory memory) {
  const std::vector<DirectJob> jobs = direct_jobs(kind, ranks, Rank{root}, is_in_place);
  std::set<DirectPlace> written;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    std::string value;
    for (const DirectPlace& from : job->from) {
      if (!memory.contains(from)) ADD_FAILURE() << "nothing is in a block that is read";
      value += (value.empty() ? "" : "+") + memory[from];
    }
    for (const DirectPlace& to : job->to) {
      EXPECT_TRUE(written.insert(to).second) << "a block is written twice";
      EXPECT_TRUE(to.is_output);
      memory[to] = value;
    }
  }
  return memory;
}

/// Blocks of all ranks' inputs.
Memory inputs(int ranks, int blocks) {
  Memory memory;
  for (int r = 0; r < ranks; ++r) {
    for (int b = 0; b < blocks; ++b) memory[{Rank{r}, false, b}] = name_of_input(r, b);
  }
  return memory;
}

/// "0.b+1.b+..." of ranks [0, end).
std::string sum(int end, int block) {
  std::string text;
  for (int r = 0; r < end; ++r) text += (r == 0 ? "" : "+") + name_of_input(r, block);
  return text;
}

std::string at(const Memory& memory, int rank, int block) {
  const auto found = memory.find({Rank{rank}, true, block});
  return found == memory.end() ? "" : found->second;
}

}  // namespace

TEST(DirectJobs, move_every_block_to_where_it_belongs) {
  for (int ranks = 1; ranks <= direct_ranks_max; ++ranks) {
    for (int root = 0; root < ranks; root += 3) {
      SCOPED_TRACE(fmt::format("{} ranks, root {}", ranks, root));
      const Memory one = inputs(ranks, 1);
      const Memory many = inputs(ranks, ranks);
      const Memory broadcast = done(CollectiveKind::broadcast, ranks, root, false, one);
      const Memory scattered = done(CollectiveKind::scatter, ranks, root, false, many);
      const Memory gathered = done(CollectiveKind::gather, ranks, root, false, one);
      const Memory all = done(CollectiveKind::all_gather, ranks, root, false, one);
      const Memory exchanged = done(CollectiveKind::all_to_all, ranks, root, false, many);
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(at(broadcast, r, 0), r == root ? "" : name_of_input(root, 0));
        EXPECT_EQ(at(scattered, r, 0), name_of_input(root, r));
        EXPECT_EQ(at(gathered, root, r), name_of_input(r, 0));
        EXPECT_EQ(at(gathered, (root + 1) % ranks, r), ranks == 1 ? name_of_input(r, 0) : "");
        for (int other = 0; other < ranks; ++other) {
          EXPECT_EQ(at(all, r, other), name_of_input(other, 0));
          EXPECT_EQ(at(exchanged, r, other), name_of_input(other, r));
        }
      }
    }
  }
}

TEST(DirectJobs, in_place_leave_the_own_block) {
  constexpr int ranks = 5;
  Memory memory;
  for (int r = 0; r < ranks; ++r) memory[{Rank{r}, true, r}] = name_of_input(r, 0);
  const Memory all = done(CollectiveKind::all_gather, ranks, 0, true, memory);
  for (int r = 0; r < ranks; ++r) {
    for (int other = 0; other < ranks; ++other) {
      EXPECT_EQ(at(all, r, other), name_of_input(other, 0));
    }
  }
  for (const DirectJob& job : direct_jobs(CollectiveKind::all_gather, ranks, Rank{0}, true)) {
    for (const DirectPlace& to : job.to) EXPECT_NE(to, job.from.front());
  }
}

TEST(DirectJobs, reduce_in_the_order_of_ranks) {
  for (int ranks = 1; ranks <= direct_ranks_max; ++ranks) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    const int root = ranks / 2;
    const Memory one = inputs(ranks, 1);
    const Memory reduced = done(CollectiveKind::reduce, ranks, root, false, one);
    const Memory everywhere = done(CollectiveKind::all_reduce, ranks, root, false, one);
    const Memory blocks =
        done(CollectiveKind::reduce_scatter, ranks, root, false, inputs(ranks, ranks));
    const Memory prefixes = done(CollectiveKind::scan, ranks, root, false, one);
    const Memory before = done(CollectiveKind::exclusive_scan, ranks, root, false, one);
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(at(reduced, r, 0), r == root ? sum(ranks, 0) : "");
      EXPECT_EQ(at(everywhere, r, 0), sum(ranks, 0));
      EXPECT_EQ(at(blocks, r, 0), sum(ranks, r));
      EXPECT_EQ(at(prefixes, r, 0), sum(r + 1, 0));
      EXPECT_EQ(at(before, r, 0), sum(r, 0));
    }
  }
}

TEST(DirectJobs, of_a_barrier_are_none) {
  EXPECT_TRUE(direct_jobs(CollectiveKind::barrier, 4, Rank{0}, false).empty());
}

}  // namespace heddle::collectives
