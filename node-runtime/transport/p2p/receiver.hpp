#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id_table.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/path_decision.hpp"
#include "node-runtime/transport/p2p/receives.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"

namespace heddle::p2p {

/// Gives arriving messages to an endpoint's receives, decides by which path each comes
/// (PathDecision), and grants or reads it (Receives).
///
///   message --no receive--> unexpected, until one is posted or the sender withdraws it
///           --eager-------> copied: over
///           --announced---> decide --slots?--> grant | fetch | read --pieces--> over
///                             ^------ declined, or this node cannot read the memory
///   expect  --pieces, or written by the sender's device--> over
///           --delivered--> copied: over
///           --announced--> decide
///
/// An expected message has a room of its own, and no matching. Where the wire would bring it from
/// contiguous host memory, its pieces are posted before the sender knows of the room. Where it does
/// not come by them (it is empty, or its sender has failed), the sender completes each with an
/// empty piece, and a note says why; the note is followed when the last piece is back.
///
/// Invariant (`is_valid()`): that of receives() and of the matching;
///   |arrivals| = |unexpected messages of the matching|
///   |posted receives of the matching| <= |receives|.
///
/// No deadlock: receives wait for slots first come, first served, and hold none while they wait.
///
/// Thread: the progress thread only.
class Receiver {
 public:
  explicit Receiver(const SharedParts& shared)
      : shared_(shared),
        decision_(shared.options.rates, shared.options.sizes, shared.options.path),
        receives_(shared) {}

  void start(std::shared_ptr<Receive> started);
  /// Cancels a receive, unless it has a message.
  void cancel(std::int64_t id);

  /// Makes room for one message of node `from`, and tells it so, with a word for its program.
  void expect(std::shared_ptr<Receive> expected, const Envelope& envelope,
              std::span<const std::byte> word);
  /// Tells node `from` that a message of it is expected, whose room is not known yet.
  void expect_without_room(const Envelope& envelope, std::span<const std::byte> word);

  // ---- notes ----------------------------------------------------------------------------------
  /// A message has come with its note, or was announced.
  void message_arrived(NodeId from, const NoteHeader& header, std::span<const std::byte> payload);
  /// A message for an expected receive is delivered or announced, or its sender has failed.
  void room_note(const NoteHeader& header, std::span<const std::byte> payload);
  /// The sender of a receive has failed.
  void sender_broke(const NoteHeader& header, std::span<const std::byte> payload);
  /// A piece has ended; `is_blank`: by an empty one.
  void ended(const Piece& piece, const std::optional<std::string>& failure, bool is_blank);
  /// The sender wants an announcement forgotten.
  void withdraw(NodeId from, const NoteHeader& header);
  /// The sender cannot access the places that it was granted.
  void declined(NodeId from, const NoteHeader& header, std::string_view why);

  // ---- progress -------------------------------------------------------------------------------
  /// Reads one piece of the first message that this node's processor reads; false: there is none.
  [[nodiscard]] bool read_on();
  /// Slots may have become free: receives that wait for some go on.
  void serve_waiting();

  void lost(NodeId node, const Error& why);

  [[nodiscard]] Receives& receives() { return receives_; }
  [[nodiscard]] const Receives& receives() const { return receives_; }
  /// Messages that wait for a receive.
  [[nodiscard]] std::size_t arrivals() const { return arrivals_.size(); }
  /// Forgets the unexpected messages of a channel, on which no node sends any more.
  void drop_arrivals(ChannelId first);
  /// Messages that came before their receives, so far.
  [[nodiscard]] std::int64_t unexpected() const { return unexpected_; }
  [[nodiscard]] bool is_valid() const;

 private:
  struct Arrival {
    Envelope envelope;
    NoteHeader header;
    std::vector<std::byte> payload;
  };

  void take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
            std::span<const std::byte> payload);
  void follow(Receive& receive, const NoteHeader& header, std::span<const std::byte> payload);
  [[nodiscard]] bool posts_pieces(Receive& receive);
  void take_eager(Receive& receive, std::span<const std::byte> payload);
  [[nodiscard]] std::optional<std::string> mismatch(const Receive& receive) const;
  void free_eager_room(const Receive& receive);
  [[nodiscard]] const PathChoice& choose(const PathQuery& query);
  void decide(Receive& receive);
  void go_on(Receive& receive);
  void grant(Receive& receive);
  void fetch(Receive& receive);
  [[nodiscard]] bool read_piece(Receive& receive);

  SharedParts shared_;
  PathDecision decision_;
  Matching matching_;
  IdTable<Arrival> arrivals_;
  std::int64_t next_arrival_ = 1;
  std::int64_t unexpected_ = 0;
  Receives receives_;
  std::deque<std::int64_t> waiting_;  ///< receives that need slots, in turn; some are over
  std::deque<std::int64_t> reading_;  ///< receives that the processor reads; some are over
  /// The last decision: many messages are alike, and comparing takes less time than deciding.
  std::optional<std::pair<PathQuery, PathChoice>> last_choice_;
};

}  // namespace heddle::p2p
