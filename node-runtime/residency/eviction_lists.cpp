#include "node-runtime/residency/eviction_lists.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle {

void EvictionLists::move(ResidentBlock block, Kind kind, std::uint64_t last_use) {
  HEDDLE_DEBUG(block.value() >= 0 && static_cast<std::size_t>(block.value()) < links_.size(),
               "block {} of {}", block.value(), links_.size());
  take_out(block);
  if (kind == Kind::off) return;
  link(block).kind = kind;
  link(block).last_use = last_use;
  put_in(block);
}

void EvictionLists::take_out(ResidentBlock block) {
  Link& l = link(block);
  if (l.kind == Kind::off) return;
  List& list = lists_[static_cast<std::size_t>(l.kind)];
  HEDDLE_DEBUG((l.before == no_block) == (list.first == block) &&
                   (l.after == no_block) == (list.last == block),
               "block {} of list {}", block.value(), static_cast<int>(l.kind));
  (l.before == no_block ? list.first : link(l.before).after) = l.after;
  (l.after == no_block ? list.last : link(l.after).before) = l.before;
  l = {};
}

void EvictionLists::put_in(ResidentBlock block) {
  Link& l = link(block);
  List& list = lists_[static_cast<std::size_t>(l.kind)];
  // Usually appended; an early write-back inserts near the front.
  ResidentBlock after = no_block;
  if (list.last != no_block && link(list.last).last_use > l.last_use) {
    after = list.first;
    while (link(after).last_use < l.last_use) after = link(after).after;
  }
  l.after = after;
  l.before = after == no_block ? list.last : link(after).before;
  (l.before == no_block ? list.first : link(l.before).after) = block;
  (after == no_block ? list.last : link(after).before) = block;
}

bool EvictionLists::is_valid() const {
  std::size_t listed = 0;
  for (std::size_t k = 0; k < lists_.size(); ++k) {
    ResidentBlock before = no_block;
    for (ResidentBlock b = lists_[k].first; b != no_block; b = link(b).after) {
      const Link& l = link(b);
      if (l.kind != static_cast<Kind>(k) || l.before != before) return false;
      if (before != no_block && link(before).last_use > l.last_use) return false;
      before = b;
      if (++listed > links_.size()) return false;  // a circle
    }
    if (lists_[k].last != before) return false;
  }
  const auto kept =
      std::ranges::count_if(links_, [](const Link& l) { return l.kind != Kind::off; });
  return listed == static_cast<std::size_t>(kept);
}

}  // namespace heddle
