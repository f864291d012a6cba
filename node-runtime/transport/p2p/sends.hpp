#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/id_table.hpp"
#include "node-runtime/transport/p2p/send.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"

namespace heddle::p2p {

/// The announced sends, and the transfer of granted ones by pieces from the sender's memory to the
/// places that the receiver has named.
///
/// Invariant (`is_valid()`), for every send s:
///   0 <= s.done <= s.posted <= s.side.bytes - s.missing <= s.side.bytes
///   s.in_flight = |pieces of s under way| + |packed pieces that wait behind one that is not|
///   !s.is_granted => s.in_flight = 0
/// and |used out slots| = |pieces in packing lists| + |pieces on the wire from a slot|.
///
/// A broken send over the wire goes on, since its pieces are posted: with pieces that the receiver
/// drops, or empty ones where they were posted beforehand.
///
/// No deadlock: a send takes an out slot only when it is granted, and the receiver of a granted
/// message has posted, or will post without any other event, the receive for the piece.
///
/// Thread: the progress thread only.
class Sends {
 public:
  explicit Sends(const SharedParts& shared) : shared_(shared) {}

  Send& add(std::shared_ptr<Send> send);
  /// Null: it is over.
  [[nodiscard]] std::shared_ptr<Send> find(std::int64_t id) const;

  // ---- pieces ---------------------------------------------------------------------------------
  /// The send is granted and knows its places.
  void begin(Send& send);
  /// Of a message that is passed on while it arrives these bytes are in memory now.
  void more_is_there(std::int64_t id, std::int64_t bytes);
  /// The receiver has emptied a slot.
  void slot_is_free(const NoteHeader& header);
  void ended(const Piece& piece, const std::optional<std::string>& failure);
  /// Slots may have become free: sends that wait for one go on.
  void serve_waiting();

  /// Completes the pieces that the receiver has posted for a message that does not come by them.
  void send_blanks(NodeId to, const Room& room);

  // ---- ends -----------------------------------------------------------------------------------
  void end(Send& send);
  void refused(Send& send, const Error& why);
  void withdrawn(Send& send);
  /// Tells the receiver of an expected message why it fails.
  void tell_broken(NodeId to, std::int64_t peer_receive, const Error& why);
  void lost(NodeId node, const Error& why);
  void abandon(const Error& why);

  /// `node` frees memory that it has referred to: no send under way maps it for the next message.
  void taken_back(NodeId node, const ReleasedMemory& memory);
  /// Describes the sends from an allocation; empty: there are none.
  [[nodiscard]] std::string user_of(const Release& memory) const;
  [[nodiscard]] std::size_t size() const { return sends_.size(); }
  [[nodiscard]] bool is_valid() const;

 private:
  void post_pieces(Send& send);
  [[nodiscard]] bool post_piece(Send& send);
  [[nodiscard]] bool post_fill(Send& send);
  void packed(Send& send, Staging::Slot slot);
  [[nodiscard]] bool fill(Send& send, const Piece& piece, const Spot& to);
  void piece_failed(Send& send, const std::string& failure);
  void tell_filled(const Send& send, const Piece& piece);
  void fail(Send& send, Error why);
  void forget(Send& send);

  SharedParts shared_;
  IdTable<std::shared_ptr<Send>> sends_;
  std::deque<std::int64_t> waiting_;  ///< granted ones for an out slot, in turn; some are over
};

}  // namespace heddle::p2p
