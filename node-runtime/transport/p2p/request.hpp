#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/index.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/path.hpp"

namespace heddle::p2p {

/// How a send or a receive has ended.
struct Status {
  NodeId source;           ///< receive: the sender of the message
  std::int32_t tag = 0;    ///< and with which tag
  std::int64_t bytes = 0;  ///< of the message
  bool is_cancelled = false;
  Path path = Path::eager;  ///< that it took
};

/// Called by the progress thread when a request has completed, before its handle shows it; with
/// null unless it failed. May start new requests.
using OnEnd = std::function<void(const Status& status, const Error* failure)>;

/// A send or a receive under way; what the endpoint and its handle share.
class RequestState {
 public:
  /// `is_waited_for`: wait() may come before the end, on another thread than the endpoint's.
  explicit RequestState(bool is_waited_for) : is_waited_for_(is_waited_for) {}
  RequestState(const RequestState&) = delete;
  RequestState& operator=(const RequestState&) = delete;
  ~RequestState() = default;

  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  /// Blocks until it is done; throws what made it fail.
  Status wait() const {
    // Acquire pairs with the release at the end of the request: the content and the status are
    // seen.
    if (!is_done()) {
      HEDDLE_CHECK(is_waited_for_, "waiting for a message that was begun at once and is under way");
      is_done_.wait(false, std::memory_order_acquire);
    }
    if (error_) throw *error_;
    return status_;
  }

  // ---- for the endpoint -----------------------------------------------------------------------
  void call_at_end(OnEnd on_end) { on_end_ = std::move(on_end); }
  void complete(const Status& status) {
    // By parts: as a whole it would be loaded right behind the narrower stores that put it
    // together.
    status_.source = status.source;
    status_.tag = status.tag;
    status_.bytes = status.bytes;
    status_.is_cancelled = status.is_cancelled;
    status_.path = status.path;
    end();
  }
  void fail(const Error& error) {
    error_ = error;
    end();
  }

 private:
  void end() {
    if (on_end_) on_end_(status_, error_ ? &*error_ : nullptr);
    is_done_.store(true, std::memory_order_release);
    if (is_waited_for_) is_done_.notify_all();
  }

  std::atomic<bool> is_done_{false};  ///< the members below do not change any more
  const bool is_waited_for_;
  Status status_;
  std::optional<Error> error_;
  OnEnd on_end_;
};

}  // namespace heddle::p2p
