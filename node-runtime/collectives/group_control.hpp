#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
#include "node-runtime/collectives/call_log.hpp"
#include "node-runtime/collectives/execution/waiting.hpp"
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

/// What the members of a group tell each other beside the messages of operations, on one rank: that
/// a call is refused, that messages do not fit, which calls they have made, what they wait for, and
/// that the group has failed.
///
/// A member that finds a call wrong before anything travels refuses it, and says so to all: members
/// that have not begun that operation throw the same, and the group goes on; if one has, the group
/// fails. It fails, too, when calls do not fit together, an operation fails, or nothing happens for
/// `patience` while a thread or a stream waits. Other groups go on.
///
/// A group fails from an operation on. That one and every later one throw why. Those before end as
/// if nothing were wrong, also on a member that hears of the failure before it has called them:
/// otherwise it would depend on chance whether the last operation before a wrong call throws on
/// some members, as a member may hear of the failure before it has the last messages of that
/// operation. Such operations do end: all members call them, and nobody takes their messages back.
/// Where a node is lost or somebody has waited for `patience`, this does not hold, and the group
/// fails from its first operation on.
///
/// Invariant: between make() and the end of the group or of the node one receive is posted, on the
/// group's channel, for what other members tell (tag control_tag, which no operation has). Messages
/// have at most control_bytes. Who finds a failure tells all members before it fails here.
///
/// Locks: mutex_ guards all members that change; while it is held, only the log's lock is taken.
/// Messages begin, and operations and rounds are aborted, without it.
///
/// Threads: any. What others tell is served by the thread that moves messages, which never waits
/// here. No deadlock: other threads wait only for answers of other members' progress threads, and
/// for a second at most (quiet(), what_it_was()).
///
/// Lives as long as the group, or as it takes to serve a message that has come.
class GroupControl : public std::enable_shared_from_this<GroupControl> {
 public:
  struct Options {
    std::vector<NodeId> nodes;  ///< by rank
    Rank own;
    p2p::ChannelId channel;
    std::chrono::milliseconds patience;
    Waiting waiting;
  };
  /// Listens from now on, where there are other members.
  [[nodiscard]] static std::shared_ptr<GroupControl> make(std::weak_ptr<UserMessages> messages,
                                                          Options options,
                                                          std::shared_ptr<CallLog> log);
  GroupControl(const GroupControl&) = delete;
  GroupControl& operator=(const GroupControl&) = delete;
  ~GroupControl();

  // ---- the group's operations ------------------------------------------------------------------

  /// This member's call `number` does not begin.
  void refuse(std::int64_t number, const Error& why);
  /// A message from `peer` is not the one that operation `number` expects: the peer finds out why.
  void misfit(std::int64_t number, Rank peer);
  /// By a thread that waits in vain: asks some others, any two members some steps apart, whether
  /// they have called the same.
  void compare_calls(std::int64_t number);
  /// Nothing has happened for `patience` in operation `number`, which waits for `step`: asks all
  /// members what they do, and makes the group fail.
  void quiet(std::int64_t number, const std::string& step);
  /// The same by the thread that moves messages, or another one that must not wait: again and again
  /// while nothing happens, until the others have answered, or not within a second.
  void stuck(std::int64_t number, const std::string& step);
  /// Operation `number` has failed here, and so does the group.
  void operation_failed(std::int64_t number, const Error& why);
  /// What was wrong with operation `number`, of which misfit() was told: waits until its peer has
  /// told all members both calls; if it does not soon, this one tells what it knows.
  [[nodiscard]] Error what_it_was(std::int64_t number);

  // ---- rounds ----------------------------------------------------------------------------------

  /// Rounds that end when the group fails. Collective in order: their number on all members,
  /// from 1.
  [[nodiscard]] std::int32_t add(std::weak_ptr<GroupRounds> rounds);
  /// Nothing has happened for `patience` in a round of `rounds`; `what` names the round.
  void quiet_round(std::int32_t rounds, std::int64_t round, const std::string& what,
                   const std::string& step);
  void stuck_round(std::int32_t rounds, std::int64_t round, const std::string& what,
                   const std::string& step);
  /// Makes the group fail on all members, unless it has failed.
  void fail_all(const Error& why);

