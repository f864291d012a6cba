#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id_table.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/p2p/credits.hpp"
#include "node-runtime/transport/p2p/host_pages.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/locked_pages.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/note.hpp"
#include "node-runtime/transport/p2p/path.hpp"
#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/request_count.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// What is sent: `count` elements of `type` at `memory`, on the host or on one of the endpoint's
/// devices.
struct Outgoing {
  const void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

/// Where a message is received: room for `count` elements of `type` at `memory`, likewise.
struct Incoming {
  void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

/// How a message came, for who wants to know.
struct MessageReport {
  NodeId source;
  NodeId receiver;
  std::int32_t tag = 0;
  std::int64_t bytes = 0;
  std::int64_t pieces = 0;
  Path path = Path::eager;
  /// With predicted times; none for eager ones. Its texts are the endpoint's.
  std::optional<PathChoice> choice;
  double measured_us = 0;  ///< from the receive's taking it to its end
};

/// One fragment of a message on one side, for who wants to see them.
struct FragmentReport {
  enum class Kind : std::uint8_t {
    pack,     ///< into a slot of this node, to be sent then
    send,     ///< over the wire
    fill,     ///< into the receiver's slot or memory
    receive,  ///< over the wire
    unpack,   ///< from a slot of this node
    fetch     ///< from the sender's memory
  };
  Kind kind = Kind::pack;
  std::int64_t message = 0;   ///< number of the send, or receive, on this node
  StreamRange range;          ///< of the packed bytes
  std::int64_t begun_ns = 0;  ///< clock of now_ns()
  std::int64_t ended_ns = 0;  ///< as the progress thread has noticed it
};
/// "pack", "send", "fill", "receive", "unpack", "fetch".
[[nodiscard]] std::string_view name_of(FragmentReport::Kind kind);

/// One message's report as text, some lines: which way it came, how long that was to take and took,
/// and why the other ways lost.
[[nodiscard]] std::string explain(const MessageReport& report);

class Endpoint;

/// A handle of a send or a receive under way; copies mean the same one. Thread: any; wait() of one
/// that was begun at once comes when it is done.
class Request {
 public:
  /// As fragments name it; counted per node.
  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] bool done() const { return state_ == nullptr || state_->is_done(); }
  /// Blocks until it is over. Throws what made it fail: Error(usage) where sender and receiver do
  /// not fit, Error(communication) where the other node is gone.
  Status wait() const { return state_ == nullptr ? status_ : state_->wait(); }
  /// Asks to take it back. It is over soon in any case; its status says whether it was in time.
  void cancel() const;

 private:
  friend class Endpoint;
  Request(Endpoint& endpoint, std::int64_t id, bool is_send, std::shared_ptr<RequestState> state)
      : endpoint_(&endpoint), id_(id), is_send_(is_send), state_(std::move(state)) {}
  /// One that was over when it began.
  Request(Endpoint& endpoint, const Status& status)
      : endpoint_(&endpoint), id_(0), is_send_(true), status_(status) {}

