#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "node-runtime/collectives/call/exchange_plan.hpp"
#include "node-runtime/collectives/exchange.hpp"
#include "node-runtime/collectives/execution/operation.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/collectives/waiting_streams.hpp"

namespace heddle::collectives {

/// What all handles of an exchange share on one rank: begins its rounds, each an Operation, and
/// tells the group what goes wrong.
///
/// Messages: an exchange has a channel of its own, so that no message of another one, or of the
/// group's operations, can ever be taken for one of its own, in whichever order rounds begin.
/// Within the channel a message is named by its sender, its number among those of the same pair,
/// and the round modulo Operation::numbers_apart. A sender may be ahead by more rounds than that;
/// messages of one name keep their order, and both sides send and receive them in the order of
/// rounds, since a round begins when the one before is over. The seal, which has the round, would
/// show if not.
///
/// Invariant: at most one operation is not over; it is `operation_`, of round `round_`.
///
/// Locks: mutex_ guards all members that change. While it is held no other lock is taken but that
/// of Operation::is_over(), and nobody is called.
///
/// Streams: a round ends for the streams that wait for it when over() is called, or, for one that
/// comes between the operation's end and that call, by arrived() itself. wait() lets them go on,
/// too, so that nobody has to do with them when it has returned, or thrown. A stream goes on once.
///
/// No deadlock: begin() waits for nobody, and arrived() only where the caller moves the messages.
/// A stream that waits holds up no round: works of devices are on streams of their own. A round
/// waits only for rounds of the same exchange and number on other ranks, and these for what
/// check_schedules excludes a circle of.
///
/// Lives as long as a handle, or a round that is under way.
class ExchangeCore final : public GroupRounds, public std::enable_shared_from_this<ExchangeCore> {
 public:
  /// Collective in order. `channel`: of this exchange only, the same on all members.
  [[nodiscard]] static std::shared_ptr<ExchangeCore> make(std::shared_ptr<GroupCore> group,
                                                          ExchangePlan plan, std::string name,
                                                          p2p::ChannelId channel);

  /// On a `stream`: behind what it has queued.
  std::shared_ptr<Operation> begin(Stream* stream = nullptr);
  /// A stream waits for a round's operation.
  void arrived(const std::shared_ptr<Operation>& operation, Stream& stream);
  void wait();
  [[nodiscard]] bool done();
  [[nodiscard]] ExchangeReport report();

  void group_failed(const Error& why) override;
  void ask_state(std::int64_t round, std::function<void(const std::string& state)> told) override;

 private:
  using Clock = std::chrono::steady_clock;

  ExchangeCore(std::shared_ptr<GroupCore> group, ExchangePlan plan, std::string name);
  void use(p2p::ChannelId channel);
  /// With the lock: a round that has ended, where a trace is written.
  [[nodiscard]] std::optional<TracedOperation> take_traced(std::int64_t round);
  void over(std::int64_t round, const Error* failure);
  /// By who finds a round to be over, the last one or one before.
  void found_over(std::int64_t round);
  [[nodiscard]] std::shared_ptr<Operation> take_round(std::optional<Stage> gate);
  void wait_for(Operation& operation);
  void watch(const Stream& stream, const std::shared_ptr<Operation>& operation) const;
  [[nodiscard]] p2p::LaneId lane_of(const Stream& stream) const;
  [[nodiscard]] std::string describe(std::int64_t round) const;

  const std::shared_ptr<GroupCore> group_;
  const ExchangePlan plan_;
  const std::string name_;
  std::int32_t number_ = 0;  ///< in the group
  p2p::ChannelId channel_;
  GroupMessages messages_;
  WaitingStreams streams_;  ///< by round
  std::mutex mutex_;
  std::int64_t round_ = 0;                ///< begun last
  std::shared_ptr<Operation> operation_;  ///< of it; null when it has been found to be over
  std::optional<Error> failure_;          ///< of it, then
  bool has_group_failed_ = false;         ///< all know why
  Clock::time_point begun_;
  /// Of rounds under way, where a trace is written; the next one may begin before over().
  std::map<std::int64_t, std::int64_t> traced_since_ns_;
  double seconds_ = 0;  ///< of it; 0: was not found to be over
};

}  // namespace heddle::collectives
