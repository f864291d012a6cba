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

/// Which blocks of one device are in its memory: the coherence directory and the out-of-core
/// device memory of 000 sections 3.4 and 3.5, as a state machine without threads, clock or device.
///
/// A block has a *frame* (an offset in the device's pool) while it is resident, and, once it was
/// written back, a *backing* in host memory that the caller keeps. Where its content is, in the
/// terms of MOESI for the device's copy:
///
///   invalid   I        nowhere: never written, or discarded; a frame that is left may be reclaimed
///   modified  M        in the frame only; the backing is absent or stale
///   shared    S        in the frame and, equal, in the backing
///   backed    I here   in the backing only, which then owns the content (the host's O)
///
/// E has no use: what only the device has, the host has never seen. Transitions:
///
///   any      -> modified   a use that writes is released
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
/// Methods that take `actions` are events; what is to be done in consequence is added there. The
/// caller carries fetches and write-backs out at any time and in any order, and reports their end.
/// Not thread-safe: the caller serialises.
///
/// *Urgency.* Requests get their space in the order in which they come, so who asks chooses; of the
/// transfers that are to be done for them the caller does those first whose blocks are the most
/// urgent then (priority_of()): as urgent as the most urgent of those who hold them, or whose space
/// they are making room in; what is written back ahead of need is the least of all. A transfer that
/// others overtake waits for those of more urgent tasks alone. These come to an end, even if what
/// would lead to more of them waits for this very block (a message, say): then no more are asked
/// for.
///
/// *Contract of users.* From its request (or successful try_acquire) to its release, a block that a
/// use writes is used by nobody else, and a block that a use reads is not written, discarded or
/// removed. What is read has a content.
///
/// *Service.* Requests are placed strictly first-in-first-out: a request is *placed* when it holds
/// (has pinned) all its blocks and each has a frame or a claim to one; the first that is not placed
/// is the *head*. Only when nobody waits does a later request take space, so fetches for later
/// requests use what earlier ones have no need of. Placed requests become ready in any order.
///
/// *Space* for a block: the lowest gap that suffices; else the cheapest window of gaps and frames
/// that are neither pinned nor being fetched: fewest bytes to write back, then least recently used
/// (so discarded frames go first, then clean ones, then modified ones). Where frames of the window
/// must be written back first, it is claimed for the block: nobody else gets in until it is free.
///
/// *Progress.* A placed request waits only for transfers, which end. The head waits for placed
/// requests and for pins handed out: both end if every holder releases what it has without waiting
/// for the head. Then only the head's own blocks and those of others who do wait (a copy that
/// holds its source until its target is resident) are pinned, P at most; P blocks of at most M
/// bytes cut a pool of S bytes into at most P + 1 stretches, of (S - P M) / (P + 1) bytes on the
/// average, so S >= (2 P + 1) M leaves one of M. Where all blocks are of one size M, frames begin
/// at multiples of M (each at the end of another or of a gap of whole frames), no stretch is
/// wasted, and S >= (P + 1) M suffices. minimum_bytes() says so; with a smaller pool a request may
/// prove impossible: the event that finds the head unplaced while nobody else holds anything and
/// nothing is under way drops it and throws Error(usage). Meanwhile try_acquire may overtake the
/// head `overtakes_max` times at most.
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
  static constexpr std::size_t uses_max = 16;  ///< of one request
  /// What kernels and copy engines like.
  static constexpr std::size_t alignment_usual = 256;

  enum class Content : std::uint8_t { invalid, modified, shared, backed };

  /// `write`: the content is overwritten as a whole, so it is not fetched.
  struct Use {
    ResidentBlock block;
    protocol::AccessMode mode = protocol::AccessMode::read;
    protocol::TileId tile{};  ///< that the block holds: said with its transfers, no more
    /// Of who uses it, as tasks have it: how urgent the block's transfers are meanwhile.
    std::int32_t priority = 0;
  };

  /// Never used twice.
  using TicketId = Index<struct ResidencyTicketTag, std::int64_t>;

  struct Transfer {
    ResidentBlock block;
    std::uint64_t offset = 0;  ///< of its frame in the pool
    std::uint64_t bytes = 0;   ///< as given to add_block
    protocol::TileId tile{};   ///< of the last use
  };

  /// Filled by events, cleared by the caller.
  struct Actions {
    std::vector<Transfer> fetches;      ///< backing to frame; then fetch_finished
    std::vector<Transfer> write_backs;  ///< frame to backing; then write_back_finished
    std::vector<TicketId> ready;        ///< all blocks are there and pinned; later release()
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
    /// 0..1: modified bytes of the pool, under pressure. Writing back ahead of need begins late: a
    /// tile that is updated again and again would be written each time, and its next update would
    /// wait for that.
    double dirty_share_max = 0.9;
    std::int32_t early_writes =
        2;  ///< most write-backs under way when one is started ahead of need
    std::int32_t overtakes_max = 64;  ///< successful try_acquire's while one head waits
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
  /// while at most `others_pinned` frames are held by those who wait for it. `equal` holds if
  /// blocks of one size only ever were in the pool. See Progress above.
  [[nodiscard]] static std::uint64_t minimum_bytes(std::uint64_t largest_block_bytes,
                                                   std::size_t uses, std::size_t others_pinned,
                                                   BlockSizes sizes = BlockSizes::mixed,
                                                   std::size_t alignment = alignment_usual);

  /// Bytes of the pool that the frame of a block takes.
  [[nodiscard]] static std::uint64_t frame_bytes(std::uint64_t block_bytes,
                                                 std::size_t alignment = alignment_usual) {
    return FrameSpace(0, alignment).rounded(block_bytes);
  }

  explicit Residency(const Options& options);

  /// A block without content; its frame comes with its first use. Ids are reused.
  [[nodiscard]] ResidentBlock add_block(std::uint64_t bytes);
  /// Forgets a block that nobody uses and that is not in transfer: the caller discards it, waits
  /// for the end of its transfer if there is one (is_in_transfer), and then removes it.
  void remove_block(ResidentBlock id);

  /// Pins all blocks if they can be used at once: resident and in no transfer that forbids it, or
  /// (to be overwritten) given a gap or a discarded frame while nobody waits. Else false, and
  /// nobody notices. To be followed by release().
  [[nodiscard]] bool try_acquire(std::span<const Use> uses) {
    return try_acquire(uses, Overtaking::limited);
  }
  /// `free`: however many have overtaken the head. For those whose releases the head of another
  /// node may wait for, as theirs may wait for this one's.
  enum class Overtaking : std::uint8_t { limited, free };
  [[nodiscard]] bool try_acquire(std::span<const Use> uses, Overtaking overtaking);

  /// Queues an acquisition of all of at most `uses_max` distinct blocks; the ticket appears in
  /// Actions::ready, perhaps at once. Throws Error(usage) if the blocks exceed the pool.
  TicketId request(std::span<const Use> uses, Actions& actions);
  /// Takes a request back; contents are as before. False if it has been handed out.
  bool cancel(TicketId ticket, Actions& actions);
  /// Ends uses that were handed out, with the modes of then; written blocks are modified.
  void release(std::span<const Use> uses, Actions& actions);

  /// Asks for blocks on the host: the ticket appears in Actions::ready, perhaps at once, when the
  /// content is in the backings; what is written has no frame from then on. Needs no space.
  TicketId request_host(std::span<const Use> uses, Actions& actions);
  /// Ends uses on the host, with the modes of then; written blocks are left there.
  void release_host(std::span<const Use> uses, Actions& actions);
  /// Bytes that would be written back for these uses on the host now.
  [[nodiscard]] std::uint64_t missing_host_bytes(std::span<const Use> uses) const;

  /// Gives a block without content, which nobody uses, whatever its frame holds, one that costs
  /// nobody anything if it has none: for readers of what was never written. False if there is none.
  [[nodiscard]] bool adopt_frame(ResidentBlock block);
  /// The same with what its backing holds.
  void adopt_backing(ResidentBlock block);
  /// The content is no longer needed; the block is not in use. A transfer under way goes on to its
  /// end, which the caller still reports.
  void discard(ResidentBlock id, Actions& actions);
  void fetch_finished(ResidentBlock id, Actions& actions);
  void write_back_finished(ResidentBlock id, Actions& actions);

  /// Where the frame of a resident block begins. Stays while the block is pinned.
  [[nodiscard]] std::uint64_t offset_of(ResidentBlock id) const;
  [[nodiscard]] bool is_resident(ResidentBlock id) const { return at(id).extent != none; }
  [[nodiscard]] bool is_in_transfer(ResidentBlock id) const;
  /// How urgent a block's transfer is.
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
  /// Of transfers that nobody waits for.
  static constexpr std::int32_t least_urgent = std::numeric_limits<std::int32_t>::min();
  enum class ListKind : std::uint8_t { discarded, clean, dirty, off };

  struct Block {
    std::uint64_t bytes = 0;  ///< as asked for
    std::uint64_t frame_bytes = 0;
    std::uint64_t last_use = 0;
    Extent extent = none;
    Extent claim = none;  ///< space that is being emptied for it
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
  /// Blocks that may go, least recently used first.
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
  /// Whether a holder with this mode may touch the frame now.
  [[nodiscard]] bool is_usable(const Block& b, protocol::AccessMode mode) const;

  void set_content(Block& b, Content content);
  void leave_to_host(Block& b);
  [[nodiscard]] static bool is_usable_on_host(const Block& b, protocol::AccessMode mode);
  void serve_host(Actions& actions);
  [[nodiscard]] static ListKind list_for(const Block& b);
  /// Brings the block into the list that its state asks for, at the place that its last use asks.
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
  /// All that an event may have made possible.
  void serve(Actions& actions);

  [[nodiscard]] bool blocks_are_valid() const;
  [[nodiscard]] bool lists_are_valid() const;
  [[nodiscard]] bool sums_are_valid() const;
  [[nodiscard]] bool queue_is_valid() const;

  Options options_;
  FrameSpace space_;
  std::vector<Block> blocks_;
  std::vector<ResidentBlock> unused_;   ///< ids to be given again
  std::array<List, 3> lists_;           ///< by ListKind
  std::vector<Request> queue_;          ///< not ready, oldest first
  std::size_t placed_ = 0;              ///< requests from the front of the queue that are placed
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
