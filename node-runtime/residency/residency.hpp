#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"
#include "node-runtime/residency/frame_space.hpp"

namespace heddle {

/// Which blocks of a device are in its memory: the coherence directory and the out-of-core device
/// memory of 000 sections 3.4 and 3.5, as a state machine without threads, clock or device.
///
/// A resident block has a *frame* (an offset in the device's pool); once it has been written back,
/// it also has a *backing* in host memory, kept by the caller. MOESI states of the device's copy:
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
///
/// *The host's use.* Who computes on the host works on backings: request_host() brings the content
/// there (modified blocks are written back), and what the host writes is *left* there: backed,
/// without a frame, until the device asks for it. Two more transitions:
///
///   modified -> shared     written back because the host reads it
///   any      -> backed     the host writes it
///
/// The host's uses keep to the contract below as the device's do, hold no frame, and wait only for
/// transfers of their own blocks, which end; so they and the queue never wait for each other.
///
/// Methods with a parameter `actions` are events; the resulting actions are added to it. The caller
/// carries out fetches and write-backs at any time, in any order, and reports their end. Not
/// thread-safe: the caller serialises.
///
/// *Urgency.* Requests get space in the order of their calls. Of the pending transfers the caller
/// does those with the highest priority_of() first: the maximum over the requests that hold the
/// block or wait for the space it frees; early write-backs come last. A transfer can be overtaken
/// only by those of more urgent tasks. These are finitely many, even if later ones wait for this
/// block (through a message, say), since then no more are requested.
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
/// *Space* for a block: the lowest sufficient gap; else the cheapest window of gaps and frames that
/// are neither pinned nor being fetched: fewest bytes to write back, then least recently used (so
/// discarded frames first, then clean, then modified ones). If frames of the window must be written
/// back first, the window is claimed for the block: no other block enters it.
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
/// *Pressure*: somebody waits for space, or the content of some block is in its backing only that
/// the host has not left there. Neither happens while everything fits, so a run in core moves
/// nothing but what the host uses. Under pressure
/// modified blocks are written back ahead of need, least recently used first, while their bytes
/// exceed `dirty_share_max` of the pool.
///
/// Cost: acquiring what is resident and releasing it is O(uses); with n extents, a block that takes
/// the place of others is O(n), or O(1) where blocks are of one size and a clean one is there; a
/// write-back's end is O(n). No event allocates memory once queue and tables have grown.
///
/// Invariant (`is_valid()`), over blocks b, extents e, requests q in their order:
///   e.owner = b <=> b.extent = e;  e.claimant = b <=> e belongs to b.claim
///   b.extent = none or b.claim = none;  b.claim != none => pins(b) > 0
///   content(b) in {modified, shared} => b has a frame
///   content(b) = backed and b has a frame => fetching(b), or b is held to be overwritten
///   fetching(b) => content(b) in {backed, invalid};  writing_back(b) => {modified, invalid}
///   claimed frames are being written back and not pinned
///   b in list L(b) <=> b has a frame, pins(b) = 0, no transfer: discarded, clean or dirty by its
///     content; lists are sorted by last use
///   pins(b) = uses of b handed out + uses of b held by q;  a block that is written has one pin
///   resident = sum of frames;  free gaps + claimed gaps + resident = pool
///   left(b) => content(b) = backed;  the host writes b => b has no frame, pins or transfer
///   dirty = sum of content(b) = modified;  writing = sum of those that are being written back
///   q[i], if it has uses, holds all its blocks <=> i < placed;  it holds none if i > placed
///   overtakes <= overtakes_max, 0 if placed = size of the queue
class Residency {
 public:
  static constexpr std::size_t uses_max = 16;  ///< per request
  /// Alignment for kernels and copy engines.
  static constexpr std::size_t alignment_usual = 256;

  enum class Content : std::uint8_t { invalid, modified, shared, backed };

  /// `write`: the whole content is overwritten, so it is not fetched.
  struct Use {
    ResidentBlock block;
    protocol::AccessMode mode = protocol::AccessMode::read;
    protocol::TileId tile{};  ///< tile in the block; only passed on with its transfers
    /// Priority of the user: that of the block's transfers meanwhile.
    std::int32_t priority = 0;
  };

