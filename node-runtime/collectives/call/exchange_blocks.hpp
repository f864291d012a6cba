#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "node-runtime/collectives/call/exchange_call.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/exchange.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

/// The blocks of an exchange that a rank has to do with, and how its elements come into them and
/// out of them.
namespace heddle::collectives {

/// A part of a block, on a rank that has its elements.
struct TypedPiece {
  std::shared_ptr<const p2p::Shape> shape;
  std::byte* memory = nullptr;
  std::optional<p2p::LaneId> lane;  ///< the device that it lies on; none: the host
  /// Memory of that device for the packed elements, on the way to or from the host; null: not
  /// needed.
  std::byte* near = nullptr;
};

/// One side of a block on this rank.
struct BlockSide {
  std::vector<TypedPiece> pieces;  ///< one behind the other in the block; empty: another rank's

  /// The elements lie as a block of so many bytes has them.
  [[nodiscard]] bool is_in_place(std::int64_t bytes) const {
    return pieces.size() == 1 && pieces.front().shape->is_run &&
           pieces.front().shape->bytes == bytes;
  }
  [[nodiscard]] std::byte* first() const {
    return pieces.front().memory + pieces.front().shape->offset;
  }
  void add(const RankElements& part, p2p::ShapeCache& shapes);
  [[nodiscard]] bool has_devices() const;
};

/// A block of the schedule that this rank has to do with.
struct LocalBlock {
  ExchangeBlock block;
  std::int64_t bytes = 0;
  std::uint64_t signature = 0;
  BlockSide input;
  BlockSide output;
  /// Where its slot is, if it has one: the device of all its pieces here, or the host (none).
  std::optional<p2p::LaneId> slot_lane{};

  void add(const MatchedPart& part);
  /// The device that all its pieces lie on; none: the host has some.
  [[nodiscard]] std::optional<p2p::LaneId> common_lane() const;
  /// It stays on this rank, and cannot go from its input to its output in one step, since these are
  /// not both on the host or both on one device.
  [[nodiscard]] bool passes_slot() const;
  [[nodiscard]] bool is_packed() const { return passes_slot() || !input.is_in_place(bytes); }
  [[nodiscard]] bool is_unpacked() const { return passes_slot() || !output.is_in_place(bytes); }
};

/// The blocks of a rank, ascending by number; shared by a task's functions, and not changed any
/// more when there is one.
///
/// Threads: any.
struct LocalBlocks {
  std::vector<LocalBlock> blocks;
  std::vector<BlockPlace> places;                ///< of the blocks
  std::vector<std::shared_ptr<std::byte>> kept;  ///< memory of devices for packed elements

  [[nodiscard]] std::size_t index(std::int32_t number) const;
  [[nodiscard]] const LocalBlock& at(std::int32_t number) const { return blocks[index(number)]; }

  /// Task::copy: the elements of a block on the host that do not lie as the block has them are
  /// packed or unpacked; those on devices are left to works(). False: all its bytes are to be
  /// copied, and lie on the host.
  [[nodiscard]] bool copy(const Step& step, const std::byte* from, std::byte* to) const;
  /// Task::works: those of devices for one copy, one for each device.
  [[nodiscard]] static std::vector<p2p::DeviceWork> works(
      const std::shared_ptr<const LocalBlocks>& self, const Step& step, const std::byte* from,
      std::byte* to);
};

}  // namespace heddle::collectives
