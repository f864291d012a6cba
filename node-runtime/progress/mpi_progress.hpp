#pragma once

#include <cstdint>
#include <mpi.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node-runtime/progress/delayed_messages.hpp"
#include "node-runtime/progress/failure_message.hpp"
#include "node-runtime/progress/job_agreement.hpp"
#include "node-runtime/progress/peer_watch.hpp"
#include "node-runtime/progress/progress_message.hpp"
#include "node-runtime/progress/tile_transport.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// The MPI progress thread's work: everything between nodes, in flight at the same time.
///
/// A version travels on demand of its receiver: when the protocol has a block for it (GrantAction),
/// the version's home is told which room it has there, and sends as soon as the version is written
/// (TileTransport). Where the protocol has none (AskAction), the home says when the version is
/// written (OfferAction).
///
/// All of this travels as notes of the transport's wire, in one channel with what the transport
/// itself has to say, as do agreements on jobs and heartbeats. MPI itself only carries what a
/// failing node tells the others: their transports may have ended.
///
/// Bounds, also of what waits for a node that is stopped while this one goes on: a grant for each
/// block of this node's pools, an ask for each item of its window, an offer for each ask, the few
/// messages of each job that has not ended, which no job does before all nodes have drained it; 64
/// bytes each, 512 with the text of a failed job. Heartbeats have no such bound, so none follows
/// what the other node has not had room to take (TileTransport::tell_sign_of_life); nor do small
/// tiles, which are then announced and stay where they are (p2p::Sender).
///
/// A node that fails hands out what it has said before it tells the others, and they take what has
/// come before they fail, so that no failure overtakes what was done before.
///
/// No deadlock: a tile is sent only once it was granted, so sends complete; which grant comes first
/// is decided by the pools (protocol::BlockPool), not here.
class MpiProgress {
 public:
  MpiProgress(Engine& engine, Communicator& communicator, TileTransport& tiles,
              trace::ThreadTrace& trace);
  ~MpiProgress();
  MpiProgress(const MpiProgress&) = delete;
  MpiProgress& operator=(const MpiProgress&) = delete;

  /// The loop; returns when the engine stops or the node has failed and the others know.
  void run();

  /// After run() has thrown: tells the other nodes what made this one fail, in bounded time, and
  /// the program's threads that wait for messages.
  void run_down();

 private:
  using Type = ProgressMessage::Type;
  using Header = ProgressMessage::Header;
  /// What others have sent, handed to the engine in one go.
  struct Arrivals {
    std::vector<std::pair<Header, NodeId>> versions;  ///< asks, grants and offers
    std::vector<JobVerdict> ended;
    std::vector<JobVerdict> cancelled;
    [[nodiscard]] bool empty() const {
      return versions.empty() && ended.empty() && cancelled.empty();
    }
  };

  bool post_outbox();
  bool post_delayed();
  void post(const protocol::SendAction& send) { tiles_.send(send); }
  void post(const protocol::AskAction& ask);
  void post(const protocol::GrantAction& grant) { tiles_.expect(grant); }
  void post(const protocol::OfferAction& offer);
  template <class Action>
  void post_all(const std::vector<Action>& actions);
  void send_to_all(const Header& header, std::string_view text = {});
  bool hear_failure();
  bool move_tiles();
  void message_arrived(const ProgressMessage& message, int from);
  void hand_over();
  bool hand_over_news();
  void drained(const JobVerdict& verdict, int from);
  void wait(Doorbell::Ticket ticket);
  void record_wait(std::int64_t end_ns);
  void watch_peers();
  void close();
  void take_what_has_come();
  void take_last_messages();
  void tell_failure(const Outbox& outbox);
  void shut_down();
  [[nodiscard]] bool has_heard_failure() const { return failure_receive_ == MPI_REQUEST_NULL; }
  [[nodiscard]] int rank() const { return communicator_.rank(); }

  Engine& engine_;
  Communicator& communicator_;
  TileTransport& tiles_;
  trace::ThreadTrace& trace_;
  FailureMessage failure_;  ///< of another node, received into
  MPI_Request failure_receive_ = MPI_REQUEST_NULL;
  Arrivals arrivals_;
  DelayedMessages delayed_;
  JobAgreement agreement_;  ///< on node 0
  PeerWatch peers_;
  std::int64_t active_ns_ = 0;
  std::int64_t waiting_since_ns_ = 0;  ///< 0: not waiting
};

}  // namespace heddle
