#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/residency/frame_space.hpp"

namespace heddle {

/// Blocks whose frames may be taken, in three lists by what that costs, each in order of last use.
///
/// move() is O(1) for the most recently used block and O(length) otherwise.
///
/// Invariant (`is_valid()`), over blocks b and lists k:
///   b is in list k <=> kind(b) = k, and in none <=> kind(b) = off;
///   after(before(b)) = b, before(first(k)) = after(last(k)) = no_block;
///   last_use does not decrease along a list
class EvictionLists {
 public:
  /// discarded: no content. clean: the backing has the content. dirty: it must be written back.
  enum class Kind : std::uint8_t { discarded, clean, dirty, off };

  /// Makes room for blocks 0 .. count - 1; new ones are in no list.
  void resize(std::size_t count) { links_.resize(count); }
  /// Moves a block to a list, at the position of `last_use`, or out of all lists.
  void move(ResidentBlock block, Kind kind, std::uint64_t last_use);
  void remove(ResidentBlock block) { move(block, Kind::off, 0); }

  [[nodiscard]] Kind kind(ResidentBlock block) const { return link(block).kind; }
  /// The least recently used block of a list; no_block if it is empty.
  [[nodiscard]] ResidentBlock first(Kind kind) const {
    return lists_[static_cast<std::size_t>(kind)].first;
  }
  /// O(blocks).
  [[nodiscard]] bool is_valid() const;

 private:
  struct Link {
    ResidentBlock before = no_block;
    ResidentBlock after = no_block;
    std::uint64_t last_use = 0;
    Kind kind = Kind::off;
  };
  struct List {
    ResidentBlock first = no_block;
    ResidentBlock last = no_block;
  };

  [[nodiscard]] Link& link(ResidentBlock b) { return links_[static_cast<std::size_t>(b.value())]; }
  [[nodiscard]] const Link& link(ResidentBlock b) const {
    return links_[static_cast<std::size_t>(b.value())];
  }
  void take_out(ResidentBlock block);
  void put_in(ResidentBlock block);

  std::vector<Link> links_;  ///< by block
  std::array<List, 3> lists_;
};

}  // namespace heddle
