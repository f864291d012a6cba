#pragma once

#include <cstdint>
#include <deque>
#include <mpi.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node-runtime/progress/delayed_messages.hpp"
#include "node-runtime/progress/failure_message.hpp"
#include "node-runtime/progress/job_agreement.hpp"
#include "node-runtime/progress/mpi_flights.hpp"
#include "node-runtime/progress/peer_watch.hpp"
#include "node-runtime/progress/progress_message.hpp"
#include "node-runtime/progress/tile_transport.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// The MPI progress thread's work: everything between nodes, in flight at the same time.
///
/// A version travels on demand of its receiver: when the protocol has a block for it (GrantAction),
/// a small header tells the version's home which tag to send to; the home sends as soon as the
/// version is written (TileTransport). Where the protocol has none (AskAction), the home says when
/// the version is written (OfferAction).
///
/// Bounds: headers in flight by the items in the windows of the peers. `header_receives` are posted
/// at a time, more wait in MPI's queue of unexpected messages (64 bytes each, 512 with the text of
/// a failed job).
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
  enum class Operation : std::uint8_t { receive_header, send_header, receive_failure };
  struct Flight {
    Operation operation = Operation::receive_header;
    std::uint32_t slot = 0;  ///< of a message
  };
  /// Messages that are being sent; they stay where they are until MPI has read them.
  class SentMessages {
   public:
    [[nodiscard]] std::uint32_t take_slot();
    void give_back(std::uint32_t slot) { free_.push_back(slot); }
    [[nodiscard]] ProgressMessage& at(std::uint32_t slot) { return messages_[slot]; }

   private:
    std::deque<ProgressMessage> messages_;
    std::vector<std::uint32_t> free_;
  };
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
  void post(const protocol::GrantAction& grant);
  void post(const protocol::OfferAction& offer);
  template <class Action>
  void post_all(const std::vector<Action>& actions);
  void send_header(const Header& header, int to, std::string_view text = {});
  void send_to_all(const Header& header, std::string_view text = {});
  void post_header_receive(std::uint32_t slot);
  bool poll();
  bool move_tiles();
  void completed(Flight flight, const MPI_Status& status);
  void message_arrived(const ProgressMessage& message, int from);
  void hand_over();
  void drained(const JobVerdict& verdict, int from);
  void wait(Doorbell::Ticket ticket);
  void record_wait(std::int64_t end_ns);
  void watch_peers();
  void close();
  void take_last_messages();
  void shut_down();
  [[nodiscard]] int rank() const { return communicator_.rank(); }

  static constexpr std::uint32_t header_receives = 64;
  static constexpr int header_tag = 1;

  Engine& engine_;
  Communicator& communicator_;
  TileTransport& tiles_;
  trace::ThreadTrace& trace_;
  MpiFlights<Flight> flights_;
  std::vector<ProgressMessage> received_;
  SentMessages sent_;
  FailureMessage failure_;  ///< of another node, received into
  bool has_heard_failure_ = false;
  Arrivals arrivals_;
  DelayedMessages delayed_;
  JobAgreement agreement_;  ///< on node 0
  PeerWatch peers_;
  std::int64_t active_ns_ = 0;
  std::int64_t waiting_since_ns_ = 0;  ///< 0: not waiting
};

}  // namespace heddle
