#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/index.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::collectives {

/// How a group's messages begin, on a channel of its own.
struct GroupMessages {
  std::vector<NodeId> nodes;  ///< by rank
  std::function<p2p::Request(const p2p::Outgoing&, NodeId to, std::int32_t tag, p2p::OnEnd)> send;
  std::function<p2p::Request(const p2p::Incoming&, NodeId from, std::int32_t tag, p2p::OnEnd)>
      receive;
};

/// An operation of a group that is under way on one rank. Who has its claim advances it: a thread
/// that waits for it, until it is over, or else the progress thread, with each of its messages that
/// ends. When it fails, messages that have found no partner are taken back.
///
/// Locks: mutex_ guards the claim, the messages under way and those that have ended; it is not held
/// while the execution runs, which only who has the claim does.
///
/// No deadlock: the progress thread never waits here; a waiter waits for the bell alone, which
/// rings when a message has ended and when the claim is given back.
///
/// Lives until its last message has ended, whoever drops it.
class Operation final : private Courier, public std::enable_shared_from_this<Operation> {
 public:
  /// `number`: the group's operations count alike on all ranks; at most `numbers_apart` of them are
  /// under way.
  Operation(Task task, std::shared_ptr<const GroupMessages> messages, std::int64_t number);

  static constexpr std::int64_t numbers_apart = 64;

  /// Once, after make_shared.
  void begin();
  [[nodiscard]] bool is_over();
  /// Blocks until it is over; throws what made it fail. Not by the progress thread.
  void wait();

 private:
  struct End {
    std::int64_t ticket;
    std::optional<Error> failure;
  };

  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override;
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override;
  template <class Begin>
  void begin_message(std::int64_t ticket, const Begin& begin_request);
  [[nodiscard]] NodeId node_of(Rank rank) const {
    return messages_->nodes[static_cast<std::size_t>(rank.value())];
  }
  [[nodiscard]] std::int32_t tag_of(Name name) const;
  void message_ended(std::int64_t ticket, std::optional<Error> failure);
  /// Takes the claim if it is free.
  [[nodiscard]] bool claim();
  /// With the claim: advances the execution by all that has ended.
  void advance();
  /// With the claim, gives it back; false: something has ended meanwhile.
  [[nodiscard]] bool give_back();
  void take_back_messages();

  std::shared_ptr<const GroupMessages> messages_;
  std::int64_t number_;
  Execution execution_;
  Doorbell bell_;
  std::mutex mutex_;
  bool is_claimed_ = false;
  bool is_over_ = false;
  std::vector<End> ended_;
  std::map<std::int64_t, std::optional<p2p::Request>> under_way_;  ///< none: beginning
};

}  // namespace heddle::collectives
