#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/require.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {

/// A tile of a ready task on the host, if it runs there, or else at its own place.
[[nodiscard]] inline TileView view_of(const TileStore& store, const protocol::Task& task,
                                      protocol::TileId tile, protocol::BlockRef block) {
  return task.is_lent ? store.host_view(tile, block) : store.view(tile, block);
}

/// The tiles of a ready task as its kernel wants them.
class TaskTiles {
 public:
  TaskTiles(const TileStore& store, const protocol::Task& task) : count_(task.operand_count) {
    for (std::uint8_t i = 0; i < count_; ++i) {
      views_[i] = view_of(store, task, task.operands[i].tile, task.operands[i].block);
    }
  }

  [[nodiscard]] std::span<const TileView> span() const { return {views_.data(), count_}; }
  const TileView& operator[](std::size_t index) const { return views_[index]; }

 private:
  std::array<TileView, protocol::accesses_max> views_;
  std::uint8_t count_;
};

/// The blocks of a device's place that a task uses, each once.
class TaskUses {
 public:
  TaskUses() = default;
  TaskUses(const TileStore& store, const protocol::Task& task) {
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const protocol::Operand& operand = task.operands[i];
      const bool is_renamed = operand.copy_from.valid();
      // A renamed output gets the old content first.
      add({store.resident(operand.block), is_renamed ? protocol::AccessMode::write : operand.mode,
           operand.tile, task.priority});
      if (is_renamed) {
        add({store.resident(operand.copy_from), protocol::AccessMode::read, operand.tile,
             task.priority});
      }
    }
  }

  [[nodiscard]] std::span<const DeviceCache::Use> span() const { return {uses_.data(), count_}; }

 private:
  void add(const DeviceCache::Use& use) {
    if (use.block == no_block) return;  // a tile without elements
    for (std::size_t i = 0; i < count_; ++i) {
      if (uses_[i].block == use.block) return;  // read twice
    }
    uses_[count_++] = use;
  }

  std::array<DeviceCache::Use, 2 * protocol::accesses_max> uses_;
  std::size_t count_ = 0;
};

/// `to` := `from`, shapes equal, in host memory.
inline void copy_tile(const TileView& from, const TileView& to) {
  const auto column_bytes = static_cast<std::size_t>(from.rows) * sizeof(double);
  if (column_bytes == 0) return;
  if (from.leading == from.rows && to.leading == to.rows) {
    std::memcpy(to.data, from.data, column_bytes * static_cast<std::size_t>(from.columns));
    return;
  }
  for (std::int64_t j = 0; j < from.columns; ++j) {
    std::memcpy(to.data + j * to.leading, from.data + j * from.leading, column_bytes);
  }
}

/// The element of the task's main output `tile` at which its kernel failed with `info` > 0; null
/// where the kernel names none. Throws Error(usage) when it names one outside of the tile.
[[nodiscard]] inline const double* failing_element(const protocol::Task& task, const TileView& tile,
                                                   std::int64_t info) {
  const Kernel& kernel = kernel_of(task);
  if (kernel.failing_element == nullptr) return nullptr;
  const TileElement at = kernel.failing_element(parameters_of(task), info);
  require(at.row >= 0 && at.row < tile.rows && at.column >= 0 && at.column < tile.columns,
          "kernel '{}' failed with info {} at element ({}, {}), outside of its main output of {} x "
          "{}",
          kernel.name, info, at.row, at.column, tile.rows, tile.columns);
  return &tile(at.row, at.column);
}

/// The pivot that a job reports for a failure in host memory: the failing element, or 0.
[[nodiscard]] inline double failing_pivot(const protocol::Task& task, const TileView& tile,
                                          std::int64_t info) {
  const double* const element = failing_element(task, tile, info);
  return element == nullptr ? 0.0 : *element;
}

}  // namespace heddle
