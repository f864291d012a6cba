#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
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
#include "node-runtime/collectives/host_board.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// What all handles of a group share on one rank: numbers its operations, moves its messages on a
/// channel of its own, and tells the other members what goes wrong.
///
/// A member that finds a call wrong before anything travels refuses it, and says so to all: members
/// that have not begun that operation throw the same, and the group goes on; if one has, the group
/// fails. It fails, too, when calls do not fit together, an operation fails, or nothing happens for
/// `patience` while somebody waits. Then every call that is under way and every later one throws
/// why; other groups go on.
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
  /// Between calls of the first thread.
  void set_rates(const CollectiveRates& rates) { planner_.set_rates(rates); }
  [[nodiscard]] std::shared_ptr<UserMessages> user_messages() const;

  /// Groups of a node that there may be.
  static constexpr std::int32_t groups_max = 256;
  /// Operations that may be under way.
  static constexpr std::int64_t operations_max = Operation::numbers_apart;

  struct Begun {
    std::shared_ptr<Operation> operation;
    CollectiveChoice choice;
  };
  /// Begins an operation. Throws Error(usage) for a call that makes no sense here, that another
  /// member has refused, and when operations_max are under way; what has made the group fail.
  [[nodiscard]] Begun begin(const Call& call);
  /// Does one, and waits: small ones on the board, if there is one. Throws likewise, and what made
  /// it fail.
  void run(const Call& call);
  /// Where all members are on one host and may map each other's memory, on all of them: from now on
  /// run() has a board. Collective, before other calls.
  void set_up_board();

 private:
  enum class Kind : std::uint8_t { misfit, failed, refused, ask_state, state, compare };
  /// What members tell each other; a text follows.
  struct ControlHeader {
    std::int64_t number = 0;
    std::int32_t rank = 0;
    Kind kind = Kind::failed;
    std::uint8_t code = 0;  ///< ErrorCode
    std::uint16_t length = 0;
  };
  static constexpr std::size_t control_bytes = 4096;
  static constexpr std::size_t calls_remembered = 256;

  GroupCore(std::weak_ptr<UserMessages> messages, Options options);
  void listen();
  void tell(Rank to, Kind kind, std::int64_t number, std::string_view text,
            ErrorCode code = ErrorCode::usage);
  void tell_all(Kind kind, std::int64_t number, std::string_view text,
                ErrorCode code = ErrorCode::usage);
  void heard(const ControlHeader& header, const std::string& text);
  void heard_of_misfit(const ControlHeader& header, const std::string& text);
  void heard_refusal(const ControlHeader& header, const std::string& text);
  void asked_for_state(const ControlHeader& header);
  void refuse(std::int64_t number, const Error& why);
  void misfit(std::int64_t number, Rank peer);
  void over(std::int64_t number, const Error* failure);
  void quiet(std::int64_t number, const std::string& step);
  /// Here, or on all members.
  void fail(const Error& why);
  void fail_all(const Error& why);
  void run_on_board(const Call& call);
  void look_from_board();
  /// With the lock, which is given back meanwhile; whether `is_there` before the limit.
  template <class IsThere>
  bool wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit,
                     const IsThere& is_there);
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

  std::weak_ptr<UserMessages> messages_;
  Options options_;
  Planner planner_;
  GroupMessages own_;
  mutable std::mutex mutex_;
  std::int64_t next_ = 1;
  std::map<std::int64_t, std::shared_ptr<Operation>> under_way_;  ///< null: is being made
  std::deque<Called> calls_;                                      ///< the last ones
  /// Of all calls that have begun: the same on all members whose calls fit together. Messages are
  /// sealed with it, so that what has not fitted is found by the next message at the latest.
  std::uint64_t calls_digest_ = 0;
  std::map<std::int64_t, Error> refusals_;  ///< of others, for operations that are not begun
  std::optional<Error> failure_;
  std::optional<p2p::Request> listening_;
  std::mutex board_mutex_;  ///< of who is at the board; taken before mutex_
  std::unique_ptr<HostBoard> board_;
  std::int64_t on_board_ = 0;  ///< the operation that a thread does there; 0: none
  Waiting::Time on_board_since_;
  std::chrono::milliseconds compares_after_{0};  ///< of who waits at the board
  std::map<std::int64_t, Rank> misfits_;  ///< operations that a message did not fit: from whom
  std::map<std::int32_t, std::string> states_;       ///< of others, for quiet()
  std::map<std::int64_t, std::string> quiet_steps_;  ///< of operations that quiet() looks into
  std::condition_variable news_;                     ///< a state has come, or the failure
};

}  // namespace heddle::collectives