  /// Unique for ever.
  using TicketId = Index<struct ResidencyTicketTag, std::int64_t>;

  struct Transfer {
    ResidentBlock block;
    std::uint64_t offset = 0;  ///< of the frame in the pool
    std::uint64_t bytes = 0;   ///< as given to add_block
    protocol::TileId tile{};   ///< of the last use
  };

  /// Filled by events, cleared by the caller.
  struct Actions {
    std::vector<Transfer> fetches;      ///< backing to frame; then call fetch_finished
    std::vector<Transfer> write_backs;  ///< frame to backing; then call write_back_finished
    std::vector<TicketId> ready;        ///< all blocks present and pinned; then call release()
    [[nodiscard]] bool empty() const {
      return fetches.empty() && write_backs.empty() && ready.empty();
    }
    void clear() {
      fetches.clear();
      write_backs.clear();
      ready.clear();
    }
  };

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

  struct Statistics {
    std::int64_t fetches = 0;  ///< finished
    std::uint64_t fetched_bytes = 0;
    std::int64_t write_backs = 0;  ///< finished
    std::uint64_t written_bytes = 0;
    std::int64_t evictions = 0;            ///< frames given up whose content stays in the backing
    std::uint64_t resident_bytes_max = 0;  ///< of frames
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

  /// A block without content; it gets a frame at its first use. Ids are reused.
  [[nodiscard]] ResidentBlock add_block(std::uint64_t bytes);
  /// Removes a block that is not in use or in transfer: discard it, wait for the end of its
  /// transfer (is_in_transfer), then remove it.
  void remove_block(ResidentBlock id);

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
  [[nodiscard]] bool adopt_frame(ResidentBlock block);
  /// The same with the content of its backing.
  void adopt_backing(ResidentBlock block);
  /// The content is no longer needed; the block is not in use. A transfer in flight continues, and
  /// the caller still reports its end.
  void discard(ResidentBlock id, Actions& actions);
  void fetch_finished(ResidentBlock id, Actions& actions);
  void write_back_finished(ResidentBlock id, Actions& actions);

  /// Offset of a resident block's frame; constant while the block is pinned.
  [[nodiscard]] std::uint64_t offset_of(ResidentBlock id) const;
  [[nodiscard]] bool is_resident(ResidentBlock id) const { return at(id).extent != none; }
  [[nodiscard]] bool is_in_transfer(ResidentBlock id) const;
  /// Priority of a block's transfers.
  [[nodiscard]] std::int32_t priority_of(ResidentBlock id) const { return at(id).priority; }
  [[nodiscard]] Content content(ResidentBlock id) const { return at(id).content; }

  [[nodiscard]] std::uint64_t bytes() const { return space_.bytes(); }
  [[nodiscard]] std::uint64_t resident_bytes() const { return resident_bytes_; }
  [[nodiscard]] std::uint64_t dirty_bytes() const { return dirty_bytes_; }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }  ///< requests not ready
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }

  /// O(everything); for tests and HEDDLE_EXPENSIVE.
  [[nodiscard]] bool is_valid() const;

 private:
  using Extent = FrameSpace::Extent;
  static constexpr Extent none = FrameSpace::none;
  /// For transfers that no request waits for.
  static constexpr std::int32_t least_urgent = std::numeric_limits<std::int32_t>::min();
  enum class ListKind : std::uint8_t { discarded, clean, dirty, off };

  struct Block {
    std::uint64_t bytes = 0;  ///< as given to add_block()
    std::uint64_t frame_bytes = 0;
    std::uint64_t last_use = 0;
    Extent extent = none;
    Extent claim = none;  ///< space being emptied for it
    std::int32_t pins = 0;
    ResidentBlock before = no_block;
    ResidentBlock after = no_block;
    protocol::TileId tile{};
    std::int32_t priority = 0;
    ListKind list = ListKind::off;
    Content content = Content::invalid;
    protocol::AccessMode held_as = protocol::AccessMode::read;  ///< while pins > 0
    bool exists = false;
    bool fetching = false;
    bool writing_back = false;
    bool is_left = false;        ///< backed because the host wrote it
    bool host_writes = false;    ///< one of the uses on the host does
    std::int32_t host_pins = 0;  ///< uses on the host that were handed out
  };
  /// Evictable blocks, least recently used first.
  struct List {
    ResidentBlock first = no_block;
    ResidentBlock last = no_block;
  };
  struct Request {
    TicketId id;
    std::uint8_t count = 0;
    std::uint16_t held = 0;  ///< bit i: use i is pinned and has a frame or a claim
    std::array<Use, uses_max> uses;
    [[nodiscard]] bool holds(std::size_t i) const { return (held >> i & 1U) != 0; }
  };

