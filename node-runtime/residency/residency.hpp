#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/residency/block_frames.hpp"
#include "node-runtime/residency/resident_blocks.hpp"

namespace heddle {

/// Which blocks of a device are in its memory: the coherence directory and the out-of-core device
/// memory of 000 sections 3.4 and 3.5, as a state machine without threads, clock or device.
///
/// Three classes share the work: ResidentBlocks has the state of each block, BlockFrames finds
/// space for it, and this class serves requests for several blocks at a time.
///
/// *Use on the host.* A task on the host works on backings: request_host() brings the content there
/// (modified blocks are written back), and the blocks that the host writes are left to it: backed,
/// without a frame, until the device uses them. Uses on the host keep to the contract below, hold
/// no frame, and wait only for transfers of their own blocks, which end; so they and the queue
/// never wait for each other.
///
/// Methods with a parameter `actions` are events; the resulting actions are added to it. The caller
/// carries out fetches and write-backs at any time, in any order, and reports their end. Not
/// thread-safe: the caller serialises.
///
/// *Urgency.* Requests get space in the order of their calls. Of the pending transfers the caller
/// does those with the highest priority_of() first: the maximum over the requests that hold the
/// block or wait for the space it frees; early write-backs come last. A transfer can be overtaken
/// only by transfers of more urgent tasks. These are finitely many, even if later tasks wait for
/// this block (through a message, for example), since then no more are requested.
///
/// *Contract of users.* From request (or successful try_acquire) to release, a block with a writing
/// use has no other use, and a block with a reading use is not written, discarded or removed. A
/// read block has content.
///
/// *Service.* Requests are placed strictly first-in-first-out. A request is *placed* when it holds
/// (has pinned) all its blocks and each has a frame or a claim to one; the first that is not placed
/// is the *head*. A later request takes space only when none waits, so fetches of later requests
/// use only what earlier ones do not need. Placed requests become ready in any order.
///
/// *Progress.* A placed request waits only for transfers, which end. The head waits for placed
/// requests and for pins handed out: both end if every holder releases without waiting for the
/// head. Then only the head's own blocks and those of holders that do wait (a copy that holds its
/// source until its target is resident) are pinned, at most P. P blocks of at most M bytes cut a
/// pool of S bytes into at most P + 1 gaps, of (S - P M) / (P + 1) bytes on average, so S >= (2 P +
/// 1) M leaves one of M. If all blocks have one size M, frames begin at multiples of M, no gap is
/// wasted, and S >= (P + 1) M suffices: minimum_bytes(). In a smaller pool a request may be
/// impossible: the event that finds the head unplaced, no other holder and no transfer drops it and
/// throws Error(usage). try_acquire may overtake the head at most `overtakes_max` times.
///
/// *Pressure*: a request waits for space, or a block has been evicted. Neither happens while
/// everything fits, so a run in core moves only the blocks that the host uses. Under pressure
/// modified blocks are written back ahead of need, least recently used first, while their bytes
/// exceed `dirty_share_max` of the pool.
///
/// Cost: acquiring resident blocks and releasing them is O(uses). No event allocates memory once
/// queue and tables have grown.
///
/// Invariant (`is_valid()`), over blocks b and requests q in their order:
///   that of ResidentBlocks
///   pins(b) = uses of b handed out + uses of b held by q
///   q[i], if it has uses, holds all its blocks <=> i < placed;  it holds none if i > placed
///   a block that q holds has a frame or a claim
///   overtakes <= overtakes_max, 0 if placed = size of the queue
///
/// It has more than 30 functions because each event is one, and a third of them only ask
/// ResidentBlocks.
class Residency {
 public:
  using Content = BlockContent;
  using Use = ResidencyUse;
  using TicketId = ResidencyTicket;
  using Transfer = ResidencyTransfer;
  using Actions = ResidencyActions;
  using Statistics = ResidencyStatistics;

