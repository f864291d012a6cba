#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/indexed_vector.hpp"
#include "base/process_watch.hpp"
#include "base/waking_time.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/tile_transport.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/reductions.hpp"

namespace heddle {

/// The MPI progress thread's work: everything between nodes, in flight at the same time.
///
/// A version travels on demand of its receiver: when the protocol has a block for it (GrantAction),
/// a small header tells the version's home which tag to send to; the home sends as soon as the
/// version is written (TileTransport). Where the protocol has none (AskAction), the home says when
/// the version is written (OfferAction).
///
/// What is bounded: headers in flight by the items in the windows of the peers. `header_receives`
/// are posted at a time, more wait in MPI's queue of unexpected messages (64 bytes each, 512 with
/// the text of a failed job). Deadlock:
/// what is sent was granted, so sends complete; which grant comes first is decided by the pools
/// (protocol::BlockPool), not here.
class MpiProgress {
 public:
  MpiProgress(Engine& engine, Communicator& communicator, TileTransport& tiles,
              trace::ThreadTrace& trace);
  ~MpiProgress();
  MpiProgress(const MpiProgress&) = delete;
  MpiProgress& operator=(const MpiProgress&) = delete;

  /// The loop; returns when the engine stops or the node has failed and the others know.
  void run();

  /// After run() has thrown: tells the others what made this node fail, in bounded time.
  void run_down();

  /// Reduces `values` over all nodes, in place: the same bits on all of them, not a number where
  /// any node's value is none. Any one thread at a time, in the same order on all nodes; blocks.
  void all_reduce(std::span<double> values, Reduction reduction);
  void barrier();

 private:
  enum class Type : std::int32_t { ask, grant, offer, begun, drained, ended, cancel, heartbeat };
  struct Header {
    Type type = Type::heartbeat;
    std::uint32_t tag = 0;
    std::int32_t job = 0;
    std::int32_t matrix = 0;
    std::int32_t tile = 0;
    std::int32_t version = 0;
    std::int32_t status = 0;
    std::int32_t asked = 0;
    std::int64_t info = 0;
    double pivot = 0;
    std::int32_t code = 0;         ///< ErrorCode of a failed job
    std::uint32_t text_bytes = 0;  ///< of what was thrown, behind the header
    std::uint64_t fingerprint = 0;
  };
  static_assert(sizeof(Header) == 64);
  /// What travels: of the text only what there is.
  struct Packet {
    Header header;
    std::array<char, 448> text;
  };

  enum class Operation : std::uint8_t { receive_header, send_header, receive_failure, collective };
  struct Flight {
    Operation operation = Operation::receive_header;
    std::uint32_t slot = 0;  ///< header buffer
  };
  /// A reduction that one thread waits for and the progress thread carries out. It belongs to both:
  /// where the waiting thread gives up, since the node has failed, MPI may still write to `values`.
  struct Collective {
    std::vector<double> values;
    Reduction reduction = Reduction::sum;
    bool is_posted = false;  ///< the progress thread's
    /// Release when the progress thread has the result, acquire where it is waited for.
    std::atomic<bool> is_done{false};
  };
  /// What others have sent, handed to the engine in one go.
  struct Arrivals {
    std::vector<std::pair<Header, NodeId>> versions;  ///< asks, grants and offers
    std::vector<JobVerdict> drained;
    std::vector<JobVerdict> ended;
    std::vector<JobVerdict> cancelled;
    [[nodiscard]] bool empty() const {
      return versions.empty() && drained.empty() && ended.empty() && cancelled.empty();
    }
  };
  struct Agreement {
    JobVerdict verdict;
    int from = 0;   ///< the node that the verdict is of
    int nodes = 0;  ///< that have drained the job
  };
  /// On node 0: what nodes have said of a job that some have begun.
  struct Beginning {
    JobBegin job;
    int from = 0;
    int nodes = 0;
  };

  void add(MPI_Request request, Flight flight);
  bool post_outbox();
  /// A message that a test wants to be late.
  struct Delayed {
    std::int64_t until_ns = 0;
    std::variant<protocol::SendAction, protocol::AskAction, protocol::GrantAction,
                 protocol::OfferAction>
        action;
  };
  [[nodiscard]] std::int64_t delay_until();
  bool delay(const Delayed& action);
  bool post_delayed();
  void post(const protocol::SendAction& send) { tiles_.send(send); }
  void post(const protocol::AskAction& ask);
  void post(const protocol::GrantAction& grant);
  void post(const protocol::OfferAction& offer);
  template <class Action>
  void post_all(const std::vector<Action>& actions);
  template <class Action>
  [[nodiscard]] static Header header_of(Type type, const Action& action);
  [[nodiscard]] static Header header_of(Type type, const JobVerdict& verdict);
  [[nodiscard]] static JobVerdict verdict_of(const Packet& packet);
  void send_header(const Header& header, int to, std::string_view text = {});
  void send_to_all(const Header& header, std::string_view text = {});
  void post_header_receive(std::uint32_t slot);
  bool post_collective();
  [[nodiscard]] bool has_collective();
  bool poll();
  static void tell(protocol::Protocol& protocol, const Header& header, NodeId from,
                   protocol::Actions& actions);
  bool move_tiles();
  void completed(Flight flight, const MPI_Status& status);
  void packet_arrived(const Packet& packet, int from);
  void hand_over();
  void compare_begin(const JobBegin& begin, int from);
  void merge_verdict(const JobVerdict& verdict, int from);
  void tell_failure(const std::string& text, bool elsewhere);
  void wait(Doorbell::Ticket ticket);
  void record_wait(std::int64_t end_ns);
  void watch_peers();
  void watch_processes();
  [[noreturn]] void lost(NodeId node, const std::string& how);
  void close();
  void shut_down();

  static constexpr std::uint32_t header_receives = 64;
  static constexpr int failure_text_max = 1024;
  static constexpr int header_tag = 1;
  static constexpr int failure_tag = 2;

  Engine& engine_;
  Communicator& communicator_;
  TileTransport& tiles_;
  trace::ThreadTrace& trace_;
  int rank_;
  int size_;
  std::vector<MPI_Request> requests_;
  std::vector<Flight> flights_;  ///< of requests_, by index
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<Packet> received_;
  std::deque<Packet> outgoing_;
  std::vector<std::uint32_t> free_outgoing_;
  std::vector<char> failure_text_;
  Arrivals arrivals_;
  std::vector<Delayed> delayed_;
  std::uint64_t delay_state_ = 0;
  std::vector<Beginning> beginnings_;  ///< on node 0
  std::vector<Agreement> agreements_;  ///< on node 0: jobs that some nodes have drained

  ReductionOperations operations_;
  std::mutex collective_mutex_;  ///< of the next one
  std::shared_ptr<Collective> collective_;
  Doorbell collective_bell_;

  /// The other nodes on this host, null elsewhere.
  IndexedVector<NodeId, std::unique_ptr<const ProcessWatch>> peer_processes_;
  WakingTime awake_;  ///< others are judged by the time in which this node ran
  IndexedVector<NodeId, std::int64_t> heard_ns_;  ///< by awake_
  std::int64_t watched_ns_ = 0;
  std::int64_t active_ns_ = 0;
  std::int64_t waiting_since_ns_ = 0;  ///< 0: not waiting
};

}  // namespace heddle
