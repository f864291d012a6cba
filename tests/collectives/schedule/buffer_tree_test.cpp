#include "node-runtime/collectives/schedule/buffer_tree.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace heddle::collectives {
namespace {

/// What a rank has when it has got all values of its children: "((0+1)+(2+3))".
std::string value_of(std::int32_t ranks, Rank root, Rank own) {
  std::string value = fmt::format("{}", own.value());
  std::int32_t last = 0;
  for (const BufferTree::Child& child : buffer_tree(ranks, root, own).children) {
    EXPECT_GT(child.level, last) << "in the order of levels";
    last = child.level;
    EXPECT_EQ(buffer_tree(ranks, root, child.rank).parent, own);
    const std::string other = value_of(ranks, root, child.rank);
    value = child.comes_first ? fmt::format("({}+{})", other, value)
                              : fmt::format("({}+{})", value, other);
  }
  return value;
}

/// By the definition.
std::string bracket(std::int32_t begin, std::int32_t end) {
  if (end - begin == 1) return fmt::format("{}", begin);
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return fmt::format("({}+{})", bracket(begin, begin + left), bracket(begin + left, end));
}

}  // namespace

TEST(BufferTree, has_all_values_at_the_root_in_the_bracket_of_ranks) {
  for (std::int32_t ranks = 1; ranks <= 33; ++ranks) {
    for (std::int32_t root = 0; root < ranks; ++root) {
      SCOPED_TRACE(fmt::format("{} ranks, root {}", ranks, root));
      EXPECT_FALSE(buffer_tree(ranks, Rank{root}, Rank{root}).parent.has_value());
      EXPECT_EQ(value_of(ranks, Rank{root}, Rank{root}), bracket(0, ranks));
      std::int32_t buffers = 0;
      for (std::int32_t r = 0; r < ranks; ++r) {
        if (!buffer_tree(ranks, Rank{root}, Rank{r}).children.empty()) ++buffers;
      }
      const bool is_odd_one = ranks % 2 == 1 && root == ranks - 1;
      EXPECT_EQ(buffers, ranks / 2 + (is_odd_one && ranks > 1 ? 1 : 0));
    }
  }
}

TEST(BufferTree, of_root_0_is_the_binomial_tree) {
  using Children = std::vector<BufferTree::Child>;
  const auto children = [](std::int32_t ranks, std::int32_t own) {
    return buffer_tree(ranks, Rank{0}, Rank{own}).children;
  };
  EXPECT_EQ(children(8, 0),
            (Children{{Rank{1}, 1, false}, {Rank{2}, 2, false}, {Rank{4}, 3, false}}));
  EXPECT_EQ(children(8, 4), (Children{{Rank{5}, 1, false}, {Rank{6}, 2, false}}));
  EXPECT_EQ(children(6, 4), (Children{{Rank{5}, 1, false}}));
  EXPECT_EQ(children(6, 0),
            (Children{{Rank{1}, 1, false}, {Rank{2}, 2, false}, {Rank{4}, 3, false}}));
  // Rank 3 has the whole; what comes from before it is the left part.
  EXPECT_EQ(buffer_tree(4, Rank{3}, Rank{3}).children,
            (Children{{Rank{2}, 1, true}, {Rank{0}, 2, true}}));
}

}  // namespace heddle::collectives
