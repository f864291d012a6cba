#include "node-runtime/collectives/schedule/buffer_tree.hpp"

#include <algorithm>
#include <bit>

#include "node-runtime/collectives/schedule/bracket.hpp"

namespace heddle::collectives {

BufferTree buffer_tree(std::int32_t ranks, Rank root, Rank own) {
  const auto holder = [root](const RankRange& range) {
    return range.contains(root) ? root : range.begin;
  };
  BufferTree tree;
  RankRange range = Bracket(ranks).all();
  while (range.size() > 1) {
    const RankRange left = Bracket::left(range);
    const RankRange right = Bracket::right(range);
    const bool left_gives = right.contains(holder(range));
    const Rank giver = holder(left_gives ? left : right);
    if (own == giver) tree.parent = holder(range);
    if (own == holder(range)) {
      const auto level = std::bit_width(static_cast<std::uint32_t>(range.size() - 1));
      tree.children.push_back({giver, static_cast<std::int32_t>(level), left_gives});
    }
    range = left.contains(own) ? left : right;
  }
  std::ranges::reverse(tree.children);
  return tree;
}

}  // namespace heddle::collectives
