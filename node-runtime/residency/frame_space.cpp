#include "node-runtime/residency/frame_space.hpp"

#include "base/assert.hpp"

namespace heddle {

FrameSpace::FrameSpace(std::uint64_t bytes, std::uint64_t alignment) : alignment_(alignment) {
  HEDDLE_CHECK(alignment > 0);
  grow(bytes);
}

void FrameSpace::grow(std::uint64_t bytes) {
  bytes -= bytes % alignment_;
  if (bytes == 0) return;
  Extent last = front_;
  while (last != none && node(last).after != none) last = node(last).after;
  const Extent gap = create({.begin = bytes_, .bytes = bytes, .before = last});
  (last == none ? front_ : node(last).after) = gap;
  bytes_ += bytes;
  free_and_join(gap);
}

std::uint64_t FrameSpace::rounded(std::uint64_t bytes) const {
  // An empty block takes one unit, so it needs no special case.
  const std::uint64_t units = (std::max<std::uint64_t>(bytes, 1) + alignment_ - 1) / alignment_;
  return units * alignment_;
}

FrameSpace::Extent FrameSpace::create(const Node& content) {
  if (unused_.empty()) {
    nodes_.push_back(content);
    return static_cast<Extent>(nodes_.size()) - 1;
  }
  const Extent extent = unused_.back();
  unused_.pop_back();
  node(extent) = content;
  return extent;
}

void FrameSpace::recycle(Extent extent) {
  node(extent) = Node{};
  unused_.push_back(extent);
}

void FrameSpace::list_gap(Extent gap) {
  Node& n = node(gap);
  n.gap_before = none;
  n.gap_after = gaps_;
  if (gaps_ != none) node(gaps_).gap_before = gap;
  gaps_ = gap;
  free_bytes_ += n.bytes;
}

void FrameSpace::unlist_gap(Extent gap) {
  const Node& n = node(gap);
  (n.gap_before == none ? gaps_ : node(n.gap_before).gap_after) = n.gap_after;
  if (n.gap_after != none) node(n.gap_after).gap_before = n.gap_before;
  free_bytes_ -= n.bytes;
}

/// Turns the start of an unlisted gap into a frame; the rest becomes free.
void FrameSpace::occupy(Extent gap, std::uint64_t bytes, ResidentBlock owner) {
  HEDDLE_DEBUG(node(gap).is_gap() && node(gap).bytes >= bytes);
  const std::uint64_t rest = node(gap).bytes - bytes;
  node(gap).bytes = bytes;
  node(gap).owner = owner;
  node(gap).claimant = no_block;
  if (rest == 0) return;
  const Extent after = node(gap).after;
  const Extent remainder =
      create({.begin = node(gap).begin + bytes, .bytes = rest, .before = gap, .after = after});
  node(gap).after = remainder;
  if (after != none) node(after).before = remainder;
  free_and_join(remainder);
}

bool FrameSpace::joinable(Extent left, Extent right) const {
  return left != none && right != none && node(left).is_gap() && node(right).is_gap() &&
         node(left).claimant == node(right).claimant;
}

/// Neither may be in the list of gaps.
void FrameSpace::absorb(Extent left, Extent right) {
  node(left).bytes += node(right).bytes;
  node(left).after = node(right).after;
  if (node(right).after != none) node(node(right).after).before = left;
  recycle(right);
}

/// Merges an unlisted gap with its neighbours; lists it unless it is claimed.
void FrameSpace::free_and_join(Extent gap) {
  const bool listed = node(gap).claimant == no_block;
  if (const Extent after = node(gap).after; joinable(gap, after)) {
    if (listed) unlist_gap(after);
    absorb(gap, after);
  }
  if (const Extent before = node(gap).before; joinable(before, gap)) {
    if (listed) unlist_gap(before);
    absorb(before, gap);
    gap = before;
  }
  if (listed) list_gap(gap);
}

FrameSpace::Extent FrameSpace::allocate(std::uint64_t bytes, ResidentBlock owner) {
  HEDDLE_DEBUG(bytes > 0 && bytes % alignment_ == 0, "{} bytes", bytes);
  Extent fit = none;
  for (Extent gap = gaps_; gap != none; gap = node(gap).gap_after) {
    if (node(gap).bytes < bytes) continue;
    if (fit == none || node(gap).begin < node(fit).begin) fit = gap;
  }
  if (fit == none) return none;
  unlist_gap(fit);
  occupy(fit, bytes, owner);
  return fit;
}

void FrameSpace::release(Extent frame) {
  HEDDLE_DEBUG(!node(frame).is_gap());
  node(frame).owner = no_block;
  free_and_join(frame);
}

void FrameSpace::claim(const Window& window, ResidentBlock claimant,
                       std::vector<ResidentBlock>& owners) {
  for (Extent e = window.first;; e = node(e).after) {
    HEDDLE_DEBUG(node(e).claimant == no_block);
    if (node(e).is_gap()) {
      unlist_gap(e);
    } else {
      owners.push_back(node(e).owner);
    }
    node(e).claimant = claimant;
    if (e == window.last) return;
  }
}

bool FrameSpace::is_complete(Extent claim) const {
  const Node& n = node(claim);
  return n.is_gap() && (n.after == none || node(n.after).claimant != n.claimant);
}

void FrameSpace::take(Extent claim, std::uint64_t bytes) {
  HEDDLE_DEBUG(is_complete(claim));
  occupy(claim, bytes, node(claim).claimant);
}

void FrameSpace::drop(Extent claim) {
  const ResidentBlock claimant = node(claim).claimant;
  HEDDLE_DEBUG(claimant != no_block);
  for (Extent e = claim; e != none;) {
    // Read first: release may merge a gap into the gap before it.
    const Extent after = node(e).after;
    const bool last = after == none || node(after).claimant != claimant;
    node(e).claimant = no_block;
    if (node(e).is_gap()) free_and_join(e);
    e = last ? none : after;
  }
}

std::size_t FrameSpace::frame_count() const {
  std::size_t count = 0;
  for (Extent e = front_; e != none; e = node(e).after) count += node(e).is_gap() ? 0U : 1U;
  return count;
}

std::uint64_t FrameSpace::claimed_gap_bytes() const {
  std::uint64_t bytes = 0;
  for (Extent e = front_; e != none; e = node(e).after) {
    if (node(e).is_gap() && node(e).claimant != no_block) bytes += node(e).bytes;
  }
  return bytes;
}

bool FrameSpace::is_valid() const {
  std::uint64_t position = 0;
  std::uint64_t free = 0;
  std::size_t gaps = 0;
  std::size_t extents = 0;
  std::vector<ResidentBlock> claimants;
  for (Extent e = front_; e != none; e = node(e).after) {
    const Node& n = node(e);
    if (n.begin != position || n.bytes == 0 || n.bytes % alignment_ != 0) return false;
    if (n.before == none ? e != front_ : node(n.before).after != e) return false;
    if (joinable(e, n.after)) return false;
    if (n.claimant != no_block && (n.before == none || node(n.before).claimant != n.claimant)) {
      if (std::find(claimants.begin(), claimants.end(), n.claimant) != claimants.end())
        return false;
      claimants.push_back(n.claimant);
    }
    if (n.is_gap() && n.claimant == no_block) {
      free += n.bytes;
      ++gaps;
    }
    position += n.bytes;
    ++extents;
  }
  for (Extent gap = gaps_; gap != none; gap = node(gap).gap_after) {
    const Node& n = node(gap);
    if (!n.is_gap() || n.claimant != no_block || n.bytes == 0) return false;
    if (n.gap_after != none && node(n.gap_after).gap_before != gap) return false;
    if (gaps-- == 0) return false;
  }
  return position == bytes_ && free == free_bytes_ && gaps == 0 &&
         extents + unused_.size() == nodes_.size();
}

}  // namespace heddle
