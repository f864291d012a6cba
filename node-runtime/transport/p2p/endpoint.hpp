#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/credits.hpp"
#include "node-runtime/transport/p2p/endpoint_options.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/mailbox.hpp"
#include "node-runtime/transport/p2p/neighbourhood.hpp"
#include "node-runtime/transport/p2p/notes.hpp"
#include "node-runtime/transport/p2p/pieces.hpp"
#include "node-runtime/transport/p2p/receiver.hpp"
#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/requests.hpp"
#include "node-runtime/transport/p2p/sender.hpp"
#include "node-runtime/transport/p2p/side.hpp"
#include "node-runtime/transport/p2p/slots.hpp"
#include "node-runtime/transport/p2p/wire.hpp"
#include "node-runtime/transport/p2p/work.hpp"
#include "node-runtime/transport/p2p/works.hpp"

namespace heddle::p2p {

class Endpoint;

/// Refers to a send or a receive under way. Cheap to copy; all copies refer to the same request.
/// Threads: any. Outlives its endpoint, but cancel() does not.
class Request {
 public:
  /// As fragments name it; counted per node.
  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] bool done() const { return state_ == nullptr || state_->is_done(); }
  /// Blocks until the request is over, on another thread than the progress thread. Throws what made
  /// it fail: Error(usage) where sender and receiver do not fit, Error(communication) where the
  /// other node is lost. A request that send_at_once() or receive_at_once() began must be done().
  Status wait() const { return state_ == nullptr ? status_ : state_->wait(); }
  /// Cancels the request. It completes soon in any case; Status::is_cancelled says whether the call
  /// was in time.
  void cancel() const;

 private:
  friend class Endpoint;
  Request(Endpoint& endpoint, std::int64_t id, bool is_send, std::shared_ptr<RequestState> state)
      : endpoint_(&endpoint), id_(id), is_send_(is_send), state_(std::move(state)) {}
  /// A request that was over when it began.
  Request(Endpoint& endpoint, const Status& status)
      : endpoint_(&endpoint), id_(0), is_send_(true), status_(status) {}

  Endpoint* endpoint_;
  std::int64_t id_;
  bool is_send_;
  std::shared_ptr<RequestState> state_;  ///< null: it was over at once
  Status status_;
};

/// One node's end of the messages between nodes: point-to-point with MPI's meaning of source, tag
/// (and channel), order, datatypes and truncation, over a Wire and the node's devices. Memory is
/// any host memory, or memory of the devices, on either side; neither side knows the other's.
///
/// Small messages of host memory travel at once (eager): packed, with the note, and kept by the
/// receiver until a receive asks for them. Large messages, and small ones for which the receiver
/// has no room, are announced. The receive that takes an announcement knows both sides, chooses the
/// path (PathDecision) and grants it with the places that it needs:
///   message  over the wire. From memory to memory where both sides are contiguous on the host,
///            otherwise in pieces: a side packs into, or unpacks from, slots of its own, by a core
///            or its device, while other pieces travel (000 sections 4.3.2 and 4.3.3)
///   shared   the sender packs into slots of the receiver's window, the receiver unpacks from there
///   ring     likewise, slots on a device of the receiver's, which the sender's device maps
///   put      the sender's device writes the whole message into the receiver's device memory,
///            contiguous or under loops that fit the sender's
///   get      the receiver's device reads the sender's device memory, contiguous or under loops
///            that fit its own, or its processor contiguous host memory: no grant
/// With the last three, a node's own side may also lie in page-locked host memory: its device
/// packs, unpacks or copies there what lies on the other node's device. Device memory that is not
/// mapped yet travels by another path, and is mapped for the next message. A refused mapping is not
/// tried again; the message takes the next best path.
///
/// A receiver that knows the sender beforehand can tell it of the room (expect()): where the wire
/// brings the message, from memory to memory between hosts or packed into the pieces that are
/// posted already, it leaves as soon as it is sent; a device puts it into memory that is mapped;
/// `get` begins with one note. What needs slots of the receiver is announced (Sender).
///
/// This class only wires its parts and hands events to them: Sender, Receiver, Neighbourhood,
/// Mailbox. Bounds: `requests_max` requests of a node, and so the announcements that its peers hold
/// of it; eager bytes by Credits; slots by Sends and Receives, which argue why there is no
/// deadlock. Operations of devices wait only for earlier ones on their streams.
///
/// Failures: memory that is gone, or a device's error, ends the message on both sides with Error
/// after the pieces under way have ended. A lost node: everything that needs it fails with
/// Error(communication).
///
/// Device memory that was sent from or received into may be mapped by other nodes: release() it
/// before it is freed.
///
/// Threads: send(), receive(), release() and handles, any; everything else, one thread, the
/// progress thread. Locks: Mailbox and Sides have their own; Requests counts with atomics; the
/// other members are the progress thread's.
class Endpoint {
 public:
  using Options = EndpointOptions;
  struct Statistics {
    std::array<std::int64_t, path_count> sent{};      ///< messages by path, counted when granted
    std::array<std::int64_t, path_count> received{};  ///< messages by path
    std::int64_t bytes_sent = 0;
    std::int64_t unexpected = 0;  ///< messages that came before their receives
    Mappings::Statistics mappings;
  };

