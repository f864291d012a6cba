#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/kernel.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/protocol/records.hpp"

namespace heddle {

/// The tiles of a ready task as its kernel wants them.
class TaskTiles {
 public:
  TaskTiles(const TileStore& store, const protocol::Task& task) : count_(task.operand_count) {
    for (std::uint8_t i = 0; i < count_; ++i) {
      views_[i] = store.view(task.operands[i].tile, task.operands[i].block);
    }
  }

  [[nodiscard]] std::span<const TileView> span() const { return {views_.data(), count_}; }
  const TileView& operator[](std::size_t index) const { return views_[index]; }

 private:
  std::array<TileView, protocol::accesses_max> views_;
  std::uint8_t count_;
};

/// Where in its main output a kernel that returned `info` found what stopped it: the diagonal
/// element of the piece whose first row is the first 64-bit parameter.
[[nodiscard]] inline std::int64_t failing_element(const TileView& tile, const protocol::Task& task,
                                                  std::int64_t info) {
  const auto offset = static_cast<std::int64_t>(task.work.parameters[0]);
  return offset + info - 1 + (info - 1) * tile.leading;
}

}  // namespace heddle