  Endpoint* endpoint_;
  std::int64_t id_;
  bool is_send_;
  std::shared_ptr<RequestState> state_;  ///< null: it was over at once
  Status status_;
};

/// One node's end of the messages between nodes: point-to-point with MPI's meaning of source, tag
/// (and channel), order, datatypes and truncation, over a Wire and the node's devices. Memory may
/// be any host memory and memory of the devices, on either side; nobody knows of the other's.
///
/// Small messages of host memory travel at once (eager): packed, with the note, and kept by the
/// receiver if nobody has asked for them yet. All others, and small ones without the credits for
/// that, are announced. The receive that takes an announcement knows both sides, chooses the
/// path (choose_path) and grants it with the places that it needs:
///   message  over the wire. From memory to memory where both sides are contiguous on the host,
///            otherwise in pieces: a side packs into, or unpacks from, slots of its own, by a core
///            or its device, while other pieces are on their way (000 sections 4.3.2 and 4.3.3)
///   shared   the sender packs into slots of the receiver's window, the receiver unpacks from there
///   ring     likewise, slots on a device of the receiver's, which the sender's device maps
///   put      the sender's device writes the whole message into the receiver's device memory,
///            contiguous or under loops that fit the sender's
///   get      the receiver's device reads the sender's device memory, contiguous or under loops
///            that fit its own, or its processor contiguous host memory: no grant
/// By the last three a node's own side may also lie in host memory that its devices reach in place
/// (page-locked): its device packs, unpacks or copies there what lies on the other node's device.
/// Device memory that is not mapped yet travels without, and is mapped for the next message. A
/// mapping that is refused is not tried again; the message takes the next best path.
///
/// What is bounded, and why nothing waits in a circle: a node has at most `requests_max` requests,
/// so its peers hold at most as many announcements of it; eager bytes have room by credits. Slots
/// for pieces: the receiver takes some of its own before it grants a message and keeps them to the
/// message's end, so every granted message has places at the receiver which become free again by
/// unpacking alone. A sender takes an out slot only for a piece of a granted message; the receiver
/// posts, or will post without anything else happening, the receive for it. So out slots become
/// free, each granted message ends, and the receiver's slots go to the next one, first come, first
/// served. Operations of devices wait for nothing but those before them on their streams.
///
/// Failures: what goes wrong on one side (memory that is gone, a device's error) ends the message
/// on both, with Error; pieces that are on their way come to their end before. A lost node:
/// everything that only it could have ended fails with Error(communication).
///
/// Device memory: an allocation that was sent from or received into may be mapped by other nodes;
/// release() has to come before it is freed.
///
/// Threads: send(), receive(), release() and handles by any thread; all else by one, the progress
/// thread.
class Endpoint {
 public:
  struct Options {
    std::int64_t eager_bytes_max = 8192;
    /// For each peer's messages that have come before anybody has asked for them.
    std::int64_t eager_memory_bytes = std::int64_t{256} << 10U;
    std::int32_t out_slots = 8;
    std::int32_t in_slots = 16;  ///< each of sizes.piece_bytes, as are those out
    std::int32_t requests_max = 4096;
    PathSizes sizes;
    std::int32_t ring_slots = 8;  ///< of each device, as many again for what goes out; 0: no rings
    std::int32_t mappings_max = 256;
    PathRates rates;
    std::optional<Path> path;  ///< taken wherever it can be
    /// On a GPU that nodes share, one process's work waits for the other's time slice: no MPS.
    bool processes_take_turns = true;
    Lanes::Options lanes;
    std::function<void(const MessageReport&)> report;     ///< of messages received, if anybody asks
    std::function<void(const FragmentReport&)> fragment;  ///< likewise
    /// A message has come that no receive takes; may post one, on the progress thread.
    std::function<void(const Envelope&)> unexpected;

    /// What the wire's window should have.
    [[nodiscard]] std::size_t window_bytes() const {
      return static_cast<std::size_t>(in_slots) * static_cast<std::size_t>(sizes.piece_bytes);
    }
  };
  struct Statistics {
    std::array<std::int64_t, path_count> sent{};      ///< messages by path, as far as granted
    std::array<std::int64_t, path_count> received{};  ///< messages by path
    std::int64_t bytes_sent = 0;
    std::int64_t unexpected = 0;  ///< messages that came before their receives
    Mappings::Statistics mappings;
  };

  /// `wake` is called, by any thread, when progress() has something new to do, and throws nothing.
  /// The devices outlive the endpoint, as does `mapper` (null: Mapper). Takes ring slots of each
  /// device and page-locks slots for them.
  Endpoint(Wire& wire, const Options& options, std::function<void()> wake,
           std::span<Device* const> devices = {}, Mapper* mapper = nullptr);
  /// Nothing is under way and, with devices, is_closed(), unless `abandon` was called.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Starts a send; the memory stays as it is until it is over. Throws Error(usage) for bad
  /// arguments, and when requests_max are under way.
  Request send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel,
               OnEnd on_end = nullptr);
  /// Starts a receive. Throws Error(usage) like send, and for types whose elements overlap.
  Request receive(const Incoming& room, const Pattern& pattern, OnEnd on_end = nullptr);
  /// Makes all nodes close the allocation of a device that `memory` is in: when this is over it can
  /// be freed. Fails with Error(usage) while messages use it. Throws Error(usage) for memory that
  /// is no device's.
  Request release(const void* memory);

