#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/execution/operation.hpp"
#include "node-runtime/collectives/explanations.hpp"
#include "node-runtime/collectives/host_board.hpp"
#include "node-runtime/collectives/node_devices.hpp"
#include "node-runtime/collectives/operation_trace.hpp"
#include "node-runtime/collectives/waiting_streams.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// Operations that a group has beside its numbered ones, with numbers and a channel of their own:
/// the rounds of an exchange.
class GroupRounds {
 public:
  GroupRounds() = default;
  GroupRounds(const GroupRounds&) = delete;
  GroupRounds& operator=(const GroupRounds&) = delete;
  virtual ~GroupRounds() = default;

  /// The group has failed: ends what is under way. Any thread, without a lock.
  virtual void group_failed(const Error& why) = 0;
  /// Calls `told` soon, perhaps now, with what this rank does in a round: "has ended it".
  virtual void ask_state(std::int64_t round,
                         std::function<void(const std::string& state)> told) = 0;
};

/// What all handles of a group share on one rank: numbers its operations, moves its messages on a
/// channel of its own, and tells the other members what goes wrong.
///
/// A member that finds a call wrong before anything travels refuses it, and says so to all: members
/// that have not begun that operation throw the same, and the group goes on; if one has, the group
/// fails. It fails, too, when calls do not fit together, an operation fails, or nothing happens for
/// `patience` while somebody waits. Other groups go on.
///
/// A group fails from an operation on. That one and every later one throw why. Those before end as
/// if nothing were wrong, also on a member that hears of the failure before it has called them:
/// otherwise it would depend on chance whether the last operation before a wrong call throws on
/// some members, as a member may hear of the failure before it has the last messages of that
/// operation. Such operations do end: all members call them, and nobody takes their messages back.
/// Where a node is lost or somebody has waited for `patience`, this does not hold, and the group
/// fails from its first operation on.
///
/// Locks: mutex_ guards all members that change; while it is held no other lock is taken, and
/// nobody is called. board_mutex_ is held by who does an operation on the board.
///
/// No deadlock: threads wait here only for answers of other members' progress threads, and for a
/// second at most (quiet()); at the board, for those who make the same call, and for whoever of
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
    bool have_devices = false;     ///< all nodes, for memory of messages
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
  /// Throws Error(usage) when the node has ended.
  [[nodiscard]] std::shared_ptr<UserMessages> user_messages() const { return devices_.messages(); }
  [[nodiscard]] NodeDevices& devices() { return devices_; }
  void set_explanations(std::shared_ptr<Explanations> to) { options_.explanations = std::move(to); }

  /// Between calls of the first thread.
  void set_trace(std::shared_ptr<OperationTrace> to) { options_.trace = std::move(to); }

  /// Groups of a node that there may be.
  static constexpr std::int32_t groups_max = 256;
  /// Operations that may be under way.
  static constexpr std::int64_t operations_max = Operation::numbers_apart;

  struct Begun {
    std::shared_ptr<Operation> operation;
    CollectiveChoice choice;
    /// To be called when it is over, with the time that it took; may be null.
    std::function<void(double seconds)> explain;
  };
  /// Begins an operation. Throws Error(usage) for a call that makes no sense here, that another
  /// member has refused, and when operations_max are under way; what has made the group fail.
  /// On a `stream`: it begins behind what the stream has queued, and what is queued from now on
  /// waits for it; throws Error(usage), too, for a stream of no device of this node's, and for an
  /// operation without a form for it.
  [[nodiscard]] Begun begin(Call call, Stream* stream = nullptr);
  /// Does one, and waits: small ones on the board, if there is one. Throws likewise, and what made
  /// it fail.
  void run(Call call);
  /// Where all members are on one host and may map each other's memory, on all of them: from now on
  /// run() has a board. Collective, before other calls.
  void set_up_board();

  /// Rounds that end when the group fails. Collective in order: their number on all members,
  /// from 1.
  [[nodiscard]] std::int32_t add(std::weak_ptr<GroupRounds> rounds);
  /// Throws what has made the group fail.
  void throw_failure() const;
  /// Makes the group fail on all members, unless it has failed.
  void fail_all(const Error& why);
  /// Nothing has happened for `patience` in a round of `rounds`, which waits for `step`: asks all
  /// members what they do, and makes the group fail. `what` names the round.
  void quiet(std::int32_t rounds, std::int64_t round, const std::string& what,
             const std::string& step);

 private:
  enum class Kind : std::uint8_t { misfit, failed, refused, ask_state, state, compare };
  /// What members tell each other; a text follows.
  struct ControlHeader {
    std::int64_t number = 0;
    std::int32_t rank = 0;
    Kind kind = Kind::failed;
    std::uint8_t code = 0;  ///< ErrorCode
    std::uint16_t length = 0;
    std::int32_t rounds = 0;  ///< add()'s, that `number` counts in; 0: the group's operations
    std::int32_t unused = 0;
  };
  static constexpr std::size_t control_bytes = 4096;
  static constexpr std::size_t calls_remembered = 256;

  GroupCore(std::weak_ptr<UserMessages> messages, Options options);
  void listen();
  void tell(Rank to, Kind kind, std::int64_t number, std::string_view text,
            ErrorCode code = ErrorCode::usage, std::int32_t rounds = 0);
  void tell_all(Kind kind, std::int64_t number, std::string_view text,
                ErrorCode code = ErrorCode::usage, std::int32_t rounds = 0);
  void heard(const ControlHeader& header, const std::string& text);
  void heard_of_misfit(const ControlHeader& header, const std::string& text);
  void heard_refusal(const ControlHeader& header, const std::string& text);
  void asked_for_state(const ControlHeader& header);
  void asked_for_round(const ControlHeader& header);
  void refuse(std::int64_t number, const Error& why);
  void misfit(std::int64_t number, Rank peer);
  void over(std::int64_t number, const Error* failure);
  void quiet(std::int64_t number, const std::string& step);
  /// With the states of all members.
  void fail_with_states(std::int32_t rounds, std::int64_t number, const std::string& what,
                        const std::string& step);
  /// Operations from number `from` on and all rounds, here or on all members.
  void fail(std::int64_t from, const Error& why);
  void fail_all(std::int64_t from, const Error& why);
  /// The first operation that ends with `why`, which operation `number` has found. Who lacks a
  /// node's messages, or has waited in vain, cannot tell which ones of the others would end.
  [[nodiscard]] static std::int64_t first_to_fail(std::int64_t number, const Error& why) {
    return why.code() == ErrorCode::communication ? 0 : number;
  }
  /// With the lock: what made operation `number` fail with all later ones; null: nothing has.
  [[nodiscard]] const Error* failure_of(std::int64_t number) const {
    return failure_ && number >= failed_from_ ? &*failure_ : nullptr;
  }
  void run_on_board(const Call& call);
  [[nodiscard]] bool is_on_one_host() const;
  [[nodiscard]] std::optional<p2p::LaneId> lane_for(const Call& call, const Stream* stream) const;
  /// Where a trace is written: when a call begins; otherwise 0.
  [[nodiscard]] std::int64_t trace_start() const;
  [[nodiscard]] TracedOperation traced(const Call& call, std::int64_t number,
                                       std::int64_t start_ns) const;
  /// With the lock: of an operation that is over; none: it is in no trace.
  [[nodiscard]] std::optional<TracedOperation> take_traced(std::int64_t number);
  void look_from_board();
  /// With the lock, which is given back meanwhile; whether `is_there` before the limit.
  bool wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit,
                     const std::function<bool()>& is_there);
  [[nodiscard]] Error what_it_was(std::int64_t number);
  /// A call that was made.
  struct Called {
    std::int64_t number;
    CallSummary call;
    bool is_refused = false;
    std::uint64_t digest = 0;  ///< of it and those before; 0: it has not begun
  };
  [[nodiscard]] std::int64_t take_number(const Call& call);
  /// With the lock; null: not among the last ones.
  [[nodiscard]] Called* find_call(std::int64_t number);
  [[nodiscard]] std::string call_of(std::int64_t number);
  // In group_comparison.cpp.
  [[nodiscard]] std::uint64_t seal_behind_others(std::uint64_t seal) const;
  void begins(std::int64_t number, std::uint64_t seal);
  [[nodiscard]] std::string calls_up_to(std::int64_t number);
  void compare_calls(std::int64_t number);
  void heard_comparison(const ControlHeader& header, std::string_view note);
  void fail_by_misfit(std::int64_t number, std::pair<std::int32_t, std::string> first,
                      std::pair<std::int32_t, std::string> second);

  Options options_;
  NodeDevices devices_;
  Planner planner_;
  WaitingStreams streams_;
  GroupMessages own_;
  mutable std::mutex mutex_;
  std::int64_t next_ = 1;
  std::map<std::int64_t, std::shared_ptr<Operation>> under_way_;  ///< null: is being made
  std::map<std::int64_t, TracedOperation> traced_;  ///< of those; empty without a trace
  std::deque<Called> calls_;                        ///< the last ones
  /// Of all calls that have begun: the same on all members whose calls fit together. Messages are
  /// sealed with it, so that what has not fitted is found by the next message at the latest.
  std::uint64_t calls_digest_ = 0;
  std::map<std::int64_t, Error> refusals_;  ///< of others, for operations that are not begun
  std::optional<Error> failure_;
  std::int64_t failed_from_ = 0;  ///< if there is a failure: the first operation that has it
  std::optional<p2p::Request> listening_;
  std::mutex board_mutex_;  ///< of who is at the board; taken before mutex_
  std::unique_ptr<HostBoard> board_;
  std::int64_t on_board_ = 0;  ///< the operation that a thread does there; 0: none
  Waiting::Time on_board_since_;
  std::chrono::milliseconds compares_after_{0};  ///< of who waits at the board
  std::map<std::int64_t, Rank> misfits_;  ///< operations that a message did not fit: from whom
  std::map<std::int32_t, std::string> states_;  ///< of others, for quiet()
  /// Of operations that quiet() looks into; by ControlHeader::rounds and number.
  std::map<std::pair<std::int32_t, std::int64_t>, std::string> quiet_steps_;
  std::vector<std::weak_ptr<GroupRounds>> rounds_;  ///< by number - 1
  std::condition_variable news_;                    ///< a state has come, or the failure
};

}  // namespace heddle::collectives
