#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "node-runtime/protocol/actions.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {

/// Messages that a test wants to be late (MessageFaults), by random times. Without faults it holds
/// none. Not thread-safe: the progress thread's.
class DelayedMessages {
 public:
  using Action = std::variant<protocol::SendAction, protocol::AskAction, protocol::GrantAction,
                              protocol::OfferAction>;

  DelayedMessages(const MessageFaults& faults, int rank)
      : faults_(faults), rank_(static_cast<std::uint64_t>(rank)) {}

  /// There are faults: delay() is to be called.
  [[nodiscard]] bool delays() const { return faults_.delay_us_max > 0; }
  [[nodiscard]] bool is_empty() const { return delayed_.empty(); }
  /// Keeps the message for a while; false: it is to be posted now.
  [[nodiscard]] bool delay(const Action& action, std::int64_t now_ns) {
    if (!delays()) return false;
    state_ = (state_ ^ faults_.seed ^ (rank_ + 1)) * std::uint64_t{0x9E3779B97F4A7C15} + 1;
    const auto delay_us = (state_ >> 33) % (faults_.delay_us_max + 1);
    delayed_.push_back({now_ns + static_cast<std::int64_t>(delay_us) * 1000, action});
    return true;
  }
  /// Calls `post` with each message whose time has come, in any order. False: there was none.
  template <class Post>
  bool post_due(std::int64_t now_ns, const Post& post) {
    bool posted = false;
    for (std::size_t i = 0; i < delayed_.size();) {
      if (delayed_[i].until_ns > now_ns) {
        ++i;
        continue;
      }
      const Delayed due = delayed_[i];
      delayed_[i] = delayed_.back();
      delayed_.pop_back();
      std::visit(post, due.action);
      posted = true;
    }
    return posted;
  }

 private:
  struct Delayed {
    std::int64_t until_ns = 0;
    Action action;
  };

  MessageFaults faults_;
  std::uint64_t rank_;
  std::uint64_t state_ = 0;
  std::vector<Delayed> delayed_;
};

}  // namespace heddle