  // ---- for the progress thread ----------------------------------------------------------------
  /// Maps the devices of all nodes of the host before they have anything to do: a GPU that computes
  /// maps another one's memory in a second rather than in some milliseconds. To be called by all;
  /// are_neighbours_known() says when it is done.
  void meet_neighbours();
  [[nodiscard]] bool are_neighbours_known() const { return unknown_neighbours().empty(); }
  /// Both, waiting. Throws Error(communication) that names the nodes that have not come.
  void await_neighbours(std::chrono::nanoseconds limit);
  /// Does what can be done now; false: nothing was.
  bool progress();
  /// As send() and receive(), where progress() is not under way: begun at once, without a lock. A
  /// message that travels with its note is over when this returns.
  Request send_at_once(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel);
  Request receive_at_once(const Incoming& room, const Pattern& pattern);
  /// No request is under way, and nothing that has come waits for a receive.
  [[nodiscard]] bool is_idle() const;
  /// The end, when no node sends any more: closes what is mapped here, and tells the others.
  void close();
  /// After close(): all others have closed what they had mapped of this node.
  [[nodiscard]] bool is_closed() const;
  /// The node fails: all requests do, with `why`.
  void abandon(const Error& why);
  [[nodiscard]] Statistics statistics() const;

 private:
  friend class Request;

  /// The bytes of one side.
  struct Side {
    std::byte* memory = nullptr;  ///< of a send only read
    const Shape* shape = nullptr;
    std::shared_ptr<const Shape> kept;  ///< the same, while the message is under way
    std::int64_t bytes = 0;
    std::byte* contiguous = nullptr;  ///< where the bytes lie, if they do in one piece
    std::optional<LaneId> lane;       ///< of the device whose memory it is

    /// Bytes that the wire can take or bring as they lie.
    [[nodiscard]] bool is_host_run() const { return contiguous != nullptr && !lane; }
    [[nodiscard]] std::byte* first() const { return memory + shape->first; }
    [[nodiscard]] Lanes::Elements elements() const {
      return {shape->plan, shape->count, memory, !lane.has_value()};
    }
  };
  struct Packing {
    StreamRange range;
    Staging::Slot slot = 0;
    bool is_packed = false;
  };
  struct Send : RequestState {
    using RequestState::RequestState;

    std::int64_t id = 0;
    Side side;
    NodeId to;
    std::int32_t tag = 0;
    ChannelId channel;
    bool is_granted = false;
    bool is_withdrawn = false;  ///< asked for
    Path path = Path::message;
    std::int64_t peer_receive = 0;
    FlowId flow;
    std::int64_t piece_bytes = 0;
    std::int64_t slot_bytes = 0;  ///< from one of the receiver's slots to the next
    std::int64_t posted = 0;      ///< bytes
    std::int64_t done = 0;
    std::int32_t in_flight = 0;             ///< pieces
    std::int32_t copies = 0;                ///< of these: by way of this node's device
    std::vector<Packing> packing;           ///< pieces for the wire, which takes them in order
    std::vector<std::int32_t> slots;        ///< the receiver's, to be filled
    LaneId via;                             ///< that writes to `target`
    Spot target;                            ///< the receiver's slots, or memory
    std::optional<LoopShape> target_loops;  ///< put: of what is not contiguous
    std::shared_ptr<const Mappings::Use> mapping;
    std::optional<MemoryReference> next;  ///< of the receiver, to be mapped for the next message
    std::optional<Error> broken;          ///< why it fails when nothing is in flight any more
  };
  struct Receive : RequestState {
    using RequestState::RequestState;

    std::int64_t id = 0;
    Side side;
    Pattern pattern;
    Envelope envelope;  ///< of the message that it has taken
    NoteHeader announcement;
    std::optional<MemoryReference> source;  ///< the sender's memory
    std::optional<LoopShape> source_loops;  ///< of what is not contiguous
    std::vector<std::byte> payload;         ///< of an eager message that waits for a slot
    std::int64_t bytes = 0;
    bool is_taken = false;
    bool has_flow = false;
    std::unique_ptr<const PathChoice> choice;  ///< if anybody asks
    bool maps_source = false;                  ///< for the next message, as it lacks nothing else
    bool maps_target = false;                  ///< likewise
    Path path = Path::message;
    FlowId flow;
    std::int64_t piece_bytes = 0;
    std::int64_t posted = 0;  ///< bytes that have places: the receive's, or slots given out
    std::int64_t done = 0;
    std::int64_t pieces = 0;
    std::int32_t in_flight = 0;
    std::vector<Staging::Slot> slots;  ///< free ones of its own
    std::vector<Staging::Slot> given;  ///< those that the sender may fill
    std::shared_ptr<const Mappings::Use> mapping;
    LaneId via;                   ///< that reads `from`, or has the ring's slots
    Spot from;                    ///< get: the sender's memory
    std::optional<Error> broken;  ///< why it fails in the end
    bool is_cut = false;          ///< nothing more comes from the sender
    bool has_word = false;        ///< the sender has said whether what it sent is good
    std::int64_t begun_ns = 0;
  };
  struct Arrival {
    Envelope envelope;
    NoteHeader header;
    std::vector<std::byte> payload;
  };
  struct Release : RequestState {
    Release() : RequestState(true) {}

