#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "node-runtime/protocol/records.hpp"

namespace heddle::replay {

/// A use of a block of a device's place.
struct BlockUse {
  protocol::BlockRef block;
  protocol::AccessMode mode = protocol::AccessMode::read;
  protocol::TileId tile;
  std::int32_t priority = 0;  ///< of the task or copy
};

/// The blocks of a device's place that a task uses, each once; as threads/tile_operands.hpp.
class BlockUses {
 public:
  explicit BlockUses(const protocol::Task& task) {
    using protocol::AccessMode;
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const protocol::Operand& operand = task.operands[i];
      const bool is_renamed = operand.copy_from.valid();
      // A renamed output first receives the old content.
      add({operand.block, is_renamed ? AccessMode::write : operand.mode, operand.tile,
           task.priority});
      if (is_renamed) add({operand.copy_from, AccessMode::read, operand.tile, task.priority});
    }
  }
  [[nodiscard]] std::span<const BlockUse> span() const { return {uses_.data(), count_}; }

 private:
  void add(const BlockUse& use) {
    for (const BlockUse& other : span()) {
      if (other.block == use.block) return;  // already a use
    }
    uses_.at(count_++) = use;
  }

  std::array<BlockUse, 2 * protocol::accesses_max> uses_;
  std::size_t count_ = 0;
};

}  // namespace heddle::replay
