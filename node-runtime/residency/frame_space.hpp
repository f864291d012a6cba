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

/// Address range [0, bytes) of a device's pool: frames, one per block, and gaps between them.
/// Ignores contents; the caller of cheapest_window() supplies the cost of evicting a frame.
///
/// An extent is a frame or a gap. A window is a run of neighbouring extents. Once claimed for a
/// block, everything in it or released into it belongs to that block until the claim is taken (when
/// it is one gap) or dropped.
///
/// Cost: allocate O(gaps), which is 1 while everything fits; release and claims O(extents
/// concerned); cheapest_window O(extents). Allocates only when there are more extents than ever
/// before.
///
/// Invariant (`is_valid()`), for the extents e in order of address:
///   e[0].begin = 0, e[i].begin + e[i].bytes = e[i + 1].begin, the last one ends at bytes;
///   begins and bytes are multiples of the alignment, no extent is empty;
///   no two neighbours are gaps of the same claimant (or both of none);
///   the list of gaps = the unclaimed gaps; free_bytes is their sum;
///   the extents of a claimant are neighbours.
class FrameSpace {
 public:
  /// Handle of an extent: a frame's is valid until its release, a claim's (its first extent) until
  /// the claim is taken or dropped.
  using Extent = std::int32_t;
  static constexpr Extent none = -1;

  /// Cost of evicting a frame: bytes to write back first, then recency.
  struct Cost {
    std::uint64_t write_back_bytes = 0;
    std::uint64_t last_use = 0;
    friend constexpr auto operator<=>(const Cost&, const Cost&) = default;
  };

  struct Window {
    Extent first = none;
    Extent last = none;
    Cost cost;  ///< sum of bytes, most recent use of its frames
    [[nodiscard]] bool valid() const { return first != none; }
  };

  /// `alignment` > 0; `bytes` is rounded down to a multiple of it.
  FrameSpace(std::uint64_t bytes, std::uint64_t alignment);

  /// `bytes`, rounded down to a multiple of the alignment, more at the end.
  void grow(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }
  [[nodiscard]] std::uint64_t rounded(std::uint64_t bytes) const;

  /// First fit among unclaimed gaps; `bytes` is rounded up. `none` if no gap is large enough.
  [[nodiscard]] Extent allocate(std::uint64_t bytes, ResidentBlock owner);

  /// Turns a frame into a gap, which belongs to the claimant if the frame is claimed.
  void release(Extent frame);

  /// The cheapest run of unclaimed extents with at least `bytes`: fewest bytes to write back, then
  /// least recently used, then lowest address. `cost_of(owner)` returns optional<Cost>, nullopt for
  /// a frame that must stay. The result is not valid if there is none.
  template <class CostOf>
  [[nodiscard]] Window cheapest_window(std::uint64_t bytes, const CostOf& cost_of);

  /// Claims a window for a block without a claim; appends the owners of its frames to `owners`.
  void claim(const Window& window, ResidentBlock claimant, std::vector<ResidentBlock>& owners);
  /// Whether all frames of a claim are released.
  [[nodiscard]] bool is_complete(Extent claim) const;
  /// Turns a complete claim into the frame of its claimant, with handle `claim`, and frees the
  /// remainder.
  void take(Extent claim, std::uint64_t bytes);
  /// Drops a claim: its gaps become free, its frames ordinary.
  void drop(Extent claim);

  [[nodiscard]] ResidentBlock owner(Extent extent) const { return node(extent).owner; }
  [[nodiscard]] ResidentBlock claimant(Extent extent) const { return node(extent).claimant; }
  [[nodiscard]] std::uint64_t begin(Extent extent) const { return node(extent).begin; }
  [[nodiscard]] std::uint64_t bytes(Extent extent) const { return node(extent).bytes; }

  /// O(extents), for invariants: number of frames, and bytes of claimed gaps.
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
    Extent gap_before = none;  ///< links in the list of unclaimed gaps
    Extent gap_after = none;
    [[nodiscard]] bool is_gap() const { return owner == no_block; }
  };
  /// Entry of a monotonic queue: an extent of the window that is more recent than all later ones.
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
  /// Whether `right` follows `left` and both are gaps of the same claimant.
  [[nodiscard]] bool joinable(Extent left, Extent right) const;
  void absorb(Extent left, Extent right);
  void free_and_join(Extent gap);

  std::uint64_t bytes_ = 0;
  std::uint64_t alignment_;
  std::uint64_t free_bytes_ = 0;
  std::vector<Node> nodes_;
  std::vector<Extent> unused_;  ///< free nodes
  Extent front_ = none;         ///< at the lowest address
  Extent gaps_ = none;          ///< unclaimed gaps, unordered
  std::vector<Recent> recent_;  ///< scratch of cheapest_window
};

template <class CostOf>
FrameSpace::Window FrameSpace::cheapest_window(std::uint64_t bytes, const CostOf& cost_of) {
  // For each last extent, the shortest sufficient window: a longer one costs no less. Its most
  // recent use is the front of `recent_`, whose entries decrease from `head` on.
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
