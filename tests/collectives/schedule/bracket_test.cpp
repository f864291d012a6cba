#include "node-runtime/collectives/schedule/bracket.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle::collectives {
namespace {

/// The bracket as its definition writes it: "((0 1) 2)".
std::string text_of(std::int32_t begin, std::int32_t count) {
  if (count == 1) return std::to_string(begin);
  std::int32_t left = 1;
  while (2 * left < count) left *= 2;
  return "(" + text_of(begin, left) + " " + text_of(begin + left, count - left) + ")";
}

std::string text_of(const RankRange& range) {
  if (range.size() == 1) return std::to_string(range.begin.value());
  return "(" + text_of(Bracket::left(range)) + " " + text_of(Bracket::right(range)) + ")";
}

/// All ranges of a bracket, the outer ones first.
void collect(const RankRange& range, std::vector<RankRange>& all) {
  all.push_back(range);
  if (range.size() == 1) return;
  collect(Bracket::left(range), all);
  collect(Bracket::right(range), all);
}

std::vector<std::int32_t> bracket_sizes() {
  std::vector<std::int32_t> all{64, 100, 257};
  for (std::int32_t size = 1; size <= 33; ++size) all.push_back(size);
  return all;
}

TEST(Bracket, is_the_balanced_tree_with_the_largest_power_of_two_on_the_left) {
  EXPECT_EQ(text_of(Bracket(1).all()), "0");
  EXPECT_EQ(text_of(Bracket(3).all()), "((0 1) 2)");
  EXPECT_EQ(text_of(Bracket(4).all()), "((0 1) (2 3))");
  EXPECT_EQ(text_of(Bracket(6).all()), "(((0 1) (2 3)) (4 5))");
  for (const std::int32_t size : bracket_sizes()) {
    EXPECT_EQ(text_of(Bracket(size).all()), text_of(0, size));
  }
}

TEST(Bracket, knows_its_ranges_their_parents_and_its_depth) {
  for (const std::int32_t size : bracket_sizes()) {
    const Bracket bracket(size);
    std::vector<RankRange> ranges;
    collect(bracket.all(), ranges);
    EXPECT_EQ(std::ssize(ranges), 2 * size - 1);
    const std::set<RankRange> known(ranges.begin(), ranges.end());
    std::int32_t deepest = 0;
    for (const RankRange& range : ranges) {
      std::int32_t steps = 0;
      for (RankRange at = range; at != bracket.all(); at = bracket.parent(at)) {
        const RankRange parent = bracket.parent(at);
        EXPECT_TRUE(Bracket::left(parent) == at || Bracket::right(parent) == at);
        ++steps;
      }
      deepest = std::max(deepest, steps);
    }
    EXPECT_EQ(deepest, bracket.depth()) << size;
    if (size > 64) continue;
    for (std::int32_t begin = -1; begin <= size; ++begin) {
      for (std::int32_t end = -1; end <= size + 1; ++end) {
        const RankRange range{Rank{begin}, Rank{end}};
        EXPECT_EQ(bracket.has(range), known.contains(range)) << begin << " " << end;
      }
    }
  }
}

TEST(Bracket, finds_what_some_ranks_can_reduce_alone) {
  std::mt19937 random(46);
  for (const std::int32_t size : bracket_sizes()) {
    const Bracket bracket(size);
    for (int k = 0; k < 20; ++k) {
      std::vector<Rank> members;
      const bool in_blocks = k % 2 == 0;  // hosts have ranks that follow each other, or not
      for (std::int32_t r = 0; r < size; ++r) {
        if (in_blocks ? r / 5 % 2 == 0 : random() % 3 != 0) members.push_back(Rank{r});
      }
      const std::set<Rank> own(members.begin(), members.end());
      const auto is_own = [&](const RankRange& range) {
        for (Rank r = range.begin; r < range.end; ++r) {
          if (!own.contains(r)) return false;
        }
        return true;
      };
      std::vector<Rank> covered;
      for (const RankRange& part : bracket.whole_parts(members)) {
        EXPECT_TRUE(bracket.has(part));
        EXPECT_TRUE(is_own(part));
        EXPECT_TRUE(part == bracket.all() || !is_own(bracket.parent(part)))
            << "it is not the largest";
        for (Rank r = part.begin; r < part.end; ++r) covered.push_back(r);
      }
      EXPECT_EQ(covered, members) << "each once, ascending";
    }
    EXPECT_TRUE(bracket.whole_parts({}).empty());
  }
}

TEST(Bracket, refuses_a_group_without_a_rank) {
  EXPECT_THROW(Bracket(0), Error);
  EXPECT_THROW(Bracket(-3), Error);
}

}  // namespace
}  // namespace heddle::collectives