    LaneId lane;
    IpcMemoryHandle handle;            ///< of the allocation
    const std::byte* begin = nullptr;  ///< likewise
    std::vector<NodeId> waits_for;
  };
  /// A piece on its way.
  struct Operation {
    using Kind = FragmentReport::Kind;
    Kind kind = Kind::send;
    std::int64_t request = 0;
    StreamRange range;
    std::optional<Staging::Slot> slot;
    std::optional<Staging::Slot> between{};  ///< fill: of this node's device, on the way
    std::int64_t begun_ns = 0;               ///< if fragments are told of
    [[nodiscard]] bool is_of_send() const { return kind <= Kind::fill; }
  };
  struct Mail {
    std::shared_ptr<Send> send;
    std::shared_ptr<Receive> receive;
    std::shared_ptr<Release> release;
    std::optional<std::pair<bool, std::int64_t>> cancelled;  ///< whether a send, and which
  };
  /// One device of a peer's.
  struct DeviceIntroduction {
    DeviceUuid device;
    MemoryReference ring;  ///< its slots; meaningless where there are none, as nobody grants them
  };
  struct Peer {
    bool is_lost = false;
    bool is_introduced_to = false;  ///< knows of this node's devices
    bool has_introduced = false;
    bool has_said_goodbye = false;
    std::vector<DeviceIntroduction> devices;
    std::string_view no_shared_there;  ///< why its devices do not reach this node's window
    std::string_view not_read_here;    ///< why its memory is not read by this node's processor
    /// Why memory of these devices is not mapped: (theirs, ours), -1 for host memory.
    std::map<std::pair<std::int32_t, std::int32_t>, std::string_view> not_mapped_here;
    std::map<std::pair<std::int32_t, std::int32_t>, std::string_view> not_mapped_there;
  };
  /// An allocation of this node, as importers know it.
  using AllocationKey = std::pair<std::int32_t, std::uint64_t>;  ///< lane, allocation
  struct ReleasedMemory {
    DeviceUuid device;
    std::uint64_t allocation = 0;
  };

  /// Wakes the progress thread when an operation of a device has ended.
  class Waker final : public Notifier {
   public:
    explicit Waker(const std::function<void()>& wake) : wake_(wake) {}
    void notify() noexcept override { wake_(); }

   private:
    const std::function<void()>& wake_;
  };

  /// What a credit is good for.
  static constexpr std::int64_t credit_bytes = 64;
  /// That an eager message takes, with what is kept of it beside its bytes.
  [[nodiscard]] static std::int32_t credits_for(std::int64_t bytes) {
    return static_cast<std::int32_t>(1 + (bytes + credit_bytes - 1) / credit_bytes);
  }
  /// Pieces of a message between contiguous memories that are posted at a time.
  static constexpr std::int32_t direct_pieces = 4;

  // ---- requests -------------------------------------------------------------------------------
  [[nodiscard]] Side make_side(ShapeCache& shapes, std::string_view what, void* memory,
                               std::int64_t count, const Datatype& type);
  /// Of a shape that somebody else keeps.
  [[nodiscard]] Side make_side(const Shape& shape, std::string_view what, void* memory) const;
  [[nodiscard]] const std::shared_ptr<const Shape>& recent(std::shared_ptr<const Shape>& kept,
                                                           ShapeCache& shapes,
                                                           std::string_view what,
                                                           std::int64_t count,
                                                           const Datatype& type);
  [[nodiscard]] std::shared_ptr<Send> new_send(Side side, NodeId to, std::int32_t tag,
                                               ChannelId channel, bool at_once);
  [[nodiscard]] std::shared_ptr<Receive> new_receive(Side side, const Pattern& pattern,
                                                     bool at_once);
  void check_send(NodeId to, std::int32_t tag) const;
  void check_receive(const Pattern& pattern) const;
  [[nodiscard]] bool send_eagerly(const Side& side, NodeId to, std::int32_t tag, ChannelId channel);
  [[nodiscard]] std::int64_t count_request(bool at_once);
  void check_peer(NodeId peer, std::string_view what) const;
  void post(Mail mail);
  void cancel(bool is_send, std::int64_t id);
  [[nodiscard]] bool take_mail();
  void bury(std::shared_ptr<RequestState> request);
  void forget(Send& send);
  void forget(Receive& receive);

