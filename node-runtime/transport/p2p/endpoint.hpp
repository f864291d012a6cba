#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/plan_cache.hpp"
#include "node-runtime/transport/p2p/credits.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/note.hpp"
#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// What is sent: `count` elements of `type` at `memory`.
struct Outgoing {
  const void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

/// Where a message is received: room for `count` elements of `type` at `memory`.
struct Incoming {
  void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

class Endpoint;

/// A handle of a send or a receive under way; copies mean the same one. Thread: any.
class Request {
 public:
  [[nodiscard]] bool done() const { return state_->is_done(); }
  /// Blocks until it is over. Throws what made it fail: Error(usage) where sender and receiver do
  /// not fit, Error(communication) where the other node is gone.
  Status wait() const { return state_->wait(); }
  /// Asks to take it back. It is over soon in any case; its status says whether it was in time.
  void cancel() const;

 private:
  friend class Endpoint;
  Request(Endpoint& endpoint, std::int64_t id, bool is_send, std::shared_ptr<RequestState> state)
      : endpoint_(&endpoint), id_(id), is_send_(is_send), state_(std::move(state)) {}

  Endpoint* endpoint_;
  std::int64_t id_;
  bool is_send_;
  std::shared_ptr<RequestState> state_;
};

/// One node's end of the messages between nodes: point-to-point with MPI's meaning of source, tag
/// (and channel), order, datatypes and truncation, over a Wire. Memory of the host.
///
/// Protocols, by size and shape:
///   eager    at most `eager_bytes_max`: the packed bytes travel with the note, into one of the
///            receiver's slots if nobody has asked for them yet. Without a credit for a slot the
///            message is announced
///   direct   announced, granted by the receive that takes it; the bytes go from memory to memory,
///            where both are contiguous
///   packed   the same, in pieces of `piece_bytes`: a side that is not contiguous packs into, or
///            unpacks from, slots of its own, while other pieces are on their way (000
///            section 4.3.3: two of them suffice)
///
/// What is bounded, and why nothing waits in a circle: a node has at most `requests_max` requests,
/// so its peers hold at most as many announcements of it; eager bytes have slots by credits. Slots
/// for pieces: the receiver takes `pieces_ahead` of its `in_slots` before it grants a message and
/// keeps them to its end, so every granted message has places at the receiver which become free
/// again by unpacking alone. A sender takes an `out_slot` only for a piece of a granted message;
/// the receiver posts, or will post without anything else happening, the receive for it. So out
/// slots become free, each granted message ends, and the receiver's in slots go to the next one,
/// first come, first served.
///
/// A lost node: everything that only it could have ended fails with Error(communication).
///
/// Threads: send(), receive() and handles by any thread; all else by one, the progress thread.
class Endpoint {
 public:
  struct Options {
    std::int64_t eager_bytes_max = 8192;
    std::int32_t eager_slots = 32;  ///< for each peer
    std::int64_t piece_bytes = std::int64_t{512} << 10U;
    std::int32_t pieces_ahead = 2;
    std::int32_t out_slots = 8;
    std::int32_t in_slots = 16;
    std::int32_t requests_max = 4096;
  };
  struct Statistics {
    std::int64_t eager = 0;  ///< messages sent by each protocol
    std::int64_t direct = 0;
    std::int64_t packed = 0;
    std::int64_t bytes_sent = 0;
    std::int64_t unexpected = 0;  ///< messages that came before their receives
  };

  /// `wake` is called, by any thread, when progress() has something new to do.
  Endpoint(Wire& wire, const Options& options, std::function<void()> wake);
  /// Nothing is under way, unless `abandon` was called.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Starts a send; the memory stays as it is until it is over. Throws Error(usage) for bad
  /// arguments, and when requests_max are under way.
  Request send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel);
  /// Starts a receive. Throws Error(usage) like send, and for types whose elements overlap.
  Request receive(const Incoming& room, const Pattern& pattern);

  // ---- for the progress thread ----------------------------------------------------------------
  /// Does what can be done now; false: nothing was.
  bool progress();
  /// No request is under way, and nothing that has come waits for a receive.
  [[nodiscard]] bool is_idle() const;
  /// The node fails: all requests do, with `why`.
  void abandon(const Error& why);
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }

 private:
  friend class Request;