 private:
  enum class Kind : std::uint8_t { misfit, failed, refused, ask_state, state, compare };
  /// What members tell each other; a text follows.
  struct Header {
    std::int64_t number = 0;
    std::int32_t rank = 0;
    Kind kind = Kind::failed;
    std::uint8_t code = 0;  ///< ErrorCode
    std::uint16_t length = 0;
    std::int32_t rounds = 0;  ///< add()'s, that `number` counts in; 0: the group's operations
    std::int32_t unused = 0;
  };
  static constexpr std::int32_t control_tag = Operation::tags;
  static constexpr std::size_t control_bytes = 4096;
  static constexpr std::size_t text_bytes = control_bytes - sizeof(Header);

  GroupControl(std::weak_ptr<UserMessages> messages, Options options, std::shared_ptr<CallLog> log);
  [[nodiscard]] std::int32_t rank() const { return options_.own.value(); }
  [[nodiscard]] std::int32_t size() const {
    return static_cast<std::int32_t>(options_.nodes.size());
  }

  void listen();
  void tell(Rank to, Kind kind, std::int64_t number, std::string_view text,
            ErrorCode code = ErrorCode::usage, std::int32_t rounds = 0);
  void tell_all(Kind kind, std::int64_t number, std::string_view text,
                ErrorCode code = ErrorCode::usage, std::int32_t rounds = 0);
  void heard(const Header& header, const std::string& text);
  void heard_of_misfit(const Header& header, const std::string& text);
  void heard_refusal(const Header& header, const std::string& text);
  void heard_comparison(const Header& header, std::string_view note);
  void asked_for_state(const Header& header);
  void asked_for_round(const Header& header);

  void fail_by_misfit(std::int64_t number, std::pair<std::int32_t, std::string> first,
                      std::pair<std::int32_t, std::string> second);
  /// Whether a message did not fit operation `number`: then the group fails with that.
  [[nodiscard]] bool fail_by_known_misfit(std::int64_t number);
  /// What others are asked about: add()'s number, or 0, and the round's or operation's.
  using Subject = std::pair<std::int32_t, std::int64_t>;
  [[nodiscard]] static Subject operation_subject(std::int64_t number) { return {0, number}; }
  [[nodiscard]] std::string describe_quiet(std::int64_t number) const;
  /// Asks all members what they do, waits for their answers, and fails with them.
  void fail_with_states(const Subject& subject, const std::string& what, const std::string& step);
  /// The same by a thread that does not wait: asks, or fails with the answers.
  void ask_or_fail(const Subject& subject, const std::string& what, const std::string& step);
  void ask_members(const Subject& subject, const std::string& step);
  void fail_with_answers(const Subject& subject, const std::string& what);
  [[nodiscard]] bool has_failed(const Subject& subject) const;
  /// Operations from number `from` on and all rounds, here or on all members.
  void fail(std::int64_t from, const Error& why);
  void fail_all(std::int64_t from, const Error& why);
  /// With the lock, which is given back meanwhile; whether `is_there` before the limit.
  bool wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit,
                     const std::function<bool()>& is_there);

  const std::weak_ptr<UserMessages> messages_;
  const Options options_;
  const std::shared_ptr<CallLog> log_;
  std::mutex mutex_;
  std::optional<p2p::Request> listening_;
  std::map<std::int64_t, Rank> misfits_;  ///< operations that a message did not fit: from whom
  /// What this rank has asked the others about.
  struct Inquiry {
    std::string step;  ///< that this rank waits for
    Waiting::Time since;
    std::map<std::int32_t, std::string> states;  ///< answers, by rank
  };
  [[nodiscard]] bool is_answered(const Inquiry& inquiry) const {
    return std::cmp_equal(inquiry.states.size() + 1, size());
  }
  std::map<Subject, Inquiry> inquiries_;
  std::vector<std::weak_ptr<GroupRounds>> rounds_;  ///< by number - 1
  std::condition_variable news_;                    ///< a state has come, or the failure
};

}  // namespace heddle::collectives
