#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/call_log.hpp"
#include "node-runtime/collectives/execution/operation.hpp"
#include "node-runtime/collectives/explanations.hpp"
#include "node-runtime/collectives/group_control.hpp"
#include "node-runtime/collectives/host_board.hpp"
#include "node-runtime/collectives/node_devices.hpp"
#include "node-runtime/collectives/operation_trace.hpp"
#include "node-runtime/collectives/waiting_streams.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// What all handles of a group share on one rank: checks and plans calls, and runs them, as
/// operations on a channel of the group's own or on the board of the host. What was called is in
/// its CallLog; what goes wrong is told and heard by its GroupControl.
///
/// Locks: trace_mutex_ guards traced_; while it is held no other lock is taken, and nobody is
/// called. board_mutex_ is held by who does an operation on the board; the log's and the control's
/// locks are taken with it.
///
/// No deadlock: threads wait at the board for those who make the same call, and for whoever of
/// this node was there before, which all members' calls have in one order.
///
/// Lives as long as a handle or an operation that is under way.
class GroupCore : public std::enable_shared_from_this<GroupCore> {
 public:
  struct Options {
    std::vector<NodeId> nodes;  ///< by rank
    Rank own{0};
    Places places;
    p2p::ChannelId channel;
    CollectiveRates rates{};
    std::chrono::milliseconds patience{60000};
    /// Of a thread that waits at the board, before it sleeps: Board::Patience.
    std::int32_t looks = 0;
    std::int32_t yields = 0;
    Waiting waiting{};
    bool have_devices = false;  ///< all nodes, for memory of messages
    /// Measured copies between ranks that share a device; null: none.
    std::shared_ptr<const CopyTable> copies{};
    CollectiveOptions defaults{};  ///< of calls that do not say otherwise
    /// Null: nothing is explained.
    std::shared_ptr<Explanations> explanations{};
    /// Null: no trace is written.
    std::shared_ptr<OperationTrace> trace{};
    bool is_counted = true;  ///< among the groups_max
  };
  /// Collective in order: all members make the same groups.
  [[nodiscard]] static std::shared_ptr<GroupCore> make(std::weak_ptr<UserMessages> messages,
                                                       Options options);
  ~GroupCore();
  GroupCore(const GroupCore&) = delete;
  GroupCore& operator=(const GroupCore&) = delete;

  [[nodiscard]] std::int32_t rank() const { return options_.own.value(); }
  [[nodiscard]] std::int32_t size() const {
    return static_cast<std::int32_t>(options_.nodes.size());
  }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Planner& planner() const { return planner_; }
  /// Before calls on elements: all nodes have devices.
  void set_have_devices();
  /// All ranks are on one host, and have devices.
  [[nodiscard]] bool may_share_devices() const { return planner_.may_share_devices(); }
  /// Then, between two calls: for what measures copies.
  void set_copy_table(std::shared_ptr<const CopyTable> copies) {
    planner_.set_copy_table(std::move(copies));
  }
  /// Throws Error(usage) when the node has ended.
  [[nodiscard]] std::shared_ptr<UserMessages> user_messages() const { return devices_.messages(); }
  [[nodiscard]] NodeDevices& devices() { return devices_; }
  [[nodiscard]] const CallLog& log() const { return *log_; }
  /// What its members tell each other, for rounds as well.
  [[nodiscard]] GroupControl& control() { return *control_; }
  void set_explanations(std::shared_ptr<Explanations> to) { options_.explanations = std::move(to); }

  /// Between calls of the first thread.
  void set_trace(std::shared_ptr<OperationTrace> to) { options_.trace = std::move(to); }

  /// Groups of a node that there may be.
  static constexpr std::int32_t groups_max = 256;

  struct Begun {
    std::shared_ptr<Operation> operation;
    CollectiveChoice choice;
    /// To be called when it is over, with the time that it took; may be null.
    std::function<void(double seconds)> explain;
  };
  /// Begins an operation. Throws Error(usage) for a call that makes no sense here, that another
  /// member has refused, and when CallLog::under_way_max are under way; what has made the group
  /// fail. On a `stream`: it begins behind what the stream has queued, and what is queued from now
  /// on waits for it; throws Error(usage), too, for a stream of no device of this node's, and for
  /// an operation without a form for it.
  [[nodiscard]] Begun begin(Call call, Stream* stream = nullptr);
  /// Does one, and waits: small ones on the board, if there is one. Throws likewise, and what made
  /// it fail.
  void run(Call call);
  /// Where all members are on one host and may map each other's memory, on all of them: from now on
  /// run() has a board. Collective, before other calls.
  void set_up_board();
  /// As Group::describe_memory().
  [[nodiscard]] std::string describe_memory() const;

 private:
  GroupCore(std::weak_ptr<UserMessages> messages, Options options);
  /// By the thread that has an operation's claim, when it is over.
  void over(std::int64_t number, const Error* failure);
  void run_on_board(const Call& call);
  [[nodiscard]] bool is_on_one_host() const;
  [[nodiscard]] std::optional<p2p::LaneId> lane_for(const Call& call, const Stream* stream) const;
  /// Where a trace is written: when a call begins; otherwise 0.
  [[nodiscard]] std::int64_t trace_start() const;
  [[nodiscard]] TracedOperation traced(const Call& call, std::int64_t number,
                                       std::int64_t start_ns) const;
  void note_traced(const Call& call, const Begun& begun, bool is_on_stream, std::int64_t start_ns);
  /// Takes the record of an operation that is over; none: it is in no trace.
  [[nodiscard]] std::optional<TracedOperation> take_traced(std::int64_t number);
  void look_from_board();

  Options options_;
  NodeDevices devices_;
  Planner planner_;
  WaitingStreams streams_;
  GroupMessages own_;
  const std::shared_ptr<CallLog> log_;
  std::shared_ptr<GroupControl> control_;
  std::mutex trace_mutex_;
  std::map<std::int64_t, TracedOperation> traced_;  ///< under way; empty without a trace
  std::mutex board_mutex_;
  std::unique_ptr<HostBoard> board_;
  // Under board_mutex_.
  std::int64_t at_board_ = 0;  ///< the operation that is done there
  Waiting::Time at_board_since_;
  std::chrono::milliseconds compares_after_{0};  ///< of who waits at the board
};

}  // namespace heddle::collectives
