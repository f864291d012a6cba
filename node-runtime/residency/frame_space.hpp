#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace heddle {

/// A block of a device place whose memory comes and goes (residency.hpp).
using ResidentBlock = Index<struct ResidentBlockTag, std::int32_t>;
inline constexpr ResidentBlock no_block{-1};

/// The addresses [0, bytes) of a device's pool: frames, which hold a block each, and gaps between
/// them. Knows nothing of contents; whoever asks for a window says what its frames cost.
///
/// An extent is a frame or a gap. A window is a run of neighbouring extents; once claimed for a
/// block, what is in it or is released into it is that block's alone, until the claim is taken (all
/// of it is one gap by then) or dropped.
///
/// Cost: allocate O(gaps), which is 1 while everything fits; release, claims O(extents concerned);
/// cheapest_window O(extents). Memory is only allocated when there are more extents than ever.
///
/// Invariant (`is_valid()`), for the extents e in order of address:
///   e[0].begin = 0, e[i].begin + e[i].bytes = e[i + 1].begin, the last one ends at bytes;
///   begins and bytes are multiples of the alignment, no extent is empty;
///   no two neighbours are gaps of the same claimant (or both of none);
///   the list of gaps holds the unclaimed gaps and nothing else; free_bytes is their sum;
///   the extents of a claimant are neighbours.
class FrameSpace {
 public:
  /// Handle of an extent: that of a frame stays until the frame is released, that of a claim (its
  /// first extent) until the claim is taken or dropped.
  using Extent = std::int32_t;
  static constexpr Extent none = -1;

  /// What it takes to empty a frame. Bytes to write back weigh more than any recency.
  struct Cost {
    std::uint64_t write_back_bytes = 0;
    std::uint64_t last_use = 0;
    friend constexpr auto operator<=>(const Cost&, const Cost&) = default;
  };

  struct Window {
    Extent first = none;
    Extent last = none;
    Cost cost;  ///< bytes of all its frames, most recent use of any of them
    [[nodiscard]] bool valid() const { return first != none; }
  };

  /// `alignment` > 0; what `bytes` has beyond a multiple of it is not used.
  FrameSpace(std::uint64_t bytes, std::uint64_t alignment);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }
  [[nodiscard]] std::uint64_t rounded(std::uint64_t bytes) const;

  /// First fit among the unclaimed gaps; `bytes` is rounded. `none` if no gap is large enough.
  [[nodiscard]] Extent allocate(std::uint64_t bytes, ResidentBlock owner);

  /// Makes a frame a gap: a free one, or the claimant's.
  void release(Extent frame);

  /// The cheapest run of unclaimed extents with at least `bytes`: least bytes to write back, then
  /// least recently used, then lowest address. `cost_of(owner)` is the cost of a frame as
  /// optional<Cost>, nullopt for one that must stay. Not valid if there is none.
  template <class CostOf>
  [[nodiscard]] Window cheapest_window(std::uint64_t bytes, const CostOf& cost_of);

  /// Claims a window for a block that has no claim; the owners of its frames are added to `owners`.
  void claim(const Window& window, ResidentBlock claimant, std::vector<ResidentBlock>& owners);
  /// Whether all frames of a claim are released.
  [[nodiscard]] bool is_complete(Extent claim) const;
  /// Makes a complete claim the frame of its claimant; what is left over of it is free. The frame's
  /// handle is `claim`.
  void take(Extent claim, std::uint64_t bytes);
  /// Gives a claim up: its gaps are free, its frames ordinary again.
  void drop(Extent claim);

  [[nodiscard]] ResidentBlock owner(Extent extent) const { return node(extent).owner; }
  [[nodiscard]] ResidentBlock claimant(Extent extent) const { return node(extent).claimant; }
  [[nodiscard]] std::uint64_t begin(Extent extent) const { return node(extent).begin; }
  [[nodiscard]] std::uint64_t bytes(Extent extent) const { return node(extent).bytes; }

  /// O(extents), for invariants: number of frames, and bytes of gaps that are claimed.
  [[nodiscard]] std::size_t frame_count() const;
  [[nodiscard]] std::uint64_t claimed_gap_bytes() const;
  [[nodiscard]] bool is_valid() const;

 private:
  struct Node {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    ResidentBlock owner = no_block;  ///< of a frame
    ResidentBlock claimant = no_block;
    Extent before = none;
    Extent after = none;
    Extent gap_before = none;  ///< in the list of unclaimed gaps
    Extent gap_after = none;
    [[nodiscard]] bool is_gap() const { return owner == no_block; }
  };
  /// A frame or gap of the window under inspection that no later one outdoes in recency.
  struct Recent {
    Extent extent;
    std::uint64_t last_use;
  };

  [[nodiscard]] Node& node(Extent e) { return nodes_[static_cast<std::size_t>(e)]; }
  [[nodiscard]] const Node& node(Extent e) const { return nodes_[static_cast<std::size_t>(e)]; }
  [[nodiscard]] Extent create(const Node& content);
  void recycle(Extent extent);
  void list_gap(Extent gap);
  void unlist_gap(Extent gap);
  void occupy(Extent gap, std::uint64_t bytes, ResidentBlock owner);
  /// Whether `right` follows and is a gap for the same use as the gap `left`.
  [[nodiscard]] bool joinable(Extent left, Extent right) const;
  void absorb(Extent left, Extent right);
  void free_and_join(Extent gap);

  std::uint64_t bytes_;
  std::uint64_t alignment_;
  std::uint64_t free_bytes_ = 0;
  std::vector<Node> nodes_;
  std::vector<Extent> unused_;  ///< nodes to be used again
  Extent front_ = none;         ///< lowest address
  Extent gaps_ = none;          ///< unclaimed gaps, in no order
  std::vector<Recent> recent_;  ///< scratch of cheapest_window
};

template <class CostOf>
FrameSpace::Window FrameSpace::cheapest_window(std::uint64_t bytes, const CostOf& cost_of) {
  // For each last extent the shortest window that ends there and suffices: a longer one costs no
  // less. The most recent use in it is the first of `recent_`, whose entries from `head` on fall.
  const auto cost_at = [&](Extent e) -> std::optional<Cost> {
    if (node(e).claimant != no_block) return std::nullopt;
    return node(e).is_gap() ? Cost{} : cost_of(node(e).owner);
  };
  Window best;
  Extent first = none;
  std::uint64_t size = 0;
  std::uint64_t write_back_bytes = 0;
  std::size_t head = 0;
  for (Extent e = front_; e != none; e = node(e).after) {
    const std::optional<Cost> cost = cost_at(e);
    if (!cost.has_value()) {
      first = none;
      continue;
    }
    if (first == none) {
      first = e;
      size = write_back_bytes = head = 0;
      recent_.clear();
    }
    size += node(e).bytes;
    write_back_bytes += cost->write_back_bytes;
    while (recent_.size() > head && recent_.back().last_use <= cost->last_use) recent_.pop_back();
    recent_.push_back({e, cost->last_use});
    while (size - node(first).bytes >= bytes) {
      size -= node(first).bytes;
      write_back_bytes -= cost_at(first)->write_back_bytes;
      if (recent_[head].extent == first) ++head;
      first = node(first).after;
    }
    const Cost total{write_back_bytes, recent_[head].last_use};
    if (size >= bytes && (!best.valid() || total < best.cost)) best = {first, e, total};
  }
  return best;
}

}  // namespace heddle
