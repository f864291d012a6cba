#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::replay {

/// Where the newest contents of the blocks of a node's devices are once CPU workers use them too:
/// what memory/residency.hpp says of devices that have room for all. A block that nothing is known
/// of is on its device alone.
///
/// Who needs a block brings it, and uses it until it says what it has written; meanwhile nobody
/// else writes it. Pure; not thread-safe.
class BlockCopies {
 public:
  enum class Side : std::uint8_t { device, host };

  [[nodiscard]] bool lacks(protocol::BlockRef block, Side side) const;
  /// Whether a copy to that side, which lacks the content, is to begin now; otherwise one is under
  /// way. Its end tells the waiter.
  [[nodiscard]] bool bring(protocol::BlockRef block, Side side, std::int32_t waiter);
  /// Who has waited for the copy that has ended.
  [[nodiscard]] std::vector<std::int32_t> came(protocol::BlockRef block, Side side);
  /// The other side's content is an old one now.
  void written(protocol::BlockRef block, Side side);
  /// Nobody needs the content any more.
  void freed(protocol::BlockRef block) { states_.erase(block); }

 private:
  struct State {
    std::array<bool, 2> has{true, false};  ///< by Side
    std::array<bool, 2> comes{};
    std::array<std::vector<std::int32_t>, 2> waiting;
  };
  struct Hash {
    std::size_t operator()(const protocol::BlockRef& block) const;
  };
  mutable FlatMap<protocol::BlockRef, State, Hash> states_;  // which finds without changing it
};

}  // namespace heddle::replay