  [[nodiscard]] Request new_request(std::span<const Use> uses);
  [[nodiscard]] std::span<const Use> uses_of(const Request& request) const {
    return std::span(request.uses).first(request.count);
  }
  [[nodiscard]] Block& at(ResidentBlock id) {
    return blocks_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] const Block& at(ResidentBlock id) const {
    return blocks_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] Block& existing(ResidentBlock id);
  [[nodiscard]] bool somebody_waits() const { return placed_ < queue_.size(); }
  [[nodiscard]] bool is_claimed(const Block& b) const {
    return b.extent != none && space_.claimant(b.extent) != no_block;
  }
  /// Whether a holder with this mode may access the frame now.
  [[nodiscard]] bool is_usable(const Block& b, protocol::AccessMode mode) const;

  void set_content(Block& b, Content content);
  void leave_to_host(Block& b);
  [[nodiscard]] static bool is_usable_on_host(const Block& b, protocol::AccessMode mode);
  void serve_host(Actions& actions);
  [[nodiscard]] static ListKind list_for(const Block& b);
  /// Moves the block to the list and position that its state and last use require.
  void relist(ResidentBlock id);
  void unlink(ResidentBlock id);
  void link(ResidentBlock id);

  void hold(const Use& use);
  void let_go(ResidentBlock id);
  void give_frame(ResidentBlock id, Extent extent);
  void take_frame(ResidentBlock id);
  void start_fetch(ResidentBlock id, Actions& actions);
  void start_write_back(ResidentBlock id, std::int32_t priority, Actions& actions);
  static void raise(Block& b, std::int32_t priority) {
    b.priority = std::max(b.priority, priority);
  }

  [[nodiscard]] Extent allocate_unused(ResidentBlock id);
  [[nodiscard]] bool take_unused_frames(std::span<const Use> uses);
  [[nodiscard]] bool provide_space(ResidentBlock id, Actions& actions);
  [[nodiscard]] ResidentBlock lone_victim(std::uint64_t bytes) const;
  void frame_arrived(ResidentBlock id, Actions& actions);
  void try_take_claim(ResidentBlock id, Actions& actions);
  [[nodiscard]] bool place(Request& request, Actions& actions);
  void hand_out(Actions& actions);
  void write_back_early(Actions& actions);
  void drop_request(std::size_t index);
  void refuse_head();
  /// Places and hands out requests that an event has made possible.
  void serve(Actions& actions);

  [[nodiscard]] bool blocks_are_valid() const;
  [[nodiscard]] bool lists_are_valid() const;
  [[nodiscard]] bool sums_are_valid() const;
  [[nodiscard]] bool queue_is_valid() const;

  Options options_;
  FrameSpace space_;
  std::vector<Block> blocks_;
  std::vector<ResidentBlock> unused_;   ///< ids for reuse
  std::array<List, 3> lists_;           ///< by ListKind
  std::vector<Request> queue_;          ///< not ready, oldest first
  std::size_t placed_ = 0;              ///< placed requests, at the front of the queue
  std::vector<Request> host_queue_;     ///< of the host, not ready, oldest first
  std::vector<ResidentBlock> victims_;  ///< scratch
  std::uint64_t clock_ = 0;             ///< counts uses
  TicketId next_ticket_{1};
  std::uint64_t resident_bytes_ = 0;
  std::uint64_t dirty_bytes_ = 0;
  std::uint64_t writing_bytes_ = 0;  ///< modified and being written back
  std::int64_t backed_count_ = 0;
  std::int64_t left_count_ = 0;
  std::int64_t handed_out_ = 0;  ///< uses
  std::int32_t fetches_ = 0;     ///< in flight
  std::int32_t write_backs_ = 0;
  std::int32_t overtakes_ = 0;
  Statistics statistics_;
};

}  // namespace heddle
