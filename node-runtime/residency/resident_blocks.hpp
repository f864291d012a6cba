#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/residency/eviction_lists.hpp"
#include "node-runtime/residency/residency_types.hpp"

namespace heddle {

/// The blocks of a device: where the content of each is, which frame it has, who has pinned it, and
/// which of its transfers are in flight. BlockFrames finds space for frames, and Residency decides
/// which request gets it.
///
/// A resident block has a *frame* (an offset in the device's pool); once it has been written back,
/// it also has a *backing* in host memory, kept by the caller. MOESI states of the device's copy
/// (000 section 3.4):
///
///   invalid   I        no content: never written, or discarded; a remaining frame may be reclaimed
///   modified  M        in the frame only; the backing is absent or stale
///   shared    S        in the frame and, equal, in the backing
///   backed    I here   in the backing only, which then owns the content (the host's O)
///
/// E is not needed: the host never sees content that is only in the frame. Transitions:
///
///   any      -> modified   a writing use is released
///   modified -> shared     its write-back has finished
///   shared   -> backed     evicted
///   backed   -> shared     its fetch has finished
///   any      -> invalid    discarded
///   any      -> backed     the host writes it: the block is *left* to the host, without a frame,
///                          until the device uses it
///
/// Invariant (`is_valid()`), over blocks b and extents e:
///   e.owner = b <=> b.extent = e;  e.claimant = b <=> e belongs to b.claim
///   b.extent = none or b.claim = none;  b.claim != none => pins(b) > 0
///   content(b) in {modified, shared} => b has a frame
///   content(b) = backed and b has a frame => fetching(b), or b is held to be overwritten
///   fetching(b) => content(b) in {backed, invalid};  writing_back(b) => {modified, invalid}
///   claimed frames are being written back and not pinned
///   b in list L(b) <=> b has a frame, pins(b) = 0, no transfer: discarded, clean or dirty by its
///     content; lists are sorted by last use
///   a block that is written has one pin
///   left(b) => content(b) = backed;  the host writes b => b has no frame, pins or transfer
///   totals = sums over all b;  free gaps + claimed gaps + resident = pool
///
/// It has more than 30 functions because each transition of a block is one.
///
/// Pure. Not thread-safe.
class ResidentBlocks {
 public:
  using Extent = FrameSpace::Extent;
  static constexpr Extent none = FrameSpace::none;

  struct Block {
    std::uint64_t bytes = 0;  ///< as given to add()
    std::uint64_t frame_bytes = 0;
    std::uint64_t last_use = 0;
    Extent extent = none;
    Extent claim = none;  ///< space that is being emptied for it
    std::int32_t pins = 0;
    protocol::TileId tile{};
    std::int32_t priority = 0;  ///< of its transfers
    BlockContent content = BlockContent::invalid;
    protocol::AccessMode held_as = protocol::AccessMode::read;  ///< while pins > 0
    bool exists = false;
    bool fetching = false;
    bool writing_back = false;
    bool is_left = false;        ///< backed because the host wrote it
    bool host_writes = false;    ///< one of the uses on the host does
    std::int32_t host_pins = 0;  ///< uses on the host that were handed out

    [[nodiscard]] bool is_in_transfer() const { return fetching || writing_back; }
    /// Whether the backing may be used with this mode now.
    [[nodiscard]] bool is_usable_on_host(protocol::AccessMode mode) const;
    /// The list that it belongs to.
    [[nodiscard]] EvictionLists::Kind list() const;
    void raise(std::int32_t to) { priority = std::max(priority, to); }
  };

  /// Sums over all blocks.
  struct Totals {
    std::uint64_t resident_bytes = 0;  ///< of frames
    std::uint64_t dirty_bytes = 0;     ///< of frames of modified blocks
    std::uint64_t writing_bytes = 0;   ///< of those that are being written back
    std::int64_t backed = 0;           ///< blocks
    std::int64_t left = 0;             ///< backed ones that the host has written
    std::int32_t fetches = 0;          ///< in flight
    std::int32_t write_backs = 0;      ///< in flight
    friend bool operator==(const Totals&, const Totals&) = default;
  };