  /// `wake` is called, by any thread, when progress() has something new to do, and must not throw.
  /// The devices outlive the endpoint, as does `mapper` (null: Mapper). Takes ring slots of each
  /// device and page-locks slots for them.
  Endpoint(Wire& wire, const Options& options, std::function<void()> wake,
           std::span<Device* const> devices = {}, Mapper* mapper = nullptr);
  /// No request is under way and, with devices, is_closed(), unless `abandon` was called.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Starts a send; the memory must not change until it is over. Throws Error(usage) for bad
  /// arguments, and when requests_max are under way.
  Request send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel,
               OnEnd on_end = nullptr);
  /// Starts a receive. Throws Error(usage) like send, and for types whose elements overlap.
  Request receive(const Incoming& room, const Pattern& pattern, OnEnd on_end = nullptr);
  /// Makes all nodes close the device allocation that `memory` is in: when the request is over the
  /// allocation can be freed. Fails with Error(usage) while messages use it. Throws Error(usage)
  /// for memory that is no device's.
  Request release(const void* memory);
  /// Starts work of a device. Throws Error(usage) where there is no such lane, and when
  /// requests_max are under way. The request fails when the device does, with Error(communication)
  /// where memory of another node cannot be mapped.
  Request work(DeviceWork work, OnEnd on_end = nullptr);
  /// Makes a reference to device memory for other nodes. The request fails with Error(usage) for
  /// memory of no device.
  Request refer(std::shared_ptr<Referral> referral, OnEnd on_end = nullptr);
  /// The lane of the device that the memory belongs to; nullopt: host memory.
  [[nodiscard]] std::optional<LaneId> lane_of(const void* memory, std::int64_t bytes) const {
    return lanes_.owner_of(memory, bytes);
  }

  // ---- for the progress thread ----------------------------------------------------------------
  /// Maps the devices of all nodes of the host before they compute: a GPU that computes maps
  /// another one's memory in a second rather than in some milliseconds. All nodes call it;
  /// are_neighbours_known() says when it is done.
  void meet_neighbours() { neighbours_.meet(); }
  [[nodiscard]] bool are_neighbours_known() const { return neighbours_.unknown().empty(); }
  /// Both, waiting. Throws Error(communication) that names the nodes that have not come.
  void await_neighbours(std::chrono::nanoseconds limit);
  /// Advances all requests as far as possible now; false: none could be.
  bool progress();
  /// As send() and receive(), outside progress(): begun at once, without a lock. A message that
  /// travels with its note is over when this returns.
  Request send_at_once(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel);
  Request receive_at_once(const Incoming& room, const Pattern& pattern);
  /// No request is under way, and no message waits for a receive.
  [[nodiscard]] bool is_idle() const;

  // ---- expected messages: likewise for the progress thread --------------------------------------
  /// Room for one message of node `from`, which is told of it beforehand, together with `word`
  /// (EndpointOptions::word). It is the only one with this tag between the two nodes until it is
  /// over, and takes no part in the matching. Its sender chooses the path, and sends or writes
  /// without asking: the memory must be there until the request is over, and cancel() has no
  /// effect.
  Request expect(const Incoming& room, const Envelope& envelope, std::span<const std::byte> word,
                 OnEnd on_end = nullptr);
  /// The same for a message whose memory is not known before it is announced (`unexpected`), or for
  /// which nothing may be set aside: a receive() takes it then.
  void expect_without_room(const Envelope& envelope, std::span<const std::byte> word);
  /// Sends a message that its receiver expects: with the room's bytes and scalars, otherwise
  /// Error(usage) on both sides, or empty. Throws Error(usage) when the receiver has not said that
  /// it expects one. `on_end` may be called before this returns.
  Request send_expected(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel,
                        OnEnd on_end = nullptr);
  /// The same for a message that is still being received into this memory: its first `there` bytes
  /// have come, which is a whole number of pieces (arrived()). Nothing: it takes a way on which
  /// nothing leaves before all is there; send_expected() then.
  [[nodiscard]] std::optional<Request> send_arriving(const Outgoing& message, std::int64_t there,
                                                     NodeId to, std::int32_t tag, ChannelId channel,
                                                     OnEnd on_end = nullptr);
  /// More of such a message has come; in the end all of it.
  void more_is_there(std::int64_t request, std::int64_t bytes) {
    sender_.sends().more_is_there(request, bytes);
  }
  /// The first bytes of an expected message that are in its room and stay as they are; 0 where it
  /// comes by a way on which that is not known.
  [[nodiscard]] std::int64_t arrived(std::int64_t request) const {
    return receiver_.receives().arrived(request);
  }
  /// A word for the other node's program (EndpointOptions::word), in order with expect().
  void tell(NodeId to, std::span<const std::byte> word);

  /// Forgets messages of the channels from `first` on that no receive has taken, when no node sends
  /// there any more.
  void drop_arrivals(ChannelId first) { receiver_.drop_arrivals(first); }
  /// The end, when no node sends any more: closes what is mapped here, and tells the others.
  void close() { neighbours_.close(); }
  /// After close(): all others have closed what they had mapped of this node.
  [[nodiscard]] bool is_closed() const { return neighbours_.is_closed(); }
  /// The node fails: all requests do, with `why`.
  void abandon(const Error& why);
  [[nodiscard]] Statistics statistics() const;
  /// The invariants of all parts, between calls of progress(). O(everything).
  [[nodiscard]] bool is_valid() const;

 private:
  friend class Request;

  /// Wakes the progress thread: mail has come, or an operation of a device has ended.
  class Waker final : public Notifier {
   public:
    explicit Waker(std::function<void()> wake) : wake_(std::move(wake)) {}
    void notify() noexcept override { wake_(); }

   private:
    const std::function<void()> wake_;
  };

  void check_running() const;
  void check_send(NodeId to, std::int32_t tag) const;
  void check_receive(const Pattern& pattern) const;
  void check_peer(NodeId peer, std::string_view what) const;
  [[nodiscard]] std::shared_ptr<Send> new_send(Side side, NodeId to, std::int32_t tag,
                                               ChannelId channel, bool at_once);
  [[nodiscard]] std::shared_ptr<Receive> new_receive(Side side, const Pattern& pattern,
                                                     bool at_once);
  void post(Mail mail);
  void cancel(bool is_send, std::int64_t id);
  bool take_mail();
  void start(const std::shared_ptr<Release>& release);
  Request begin(std::shared_ptr<Work> work, OnEnd on_end);
  void note_arrived(const Wire::Note& note);
  void hear(NodeId from, std::span<const std::byte> word);
  void ended(OperationId id, const std::optional<std::string>& failure, bool is_blank = false);
  void lost(NodeId node);

  Wire& wire_;
  const Options options_;
  Waker waker_;
  Mailbox mailbox_;
  Requests requests_;
  Credits credits_;
  Notes notes_{wire_, credits_};
  Lanes lanes_;
  Sides sides_{lanes_};
  Slots slots_;
  Pieces pieces_;
  Neighbourhood neighbours_;
  Sender sender_;
  Receiver receiver_;
  Works works_;
  struct {
    Wire::Events wire;
    std::vector<Lanes::Ended> devices;
  } events_;  ///< of one progress(); kept for their memory
};

}  // namespace heddle::p2p
