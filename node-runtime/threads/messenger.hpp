#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "node-runtime/protocol/actions.hpp"

namespace heddle {

/// A node's part in how a job ended; merged over all nodes (JobResult).
struct JobVerdict {
  protocol::JobId job;
  std::int32_t status = 0;  ///< JobResult::Status
  std::int64_t info = 0;
  double pivot = 0;
  ErrorCode code = ErrorCode::internal;  ///< of a failed job
  std::string error;                     ///< likewise: what was thrown
};

/// A job that a node has begun. Nodes begin the same jobs in the same order.
struct JobBegin {
  protocol::JobId job;
  std::uint64_t fingerprint = 0;  ///< of what it is called and works on
};

/// What the engine hands to the messages between nodes, and hears back. The engine fills an outbox
/// under its lock; the progress thread takes it as a whole. Bounded by windows and pools: an item
/// of a job has at most one message, an ask and a grant, or an offer.
struct Outbox {
  std::vector<protocol::AskAction> asks;
  std::vector<protocol::GrantAction> grants;
  std::vector<protocol::OfferAction> offers;
  std::vector<protocol::SendAction> sends;
  std::vector<JobBegin> begun;
  std::vector<JobVerdict> done;       ///< jobs that are drained here
  std::vector<JobVerdict> cancelled;  ///< jobs to be cancelled everywhere
  std::string failure;                ///< this node fails: tell the others why
  bool failure_elsewhere = false;     ///< `failure` speaks of another node already

  /// What the protocol wants told to other nodes, and sent to them.
  void add(const protocol::Actions& actions) {
    asks.insert(asks.end(), actions.asks.begin(), actions.asks.end());
    grants.insert(grants.end(), actions.grants.begin(), actions.grants.end());
    offers.insert(offers.end(), actions.offers.begin(), actions.offers.end());
    sends.insert(sends.end(), actions.sends.begin(), actions.sends.end());
  }

  [[nodiscard]] bool empty() const {
    return asks.empty() && grants.empty() && offers.empty() && sends.empty() && begun.empty() &&
           done.empty() && cancelled.empty() && failure.empty();
  }
};

}  // namespace heddle
