#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/id_table.hpp"
#include "node-runtime/transport/p2p/receive.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"

namespace heddle::p2p {

/// The receives under way, and the pieces of their messages from where they arrive to the receives'
/// memory.
///
/// Invariant (`is_valid()`), for every receive r that is expected or has a message:
///   0 <= r.done <= r.posted <= r.bytes
///   r.in_flight = |pieces of r under way|
/// for the host's in slots and every ring:
///   |used slots| = |slots and given of its receives| + |their pieces under way with a slot|
/// and for flows:  |free flows| + |receives with a flow| = next_flow.
///
/// No deadlock: a receive takes all slots that it needs before it is granted and keeps them to its
/// end; they become free again by unpacking, which does not wait.
///
/// Thread: the progress thread only.
class Receives {
 public:
  using Statistics = std::array<std::int64_t, path_count>;  ///< received messages by path

  explicit Receives(const SharedParts& shared) : shared_(shared) {}

  Receive& add(std::shared_ptr<Receive> receive);
  /// Null: it is over.
  [[nodiscard]] std::shared_ptr<Receive> find(std::int64_t id) const;
  /// The first bytes of an expected message that are in its room; 0 where it comes by another way
  /// than by pieces of the wire.
  [[nodiscard]] std::int64_t arrived(std::int64_t id) const;

  // ---- places ---------------------------------------------------------------------------------
  /// The slots of this node that the receive's pieces pass through.
  [[nodiscard]] Staging& slots_of(const Receive& receive) const;
  void take_flow(Receive& receive);
  /// Slots and flow.
  void give_back(Receive& receive);

  // ---- pieces ---------------------------------------------------------------------------------
  /// Receives over the wire, as many pieces as there are places for.
  void post_pieces(Receive& receive);
  /// The same for all pieces of an expected message, before its sender knows of it.
  void post_expected(Receive& receive);
  /// An empty piece has come: an expected message does not come by the pieces that were posted.
  void blank(const Piece& piece);
  /// Unpacks an eager message by way of its slot.
  void unpack_payload(Receive& receive);
  /// A device reads the whole message from `receive.from`.
  void fetch(Receive& receive);
  /// This node's processor has read so much of the message.
  void was_read(Receive& receive, std::int64_t bytes);
  /// The sender has written a piece into a slot or into the memory, or confirms that packing
  /// succeeded.
  void filled(NodeId from, const NoteHeader& header);
  void ended(const Piece& piece, const std::optional<std::string>& failure);
  void sender_broke(Receive& receive, const Error& why);

  // ---- ends -----------------------------------------------------------------------------------
  /// Tells the sender why its message is not received.
  void refuse(const Receive& receive, const Error& why);
  /// Fails the receive once no piece is in flight, so that its memory is not written any more.
  void fail(Receive& receive, Error why);
  void end(Receive& receive);
  void cancelled(Receive& receive);
  void lost(NodeId node, const Error& why);
  void abandon(const Error& why);

  /// `node` frees memory that it has referred to: no receive under way maps it for the next
  /// message.
  void taken_back(NodeId node, const ReleasedMemory& memory);
  /// Describes the receives into an allocation; empty: there are none.
  [[nodiscard]] std::string user_of(const Release& memory) const;
  [[nodiscard]] std::size_t size() const { return receives_.size(); }
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  /// Pieces that are posted for expected messages.
  [[nodiscard]] std::int32_t posted_ahead() const { return posted_ahead_; }
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] bool drain(Receive& receive, const Piece& piece, const Spot& from);
  static void count_prefix(Receive& receive, const StreamRange& range);
  void piece_is_in(Receive& receive, const Piece& piece);
  void give_slot(Receive& receive, Staging::Slot slot);
  void end_if_all_is_here(Receive& receive);
  void map_source_for_the_next(const Receive& receive);
  void forget(Receive& receive);

  SharedParts shared_;
  IdTable<std::shared_ptr<Receive>> receives_;
  std::vector<FlowId> free_flows_;
  std::int32_t next_flow_ = 0;
  std::int32_t posted_ahead_ = 0;
  Statistics statistics_{};
};

}  // namespace heddle::p2p
