#include "node-runtime/collectives/schedule/trees.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace heddle::collectives {
namespace {

std::vector<std::int32_t> tree_sizes() {
  std::vector<std::int32_t> all{64, 100, 257, 512};
  for (std::int32_t size = 1; size <= 33; ++size) all.push_back(size);
  return all;
}

/// The step in which each position has a message of one fragment, if a position sends to one other
/// at a time, in the order of its children.
std::map<std::int32_t, std::int32_t> steps_of(Tree tree, std::int32_t size) {
  std::map<std::int32_t, std::int32_t> has{{0, 0}};
  std::vector<std::int32_t> senders{0};
  for (std::size_t k = 0; k < senders.size(); ++k) {
    std::int32_t step = has[senders[k]];
    for (const std::int32_t child : tree_neighbours(tree, senders[k], size).children) {
      has[child] = ++step;
      senders.push_back(child);
    }
  }
  return has;
}

TEST(Trees, reach_each_position_once_from_the_root) {
  for (const Tree tree : all_trees) {
    for (const std::int32_t size : tree_sizes()) {
      SCOPED_TRACE(std::string(name_of(tree)) + " of " + std::to_string(size));
      std::set<std::int32_t> reached{0};
      for (std::int32_t p = 0; p < size; ++p) {
        const TreeNeighbours own = tree_neighbours(tree, p, size);
        EXPECT_EQ(own.parent.has_value(), p != 0);
        for (const std::int32_t child : own.children) {
          EXPECT_TRUE(reached.insert(child).second) << child << " has two parents";
          EXPECT_EQ(tree_neighbours(tree, child, size).parent, p);
        }
      }
      EXPECT_EQ(std::ssize(reached), size);
      EXPECT_EQ(std::ssize(steps_of(tree, size)), size) << "there is a circle";
    }
  }
}

TEST(Trees, are_as_deep_and_as_wide_as_their_names_say) {
  for (const std::int32_t size : tree_sizes()) {
    const auto last = [size](Tree tree) {
      const auto steps = steps_of(tree, size);
      return std::ranges::max_element(steps, {}, [](const auto& one) { return one.second; })
          ->second;
    };
    std::int32_t logarithm = 0;
    while ((std::int64_t{1} << logarithm) < size) ++logarithm;
    EXPECT_EQ(last(Tree::flat), size - 1);
    EXPECT_EQ(last(Tree::chain), size - 1);
    EXPECT_EQ(last(Tree::binomial), logarithm) << size;
    for (std::int32_t p = 0; p < size; ++p) {
      EXPECT_LE(tree_neighbours(Tree::chain, p, size).children.size(), 1U);
      EXPECT_LE(tree_neighbours(Tree::binary, p, size).children.size(), 2U);
    }
  }
}

TEST(Trees, give_both_halves_to_each_position_of_a_split_binary_tree) {
  for (const std::int32_t size : tree_sizes()) {
    SCOPED_TRACE(size);
    std::map<std::int32_t, std::int32_t> givers;
    for (std::int32_t p = 0; p < size; ++p) {
      const TreeNeighbours own = tree_neighbours(Tree::split_binary, p, size);
      EXPECT_LE(own.takers.size(), 2U);
      for (const std::int32_t taker : own.takers) {
        EXPECT_TRUE(givers.emplace(taker, p).second) << taker << " is given it twice";
        if (p > 0) {
          EXPECT_NE(half_of(taker), half_of(p));
        }
      }
      if (p == 0) {
        EXPECT_FALSE(own.partner || own.giver) << "the root has both";
        continue;
      }
      for (const std::int32_t child : own.children) EXPECT_EQ(half_of(child), half_of(p));
      EXPECT_NE(own.partner.has_value(), own.giver.has_value());
      if (!own.partner) continue;
      EXPECT_NE(half_of(*own.partner), half_of(p));
      EXPECT_EQ(tree_neighbours(Tree::split_binary, *own.partner, size).partner, p);
    }
    for (std::int32_t p = 1; p < size; ++p) {
      const std::optional<std::int32_t> giver = tree_neighbours(Tree::split_binary, p, size).giver;
      EXPECT_EQ(giver.has_value(), givers.contains(p));
      if (giver) {
        EXPECT_EQ(*giver, givers[p]);
      }
    }
  }
}

/// Table 5.1 by its own words.
TEST(Trees, take_the_time_of_the_hockney_model) {
  const HockneyRates rates{1e-6, 1e-9};
  const double each = 1e-6 + 1e-9 * 1000;  // a fragment of 1000 bytes
  EXPECT_DOUBLE_EQ(tree_seconds(Tree::flat, 8, 10000, 1000, rates), 10 * 7 * each);
  EXPECT_DOUBLE_EQ(tree_seconds(Tree::chain, 8, 10000, 1000, rates), (8 + 10 - 2) * each);
  EXPECT_DOUBLE_EQ(tree_seconds(Tree::binomial, 8, 10000, 1000, rates), 10 * 3 * each);
  EXPECT_DOUBLE_EQ(tree_seconds(Tree::binary, 7, 10000, 1000, rates), 2 * (3 + 10 - 2) * each);
  EXPECT_DOUBLE_EQ(tree_seconds(Tree::split_binary, 7, 10000, 1000, rates),
                   2 * (3 + 5 - 2) * each + 1e-6 + 1e-9 * 5000);
  for (const Tree tree : all_trees) {
    EXPECT_EQ(tree_seconds(tree, 1, 10000, 1000, rates), 0);
    EXPECT_DOUBLE_EQ(tree_seconds(tree, 2, 0, 1000, rates), 1e-6) << name_of(tree);
    // Fragments that do not divide the message are made equal.
    EXPECT_DOUBLE_EQ(tree_seconds(tree, 5, 1500, 1000, rates),
                     tree_seconds(tree, 5, 1500, 750, rates));
  }
}

TEST(Trees, for_one_fragment_take_as_many_steps_as_sends_one_after_the_other) {
  const HockneyRates rates{1, 0};
  for (const std::int32_t size : tree_sizes()) {
    for (const Tree tree : {Tree::flat, Tree::chain, Tree::binomial}) {
      std::int32_t last = 0;
      for (const auto& [position, step] : steps_of(tree, size)) last = std::max(last, step);
      EXPECT_DOUBLE_EQ(tree_seconds(tree, size, 8, 8, rates), last) << name_of(tree) << size;
    }
  }
}

}  // namespace
}  // namespace heddle::collectives
