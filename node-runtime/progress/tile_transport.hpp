#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/memory/device_cache.hpp"
#include "node-runtime/progress/progress_message.hpp"
#include "node-runtime/progress/tile_messages.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle {

/// Versions of tiles on their way between nodes: what the protocol's grants and sends bring from
/// any place of one node to any place of another, by an endpoint over MPI.
///
/// A grant becomes a receive under a tag of its own (010), and travels as the word of that
/// expectation: the sender learns with it which room its message has (Endpoint::expect), and sends
/// it there as soon as its task has ended. A device's block is not held while its version is not
/// yet written: its message is announced, and then received into the device's memory or, where that
/// has no room, into the block's host backing (DeviceCache::acquire_for_message).
///
/// A version that is passed on (decision 044) follows the one that brings it, piece by piece: over
/// the wire between contiguous host memory; otherwise when all of it has come.
///
/// A message brings the part of a version that its job needs elsewhere (JobSpec::part), to its
/// place in the tile. Both ends ask the job, so the message says nothing about it.
///
/// What is bounded: receives by the blocks of the jobs' pools and matrices, sends by the receives
/// they answer, and so announcements that wait here.
///
/// Threads: construction and destruction by the one that calls MPI then; all else by the progress
/// thread.
class TileTransport {
 public:
  struct Options {
    p2p::PathRates rates;
    std::optional<p2p::Path> path;  ///< taken wherever it can be
    /// On a GPU that nodes share, one process's work waits for the other's time slice: no MPS.
    bool processes_take_turns = true;
    std::function<void(const p2p::MessageReport&)> report;  ///< of messages received
    bool traces = false;                                    ///< fragments are wanted for the trace
    /// Memory of each device that is set aside for the program's own messages.
    std::size_t program_device_bytes = 0;
    double meeting_seconds = 60;  ///< in which nodes of this host say what devices they have
  };
  /// What has come and gone, for the protocol.
  struct Ended {
    std::vector<std::pair<protocol::Landing*, bool>> landings;  ///< and whether they came empty
    std::vector<protocol::Send*> sends;
    [[nodiscard]] bool empty() const { return landings.empty() && sends.empty(); }
  };

  /// What another node has told.
  struct Word {
    NodeId from;
    ProgressMessage message;
  };

  /// Collective. Takes some memory of each device (EndpointSizes), so it comes before whoever takes
  /// all that is left. Throws Error(communication) when a node of this host does not come.
  TileTransport(const Communicator& communicator, std::span<Device* const> devices,
                const Options& options);
  /// Closed, unless `abandon` was called.
  ~TileTransport();
  TileTransport(const TileTransport&) = delete;
  TileTransport& operator=(const TileTransport&) = delete;

  /// Before anything travels.
  void serve(Engine& engine, trace::ThreadTrace& trace);
  /// Gets ready to receive, and tells the sender.
  void expect(const protocol::GrantAction& grant);
  /// Tells another node, in order with expect().
  void tell(NodeId to, const ProgressMessage::Header& header, std::string_view text = {});
  /// Tells another node that this one goes on, unless it reads late: it will see what waits.
  void tell_sign_of_life(NodeId to);
  void send(const protocol::SendAction& send);
  /// Does what can be done now; false: nothing was. Throws what made a message fail.
  bool progress();
  /// Hands out all that this node has to say to others, until `until_ns` at most; a node that is
  /// stopped takes nothing.
  void hand_out(std::int64_t until_ns);
  [[nodiscard]] Ended take_ended() { return std::exchange(ended_, {}); }
  [[nodiscard]] bool has_words() const { return !words_.empty(); }
  /// What other nodes have told, grants among it.
  [[nodiscard]] std::vector<Word> take_words() { return std::exchange(words_, {}); }
  /// Transfers are in progress: poll without sleeping.
  [[nodiscard]] bool is_moving() const {
    return sends_under_way_ > relays_.size() || !waiting_.empty() || is_relaying() ||
           user_messages_->are_moving();
  }
  /// Versions are being passed on while they arrive.
  [[nodiscard]] bool is_relaying() const;
  [[nodiscard]] bool is_expecting() const { return receives_under_way_ > 0; }

  /// The program's own messages, by the same endpoint. Threads: any.
  [[nodiscard]] const std::shared_ptr<UserMessages>& user_messages() const {
    return user_messages_;
  }

