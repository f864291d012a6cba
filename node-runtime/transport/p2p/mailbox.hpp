#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/p2p/neighbourhood.hpp"
#include "node-runtime/transport/p2p/receive.hpp"
#include "node-runtime/transport/p2p/send.hpp"
#include "node-runtime/transport/p2p/works.hpp"

namespace heddle::p2p {

/// One order of a thread to the progress thread: exactly one member is set.
struct Mail {
  std::shared_ptr<Send> send{};
  std::shared_ptr<Receive> receive{};
  std::shared_ptr<Release> release{};
  std::shared_ptr<Work> work{};
  std::int64_t cancelled_send = 0;
  std::int64_t cancelled_receive = 0;
};

/// Hands requests of all threads to the progress thread, in the order in which they come.
///
/// Locks: mutex_ guards mail_. failure_ is written by the progress thread under mutex_;
/// other threads read it under mutex_, the progress thread reads it without. taken_ is the progress
/// thread's. has_mail_ is a hint: it is stored under mutex_ and read without.
///
/// Invariant (`is_valid()`): has_mail <=> |mail| > 0; failure => |mail| = 0.
///
/// No deadlock: no other function is called while mutex_ is held.
class Mailbox {
 public:
  /// Any thread. Returns the endpoint's failure, if it has failed; the mail is dropped then.
  [[nodiscard]] std::optional<Error> post(Mail mail) {
    const std::scoped_lock lock(mutex_);
    if (failure_.has_value()) return failure_;
    mail_.push_back(std::move(mail));
    // Relaxed: the mail is seen under the lock, now or when the progress thread looks again.
    has_mail_.store(true, std::memory_order_relaxed);
    return std::nullopt;
  }

  // ---- for the progress thread ----------------------------------------------------------------
  /// Calls `serve(mail)` for all mail; false: there was none.
  template <class Serve>
  bool take(const Serve& serve) {
    if (!has_mail_.load(std::memory_order_relaxed)) return false;
    {
      const std::scoped_lock lock(mutex_);
      taken_.swap(mail_);
      has_mail_.store(false, std::memory_order_relaxed);
    }
    for (Mail& one : taken_) serve(one);
    taken_.clear();
    return true;
  }
  /// From now on post() refuses with `why`; the mail that was not served, some of it perhaps taken
  /// by a take() that threw.
  [[nodiscard]] std::vector<Mail> close(const Error& why) {
    std::vector<Mail> left = std::exchange(taken_, {});
    const std::scoped_lock lock(mutex_);
    failure_ = why;
    has_mail_.store(false, std::memory_order_relaxed);
    std::ranges::move(std::exchange(mail_, {}), std::back_inserter(left));
    return left;
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] bool empty() const {
    const std::scoped_lock lock(mutex_);
    return mail_.empty();
  }
  [[nodiscard]] bool is_valid() const {
    const std::scoped_lock lock(mutex_);
    const bool is_flag_right = has_mail_.load(std::memory_order_relaxed) == !mail_.empty();
    return is_flag_right && (!failure_.has_value() || mail_.empty());
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Mail> mail_;
  std::atomic<bool> has_mail_{false};
  std::optional<Error> failure_;
  std::vector<Mail> taken_;  ///< kept for its memory
};

}  // namespace heddle::p2p