  static constexpr std::size_t uses_max = residency_uses_max;  ///< per request
  /// Alignment for kernels and copy engines.
  static constexpr std::size_t alignment_usual = 256;

  struct Options {
    std::uint64_t bytes = 0;                  ///< of the pool
    std::size_t alignment = alignment_usual;  ///< of frames
    /// Fraction 0..1 of the pool: modified bytes above which, under pressure, early write-backs
    /// start. High, since a tile that is updated repeatedly would be written each time and delay
    /// its next update.
    double dirty_share_max = 0.9;
    std::int32_t early_writes = 2;    ///< early write-backs in flight at most
    std::int32_t overtakes_max = 64;  ///< successful try_acquire() while a head waits
  };

  enum class BlockSizes : std::uint8_t { equal, mixed };

  /// Bytes of a pool that never refuses a request of `uses` blocks of at most `largest_block_bytes`
  /// while holders that wait for it have at most `others_pinned` frames. `equal`: all blocks ever
  /// in the pool have one size. See Progress above.
  [[nodiscard]] static std::uint64_t minimum_bytes(std::uint64_t largest_block_bytes,
                                                   std::size_t uses, std::size_t others_pinned,
                                                   BlockSizes sizes = BlockSizes::mixed,
                                                   std::size_t alignment = alignment_usual);

  /// Bytes of the pool that a block's frame takes.
  [[nodiscard]] static std::uint64_t frame_bytes(std::uint64_t block_bytes,
                                                 std::size_t alignment = alignment_usual) {
    return FrameSpace(0, alignment).rounded(block_bytes);
  }

  explicit Residency(const Options& options);
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;
  ~Residency() = default;

  /// `bytes` more at the pool's end. Before any request: none that waits is served by this.
  void grow(std::uint64_t bytes) { blocks_.grow(bytes); }

  /// A block without content; it gets a frame at its first use. Ids are reused.
  [[nodiscard]] ResidentBlock add_block(std::uint64_t bytes) { return blocks_.add(bytes); }
  /// Removes a block that is not in use or in transfer: discard it, wait for the end of its
  /// transfer (is_in_transfer), then remove it.
  void remove_block(ResidentBlock id) { blocks_.remove(id); }

  /// Pins all blocks if they are usable at once: resident and in no conflicting transfer, or (to be
  /// overwritten) given a gap or a discarded frame while no request waits. Else returns false
  /// without effect. Follow it by release().
  [[nodiscard]] bool try_acquire(std::span<const Use> uses) {
    return try_acquire(uses, Overtaking::limited);
  }
  /// `free`: not limited by `overtakes_max`. For uses whose release another node's head may wait
  /// for, while theirs may wait for this head.
  enum class Overtaking : std::uint8_t { limited, free };
  [[nodiscard]] bool try_acquire(std::span<const Use> uses, Overtaking overtaking);

  /// Queues an acquisition of at most `uses_max` distinct blocks; the ticket appears in
  /// Actions::ready, perhaps at once. Throws Error(usage) if the blocks exceed the pool.
  TicketId request(std::span<const Use> uses, Actions& actions);
  /// Cancels a request; contents are unchanged. False if it was already handed out.
  bool cancel(TicketId ticket, Actions& actions);
  /// Ends uses that were handed out, with the same modes; written blocks become modified.
  void release(std::span<const Use> uses, Actions& actions);

  /// Asks for blocks on the host: the ticket appears in Actions::ready, perhaps at once, when the
  /// content is in the backings; what is written has no frame from then on. Needs no space.
  TicketId request_host(std::span<const Use> uses, Actions& actions);
  /// Ends uses on the host, with the modes of then; written blocks are left there.
  void release_host(std::span<const Use> uses, Actions& actions);
  /// Bytes that would be written back for these uses on the host now.
  [[nodiscard]] std::uint64_t missing_host_bytes(std::span<const Use> uses) const;

