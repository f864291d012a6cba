#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "node-runtime/residency/resident_blocks.hpp"

namespace heddle {

/// Finds space in a device's pool for the frames of its blocks, and takes frames of other blocks
/// for it.
///
/// *Space* for a block: the lowest sufficient gap; else the cheapest window of gaps and frames that
/// are neither pinned nor being fetched: fewest bytes to write back, then least recently used (so
/// discarded frames first, then clean, then modified ones). If frames of the window must be written
/// back first, the window is claimed for the block: no other block enters it.
///
/// Cost: with n extents, a block that takes the place of others is O(n), or O(1) where blocks are
/// of one size and a clean one exists; the end of a write-back is O(n).
///
/// Keeps no state between calls: the invariant is that of ResidentBlocks. Pure. Not thread-safe.
class BlockFrames {
 public:
  /// Priority of transfers that no request waits for.
  static constexpr std::int32_t least_urgent = std::numeric_limits<std::int32_t>::min();
  enum class MayTakeSpace : std::uint8_t { no, yes };

  /// `blocks` outlives it.
  explicit BlockFrames(ResidentBlocks& blocks) : blocks_(blocks) {}

  /// Makes whatever a frame holds the content of an unused block without content. Without a frame
  /// the block gets one from unused space, if it may; false if there is none.
  [[nodiscard]] bool adopt_frame(ResidentBlock id, MayTakeSpace may_take_space);
  /// Frames from unused space for the uses without one (all are held, to be overwritten); all or
  /// none.
  [[nodiscard]] bool take_unused_frames(std::span<const ResidencyUse> uses);
  /// Gives a held block a frame, or a claim to one. False if there is no window.
  [[nodiscard]] bool provide_space(ResidentBlock id, ResidencyActions& actions);
  /// Starts write-backs of the least recently used modified blocks, `in_flight_max` at a time, as
  /// long as more than `dirty_bytes_max` are modified.
  void write_back_early(std::uint64_t dirty_bytes_max, std::int32_t in_flight_max,
                        ResidencyActions& actions);
  /// A block that has claimed the frame gets its space.
  void write_back_finished(ResidentBlock id, ResidencyActions& actions);

 private:
  [[nodiscard]] FrameSpace::Extent allocate_unused(ResidentBlock id);
  [[nodiscard]] ResidentBlock lone_victim(std::uint64_t bytes) const;
  void frame_arrived(ResidentBlock id, ResidencyActions& actions);
  void try_take_claim(ResidentBlock id, ResidencyActions& actions);

  ResidentBlocks& blocks_;
  std::vector<ResidentBlock> victims_;  ///< scratch
};

}  // namespace heddle
