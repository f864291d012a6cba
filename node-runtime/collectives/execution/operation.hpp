#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/index.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/execution/waiting.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::collectives {

class Operation;

/// The same with a text of its own, for another thread: copies of an Error share theirs, by counts
/// in the standard library that a thread sanitizer does not see.
[[nodiscard]] inline Error own_copy(const Error& error) {
  return {error.code(), error.what()};
}

/// How a group's messages begin, on a channel of its own, and what it hears of its operations. Null
/// where it need not.
struct GroupMessages {
  std::vector<NodeId> nodes;  ///< by rank
  std::function<p2p::Request(const p2p::Outgoing&, NodeId to, std::int32_t tag, p2p::OnEnd)> send;
  std::function<p2p::Request(const p2p::Incoming&, NodeId from, std::int32_t tag, p2p::OnEnd)>
      receive;
  /// Work of devices and references to their memory; where the node has devices.
  std::function<p2p::Request(p2p::DeviceWork, p2p::OnEnd)> work{};
  std::function<p2p::Request(std::shared_ptr<p2p::Referral>, p2p::OnEnd)> refer{};
  /// A message has come from `peer` for an operation, and is not the one that is expected. The
  /// operation is aborted soon, with what is wrong.
  std::function<void(std::int64_t number, Rank peer)> misfit;
  /// An operation is over; with what made it fail, or null. By the thread that has its claim.
  std::function<void(std::int64_t number, const Error* failure)> over;
  /// Nothing has ended for `patience` while a thread waits for the operation. By that thread; with
  /// the step that it waits for, if the thread knows it. Sooner where a misfit was told and it was
  /// not aborted. The operation is aborted, or goes on.
  std::function<void(std::int64_t number, const std::string& step)> quiet;
  /// tell_stuck() was called; with the step that it waits for. By who has the claim, again and
  /// again. The operation is aborted, or goes on.
  std::function<void(std::int64_t number, const std::string& step)> stuck{};
  /// Nothing has ended for a while, compares_after at first, then twice as long, while a thread
  /// waits for the operation: perhaps the others do not make the same calls. By that thread. The
  /// operation goes on.
  std::function<void(std::int64_t number)> compare;
  static constexpr std::chrono::milliseconds compares_after{1000};
  std::chrono::milliseconds patience{60000};
  Waiting waiting{};
};

/// An operation of a group that is under way on one rank. Who has its claim advances it: a thread
/// that waits for it, until it is over, or else the progress thread, with each of its messages that
/// ends. When it fails, messages that have found no partner are taken back.
///
/// Locks: mutex_ guards the claim, the messages under way, those that have ended and those that do
/// not fit; it is not held while the execution runs, which only who has the claim does, nor during
/// calls of GroupMessages.
///
/// No deadlock: the progress thread never waits here; a waiter waits for the bell alone, which
/// rings when a message has ended, when the claim is given back, and when it is aborted.
///
/// Lives until its last message has ended, whoever drops it.
class Operation final : private Courier, public std::enable_shared_from_this<Operation> {
 public:
  /// `number`: the group's operations count alike on all ranks; at most `numbers_apart` of them are
  /// under way.
  Operation(Task task, std::shared_ptr<const GroupMessages> messages, std::int64_t number);

  static constexpr std::int64_t numbers_apart = 64;
  /// All of an operation's tags are below.
  static constexpr std::int32_t tags = std::int32_t{1} << 30U;

  [[nodiscard]] std::int64_t number() const { return number_; }
  /// Once, after make_shared. It may have been aborted before.
  void begin();
  [[nodiscard]] bool is_over();
  /// When it is over: Execution::way().
  [[nodiscard]] const std::string& way() const { return execution_.way(); }
  /// Then: Execution::why_not().
  [[nodiscard]] const std::string& why_not() const { return execution_.why_not(); }
  /// Blocks until it is over; throws what made it fail. Not by the progress thread. Any number of
  /// threads and times.
  void wait();
  /// Fails it. Any thread; no effect when it is over.
  void abort(const Error& why);
  /// Calls `told` soon, by the thread that has the claim, with the step that it waits for
  /// (Execution::waits_for()); does not where it is over.
  void ask_step(std::function<void(const std::string& step)> told);
  /// Messages and works that have ended.
  [[nodiscard]] std::int64_t events() const { return events_.load(std::memory_order_relaxed); }
  /// None has ended for GroupMessages::patience, and no thread need wait: GroupMessages::stuck
  /// hears it soon.
  void tell_stuck();

 private:
  struct End {
    std::int64_t ticket;
    std::optional<Error> failure;
  };

  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override;
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override;
  void work(p2p::DeviceWork work, std::int64_t ticket) override;
  void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) override;
  /// `peer`: of a message; none: work of this node.
  template <class Begin>
  void begin_message(std::int64_t ticket, std::optional<Rank> peer, const Begin& begin_request);
  [[nodiscard]] NodeId node_of(Rank rank) const {
    return messages_->nodes[static_cast<std::size_t>(rank.value())];
  }
  [[nodiscard]] std::int32_t tag_of(Name name) const;
  void message_ended(std::int64_t ticket, std::optional<Rank> peer, std::optional<Error> failure);
  /// Takes the claim if it is free.
  [[nodiscard]] bool claim();
  enum class Claim : std::uint8_t { given_back, kept };
  /// With the claim: advances the execution by all that has happened, until nothing more has. Then
  /// the claim is given back, or kept while the operation is not over.
  void advance(Claim afterwards);
  void finish_if_over();
  void serve(const End& end);
  void fail(const Error& why);
  void take_back_messages();
  [[nodiscard]] bool has_misfits();

  std::shared_ptr<const GroupMessages> messages_;
  std::int64_t number_;
  Execution execution_;
  bool is_finished_ = false;  ///< with the claim
  Doorbell bell_;
  std::atomic<std::int64_t> events_{0};  ///< only compared with what it was
  std::mutex mutex_;
  bool is_claimed_ = true;  ///< by who makes it, until begin() has begun it
  bool is_over_ = false;
  std::vector<End> ended_;
  std::vector<std::int64_t> misfits_;  ///< tickets of messages that do not fit
  std::optional<Error> abortion_;      ///< has not been served
  bool is_aborted_ = false;
  std::vector<std::function<void(const std::string&)>> questions_;
  std::map<std::int64_t, std::optional<p2p::Request>> under_way_;  ///< none: beginning
};

}  // namespace heddle::collectives