  /// The end, when nothing travels any more on any node, and the program's messages have ended:
  /// nodes let go of each other's memory.
  void close();
  [[nodiscard]] bool is_closed() const { return endpoint_.is_idle() && endpoint_.is_closed(); }
  /// The node fails: nothing touches any memory when this returns.
  void abandon(const Error& why);

 private:
  /// Memory of a place, held for a message.
  struct Hold {
    DeviceCache* cache = nullptr;  ///< null: of the host, which need not be held
    DeviceCache::Use use;
    DeviceCache::MessageBuffer buffer;
  };
  /// The ticket of the protocol's record: its tag + 1 while it is expected, one of these
  /// afterwards. A send that is to pass it on may be told of before the grant is, or after the data
  /// has come.
  static constexpr std::int32_t has_come = -1;
  static constexpr std::int32_t has_come_empty = -2;
  struct Landing {
    protocol::GrantAction grant;
    std::int64_t elements = 0;  ///< doubles, if the job goes on
    Hold hold;
    std::int64_t posted_ns = 0;
    std::int64_t request = 0;  ///< the endpoint's number
  };
  struct Sending {
    protocol::SendAction send;
    std::size_t bytes = 0;
    Hold hold;
    std::int64_t posted_ns = 0;
    std::int64_t request = 0;  ///< 0: none yet
  };
  /// Which message a request of the endpoint's brings, for its fragments.
  struct Carried {
    bool is_send = false;
    std::uint32_t slot = 0;
  };

  [[nodiscard]] bool hold(protocol::TileId tile, PlaceId place, protocol::BlockRef block,
                          protocol::AccessMode mode, Hold& held);
  static void let_go(const Hold& held);
  template <class Action>
  [[nodiscard]] TileMessage message_of(const Action& action, const Hold& held);
  [[nodiscard]] std::uint32_t take_landing(const protocol::GrantAction& grant);
  [[nodiscard]] p2p::OnEnd on_received(std::uint32_t tag);
  void is_under_way(std::uint32_t tag, const p2p::Request& request);
  [[nodiscard]] bool receive(std::uint32_t tag);
  [[nodiscard]] bool post(std::uint32_t slot);
  [[nodiscard]] p2p::OnEnd on_sent(std::uint32_t slot);
  [[nodiscard]] bool pass_on_what_arrived();
  void pass_on_the_rest(protocol::Landing& behind, bool is_empty);
  [[nodiscard]] bool serve_waiting();
  void received(std::uint32_t tag, const p2p::Status& status);
  void sent(std::uint32_t slot, const p2p::Status& status);
  void failed(const Error& failure);
  void record_fragment(const p2p::FragmentReport& fragment);
  template <class Action>
  void record(trace::RecordKind kind, const Action& action, NodeId peer, std::uint32_t tag,
              std::size_t bytes, std::int64_t posted_ns, p2p::Path path);
  void meet_neighbours(std::chrono::nanoseconds limit);
  [[nodiscard]] static p2p::Endpoint::Options endpoint_options(std::span<Device* const> devices,
                                                               const Options& options);

  Engine* engine_ = nullptr;
  trace::ThreadTrace* trace_ = nullptr;
  NodeId node_;
  p2p::Endpoint::Options endpoint_options_;
  p2p::MpiWire wire_;
  p2p::Endpoint endpoint_;
  std::shared_ptr<UserMessages> user_messages_;
  TileMessages messages_;
  std::deque<Landing> landings_;  ///< by tag
  std::vector<std::uint32_t> free_landings_;
  std::deque<Sending> sendings_;
  std::vector<std::uint32_t> free_sendings_;
  std::size_t sends_under_way_ = 0;
  std::size_t receives_under_way_ = 0;
  /// A version that is passed on while it arrives, piece by piece where it can.
  struct Relay {
    std::uint32_t slot = 0;  ///< of the sending
    const protocol::Landing* behind = nullptr;
    std::int64_t passed_on = 0;  ///< bytes that the endpoint may send
    bool waits_for_all = false;  ///< nothing of it can leave before
  };
  std::vector<Relay> relays_;  ///< bounded by the sends
  /// Messages whose memory is not to be had yet: landings that were announced, sends.
  std::deque<Carried> waiting_;
  std::unordered_map<std::int64_t, Carried> carried_;  ///< by request, while somebody asks
  std::optional<Error> failure_;
  Ended ended_;
  std::vector<Word> words_;
};

}  // namespace heddle