  // ---- notes ----------------------------------------------------------------------------------
  void note_arrived(const Wire::Note& note);
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, NoteHeader header,
                                                std::size_t payload_bytes);
  void send_note(NodeId to, const NoteHeader& header);
  void send_note(NodeId to, const NoteHeader& header, std::span<const std::byte> payload);

  // ---- sends ----------------------------------------------------------------------------------
  void start(std::shared_ptr<Send> started);
  void cancel_send(std::int64_t id);
  void answered(const NoteHeader& header, std::span<const std::byte> payload);
  void granted(NodeId from, const NoteHeader& header, std::span<const std::byte> payload);
  [[nodiscard]] bool reach(Send& send, const NoteHeader& header,
                           std::span<const std::byte> payload);
  void slot_is_free(const NoteHeader& header);
  void post_pieces(Send& send);
  [[nodiscard]] bool post_piece(Send& send);
  [[nodiscard]] bool post_fill(Send& send);
  void packed(Send& send, Staging::Slot slot);
  [[nodiscard]] bool fill(Send& send, const Operation& piece, const Spot& to);
  void sent(const Operation& piece, const std::optional<std::string>& failure);
  void tell_broken(const Send& send);
  void fail(Send& send, Error why);
  void end(Send& send);

  // ---- receives -------------------------------------------------------------------------------
  void start(std::shared_ptr<Receive> started);
  void cancel_receive(std::int64_t id);
  void message_arrived(NodeId from, const NoteHeader& header, std::span<const std::byte> payload);
  void take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
            std::span<const std::byte> payload);
  [[nodiscard]] std::optional<std::string> mismatch(const Receive& receive,
                                                    const NoteHeader& header) const;
  [[nodiscard]] Situation situation_of(const Receive& receive);
  [[nodiscard]] const PathChoice& choose(const Situation& situation);
  void decide(Receive& receive);
  void fetch(Receive& receive);
  [[nodiscard]] bool read_on();
  [[nodiscard]] bool read_piece(Receive& receive);
  void declined(NodeId from, const NoteHeader& header, std::string_view why);
  void grant(Receive& receive);
  void give_slots(Receive& receive);
  void filled(NodeId from, const NoteHeader& header);
  void withdraw(NodeId from, const NoteHeader& header);
  void free_eager_room(const Receive& receive);
  void post_pieces(Receive& receive);
  [[nodiscard]] bool drain(Receive& receive, const Operation& piece, const Spot& from);
  void came(const Operation& piece, const std::optional<std::string>& failure);
  void piece_is_in(Receive& receive, const Operation& piece);
  void end_if_all_is_here(Receive& receive);
  void sender_broke(const NoteHeader& header, std::string_view why);
  void fail(Receive& receive, Error why);
  void end(Receive& receive);
  [[nodiscard]] Staging& slots_of(const Receive& receive);
  [[nodiscard]] std::int64_t slot_bytes(Path path) const;
  void refuse(const Receive& receive, const Error& why);
  void give_back(Receive& receive);
  void map_source_for_the_next(const Receive& receive);

  // ---- mappings -------------------------------------------------------------------------------
  [[nodiscard]] std::vector<NodeId> unknown_neighbours() const;
  void introduce(NodeId to);
  void introduced(NodeId from, std::span<const std::byte> payload);
  void map_rings(NodeId of);
  [[nodiscard]] std::optional<MemoryReference> reference_to(const Side& side, NodeId for_peer);
  [[nodiscard]] static bool is_at(const Peer& peer, std::int32_t its_device, const DeviceUuid& gpu);
  void add_facts_of_device(const Receive& receive, Situation& s);
  [[nodiscard]] std::optional<DeviceUuid> device_between(const Receive& receive) const;
  [[nodiscard]] bool is_locked(const Side& side) const;
  [[nodiscard]] bool is_reached(const Side& side, LaneId by) const;
  [[nodiscard]] LaneId lane_for(const Side& side, const DeviceUuid& device) const;
  [[nodiscard]] Lanes::Loops loops_of(const Side& side) const;
  [[nodiscard]] Spot map(NodeId node, LaneId via, const MemoryReference& memory,
                         std::shared_ptr<const Mappings::Use>& use);
  [[nodiscard]] std::string map_for_the_next(NodeId node, LaneId via,
                                             const MemoryReference& memory);
  void start(const std::shared_ptr<Release>& started);
  void released(NodeId from, const ReleasedMemory& memory);
  void end_releases();
  void reach_window(NodeId node);
  void lock(std::span<std::byte> pages);
  void say_goodbye(NodeId to);

  // ---- all ------------------------------------------------------------------------------------
  void completed(OperationId id, const std::optional<std::string>& failure);
  void serve_waiting();
  void lost(NodeId node);
  [[nodiscard]] OperationId add(const Operation& operation);
  void tell(const Operation& piece);
  /// The same text, there as long as the endpoint.
  [[nodiscard]] std::string_view keep(std::string_view reason) {
    return *reasons_.emplace(reason).first;
  }
  [[nodiscard]] Peer& peer(NodeId node) { return peers_[static_cast<std::size_t>(node.value())]; }
  [[nodiscard]] const Peer& peer(NodeId node) const {
    return peers_[static_cast<std::size_t>(node.value())];
  }

  Wire& wire_;
  Options options_;
  std::function<void()> wake_;
  Waker waker_{wake_};
  ShapeCache sent_shapes_{false};
  ShapeCache received_shapes_{true};
  std::shared_ptr<const Shape> last_sent_;  ///< of messages that were begun at once
  std::shared_ptr<const Shape> last_received_;

  mutable std::mutex mutex_;  ///< what follows
  std::vector<Mail> mail_;
  std::atomic<bool> has_mail_{false};
  std::vector<Mail> taken_mail_;  ///< the progress thread's; kept for its memory
  std::optional<Error> failure_;

  RequestCount requests_;

  // The progress thread's.
  Wire::Events events_;
  Matching matching_;
  Credits credits_;
  std::vector<Peer> peers_;
  std::set<std::string, std::less<>> reasons_;  ///< that views above refer to
  HostPages out_memory_;
  HostPages in_memory_;  ///< empty where the window has room
  std::vector<LockedPages> locked_;
  Lanes lanes_;
  std::vector<Lanes::Ended> ended_;
  std::vector<DeviceBuffer> ring_memory_;  ///< by lane; none: no rings
  Mapper own_mapper_;
  Mappings mappings_;
  std::vector<std::span<std::byte>> reached_windows_;  ///< that devices have page-locked
  std::map<AllocationKey, std::set<NodeId>> told_;     ///< who may have mapped an allocation
  RecentHandles handles_;
  std::optional<std::pair<Situation, PathChoice>> last_choice_;
  Staging out_;
  Staging in_;
  std::vector<Staging> rings_;      ///< by lane: slots for others to fill
  std::vector<Staging> out_rings_;  ///< by lane: where pieces are packed before they are copied
  IdTable<std::shared_ptr<Send>> sends_;
  IdTable<std::shared_ptr<Receive>> receives_;
  std::vector<std::shared_ptr<RequestState>> buried_;  ///< are over; destroyed when there is time
  std::vector<std::shared_ptr<Release>> releases_;
  IdTable<Arrival> arrivals_;
  IdTable<Operation> operations_;
  std::deque<std::int64_t> sends_waiting_;     ///< granted, for an out slot
  std::deque<std::int64_t> receives_waiting_;  ///< taken, for slots
  std::deque<std::int64_t> reading_;           ///< receives by this node's processor, in turn
  std::vector<FlowId> free_flows_;
  std::int32_t next_flow_ = 0;
  std::int64_t next_arrival_ = 1;
  std::int64_t next_operation_ = 1;
  bool maps_neighbours_ = false;
  bool is_closing_ = false;
  Statistics statistics_;
};

}  // namespace heddle::p2p