  /// The bytes of one side.
  struct Side {
    std::byte* memory = nullptr;  ///< of a send only read
    std::int64_t count = 0;
    std::shared_ptr<const PackPlan> plan;
    std::int64_t bytes = 0;
    std::byte* contiguous = nullptr;  ///< where the bytes lie, if they do in one piece
  };
  struct Send : RequestState {
    std::int64_t id = 0;
    Side side;
    NodeId to;
    std::int32_t tag = 0;
    ChannelId channel;
    std::uint64_t digest = 0;
    bool is_granted = false;
    bool is_withdrawn = false;  ///< asked for
    FlowId flow;
    std::int64_t piece_bytes = 0;
    std::int64_t posted = 0;  ///< bytes
    std::int64_t done = 0;
    std::int32_t in_flight = 0;  ///< pieces
  };
  struct Receive : RequestState {
    std::int64_t id = 0;
    Side side;
    Signature signature;
    Pattern pattern;
    Envelope envelope;  ///< of the message that it has taken
    std::int64_t bytes = 0;
    std::int64_t peer_send = 0;
    bool is_taken = false;
    bool is_granted = false;
    FlowId flow;
    std::int64_t piece_bytes = 0;
    std::int64_t posted = 0;
    std::int64_t done = 0;
    std::int32_t in_flight = 0;
    std::vector<Staging::Slot> slots;  ///< free ones of its own
  };
  struct Arrival {
    Envelope envelope;
    NoteHeader header;
    std::vector<std::byte> payload;  ///< of an eager message
  };
  struct Operation {
    bool is_send = false;
    std::int64_t request = 0;
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
    std::optional<Staging::Slot> slot;
  };
  struct Mail {
    std::shared_ptr<Send> send;
    std::shared_ptr<Receive> receive;
    std::optional<std::pair<bool, std::int64_t>> cancelled;  ///< whether a send, and which
  };

  /// Pieces of a message between contiguous memories that are posted at a time.
  static constexpr std::int32_t direct_pieces = 4;

  [[nodiscard]] Side make_side(std::string_view what, void* memory, std::int64_t count,
                               const Datatype& type);
  [[nodiscard]] std::int64_t count_request();
  void check_peer(NodeId peer, std::string_view what) const;
  void post(Mail mail);
  void cancel(bool is_send, std::int64_t id);

  [[nodiscard]] bool take_mail();
  void start(const std::shared_ptr<Send>& started);
  void start(const std::shared_ptr<Receive>& started);
  void cancel_send(std::int64_t id);
  void cancel_receive(std::int64_t id);

  void note_arrived(const Wire::Note& note);
  void message_arrived(NodeId from, const NoteHeader& header, std::span<const std::byte> payload);
  void granted(const NoteHeader& header);
  void take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
            std::span<const std::byte> payload);
  [[nodiscard]] std::optional<std::string> mismatch(const Receive& receive,
                                                    const NoteHeader& header) const;
  void grant(Receive& receive, bool sender_is_contiguous);
  void withdraw(NodeId from, const NoteHeader& header);
  void free_eager_slot(NodeId peer);

  void post_pieces(Send& send);
  void post_pieces(Receive& receive);
  void completed(OperationId id);
  void end(Send& send);
  void end(Receive& receive);
  void serve_waiting();
  void lost(NodeId peer);
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, NoteHeader header,
                                                std::size_t payload_bytes);
  void send_note(NodeId to, const NoteHeader& header);
  [[nodiscard]] OperationId add(const Operation& operation);
  void forget_request();

  Wire& wire_;
  Options options_;
  std::function<void()> wake_;
  PlanCache plans_;

  mutable std::mutex mutex_;  ///< what follows
  std::vector<Mail> mail_;
  std::vector<Mail> taken_mail_;  ///< the progress thread's; kept for its memory
  std::int64_t next_request_ = 1;
  std::int32_t under_way_ = 0;
  std::optional<Error> failure_;

  // The progress thread's.
  Wire::Events events_;
  Matching matching_;
  Credits credits_;
  std::vector<bool> lost_;  ///< by node
  Staging out_;
  Staging in_;
  std::unordered_map<std::int64_t, std::shared_ptr<Send>> sends_;
  std::unordered_map<std::int64_t, std::shared_ptr<Receive>> receives_;
  std::unordered_map<std::int64_t, Arrival> arrivals_;
  std::unordered_map<std::int64_t, Operation> operations_;
  std::deque<std::int64_t> sends_waiting_;     ///< granted, for an out slot
  std::deque<std::int64_t> receives_waiting_;  ///< taken, for in slots
  std::vector<FlowId> free_flows_;
  std::int32_t next_flow_ = 0;
  std::int64_t next_arrival_ = 1;
  std::int64_t next_operation_ = 1;
  Statistics statistics_;
};

}  // namespace heddle::p2p