  /// Makes whatever a frame holds the content of an unused block without content, for readers of a
  /// tile that was never written. Without a frame it gets one that costs no other block anything;
  /// false if there is none.
  [[nodiscard]] bool adopt_frame(ResidentBlock block) {
    return frames_.adopt_frame(
        block, somebody_waits() ? BlockFrames::MayTakeSpace::no : BlockFrames::MayTakeSpace::yes);
  }
  /// The same with the content of its backing.
  void adopt_backing(ResidentBlock block) { blocks_.adopt(block, Content::backed); }
  /// The content is no longer needed; the block is not in use. A transfer in flight continues, and
  /// the caller still reports its end.
  void discard(ResidentBlock id, Actions& actions);
  void fetch_finished(ResidentBlock id, Actions& actions);
  void write_back_finished(ResidentBlock id, Actions& actions);

  /// Offset of a resident block's frame; constant while the block is pinned.
  [[nodiscard]] std::uint64_t offset_of(ResidentBlock id) const;
  [[nodiscard]] bool is_resident(ResidentBlock id) const {
    return blocks_.at(id).extent != FrameSpace::none;
  }
  [[nodiscard]] bool is_in_transfer(ResidentBlock id) const {
    return blocks_.at(id).is_in_transfer();
  }
  /// Priority of a block's transfers.
  [[nodiscard]] std::int32_t priority_of(ResidentBlock id) const { return blocks_.at(id).priority; }
  [[nodiscard]] Content content(ResidentBlock id) const { return blocks_.at(id).content; }

  [[nodiscard]] std::uint64_t bytes() const { return blocks_.space().bytes(); }
  [[nodiscard]] std::uint64_t resident_bytes() const { return blocks_.totals().resident_bytes; }
  [[nodiscard]] std::uint64_t dirty_bytes() const { return blocks_.totals().dirty_bytes; }
  /// Requests that are not ready, of the device and of the host.
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting_on_host() const { return host_queue_.size(); }
  [[nodiscard]] const Statistics& statistics() const { return blocks_.statistics(); }

  /// O(everything); for tests and HEDDLE_EXPENSIVE.
  [[nodiscard]] bool is_valid() const;

 private:
  struct Request {
    TicketId id;
    std::uint8_t count = 0;
    std::uint16_t held = 0;  ///< bit i: use i is pinned and has a frame or a claim
    std::array<Use, uses_max> uses;
    [[nodiscard]] bool holds(std::size_t i) const { return (held >> i & 1U) != 0; }
    [[nodiscard]] std::uint32_t all() const {
      return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    }
    [[nodiscard]] std::span<const Use> used() const { return std::span(uses).first(count); }
  };

  [[nodiscard]] Request new_request(std::span<const Use> uses);
  [[nodiscard]] bool somebody_waits() const { return placed_ < queue_.size(); }
  [[nodiscard]] static bool has_space(const ResidentBlocks::Block& b) {
    return b.extent != FrameSpace::none || b.claim != FrameSpace::none;
  }
  /// Hands out requests on the host whose blocks are in their backings.
  void serve_host(Actions& actions);
  [[nodiscard]] bool place(Request& request, Actions& actions);
  void hand_out(Actions& actions);
  void write_back_early(Actions& actions);
  void drop_request(std::size_t index);
  void refuse_head();
  /// Places and hands out requests that an event has made possible.
  void serve(Actions& actions);

  Options options_;
  ResidentBlocks blocks_;
  BlockFrames frames_{blocks_};
  std::vector<Request> queue_;       ///< not ready, oldest first
  std::size_t placed_ = 0;           ///< placed requests, at the front of the queue
  std::vector<Request> host_queue_;  ///< of the host, not ready, oldest first
  TicketId next_ticket_{1};
  std::int64_t handed_out_ = 0;  ///< uses
  std::int32_t overtakes_ = 0;
};

}  // namespace heddle