  ResidentBlocks(std::uint64_t bytes, std::size_t alignment) : space_(bytes, alignment) {}

  /// A block without content or frame. Ids are reused.
  [[nodiscard]] ResidentBlock add(std::uint64_t bytes);
  /// Removes a block that has no pins and no transfer.
  void remove(ResidentBlock id);

  [[nodiscard]] const Block& at(ResidentBlock id) const {
    return blocks_[static_cast<std::size_t>(id.value())];
  }
  /// As at(); aborts when there is no such block.
  [[nodiscard]] const Block& existing(ResidentBlock id) const;
  [[nodiscard]] std::size_t count() const { return blocks_.size(); }
  [[nodiscard]] std::uint64_t largest_bytes() const;
  void grow(std::uint64_t bytes) { space_.grow(bytes); }
  [[nodiscard]] FrameSpace& space() { return space_; }
  [[nodiscard]] const FrameSpace& space() const { return space_; }
  [[nodiscard]] const EvictionLists& lists() const { return lists_; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] const ResidencyStatistics& statistics() const { return statistics_; }

  // ---- pins -------------------------------------------------------------------------------------
  /// The frame is claimed for another block, and is being written back for it.
  [[nodiscard]] bool is_claimed(const Block& b) const {
    return b.extent != none && space_.claimant(b.extent) != no_block;
  }
  /// Whether a holder with this mode may access the frame now.
  [[nodiscard]] bool is_usable(const Block& b, protocol::AccessMode mode) const;
  /// A request names the block: others are evicted first while it waits.
  void touch(ResidentBlock id);
  void hold(const ResidencyUse& use);
  /// Undoes hold(): the frame was not used.
  void let_go(ResidentBlock id);
  /// Ends a use; a written block becomes modified.
  void release(const ResidencyUse& use);

  // ---- uses on the host -------------------------------------------------------------------------
  /// Writes the content back where a use on the host reads it and the backing lacks it.
  void prepare_on_host(const ResidencyUse& use, ResidencyActions& actions);
  /// Requires Block::is_usable_on_host(). A written block is left to the host.
  void hold_on_host(const ResidencyUse& use);
  void release_on_host(const ResidencyUse& use);

  // ---- content ----------------------------------------------------------------------------------
  /// Makes what the frame (modified) or the backing (backed) holds the content of an unused block
  /// without content.
  void adopt(ResidentBlock id, BlockContent content);
  void discard(ResidentBlock id);

  // ---- frames and transfers ---------------------------------------------------------------------
  void give_frame(ResidentBlock id, Extent extent);
  /// Frees the frame; its content is lost unless the backing has it.
  void take_frame(ResidentBlock id);
  /// Space that is being emptied for the block.
  void set_claim(ResidentBlock id, Extent claim) { mutable_at(id).claim = claim; }
  void raise(ResidentBlock id, std::int32_t priority) { mutable_at(id).raise(priority); }
  void start_fetch(ResidentBlock id, ResidencyActions& actions);
  void start_write_back(ResidentBlock id, std::int32_t priority, ResidencyActions& actions);
  void fetch_finished(ResidentBlock id);
  /// Returns the block that has claimed the frame, which is free then, or no_block.
  [[nodiscard]] ResidentBlock write_back_finished(ResidentBlock id);

  /// O(blocks + extents^2), for tests and HEDDLE_EXPENSIVE.
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] Block& mutable_at(ResidentBlock id) {
    return blocks_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] Block& mutable_existing(ResidentBlock id) {
    static_cast<void>(existing(id));
    return mutable_at(id);
  }
  void set_content(Block& b, BlockContent content);
  /// Moves the block to the list and position that its state and last use require.
  void relist(ResidentBlock id);
  [[nodiscard]] bool has_valid_state(ResidentBlock id) const;
  [[nodiscard]] Totals summed() const;

  FrameSpace space_;
  std::vector<Block> blocks_;
  std::vector<ResidentBlock> unused_;  ///< ids for reuse
  EvictionLists lists_;
  Totals totals_;
  std::uint64_t clock_ = 0;  ///< counts uses
  ResidencyStatistics statistics_;
};

}  // namespace heddle
