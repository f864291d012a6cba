#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "base/error.hpp"

namespace heddle {

/// Why a node cannot go on: the first reason, which stays.
///
/// Invariant: failed() implies that a reason is there. Thread: any.
class Failure {
 public:
  /// False where there was a reason before.
  bool set(const Error& reason) {
    const std::lock_guard lock(mutex_);
    if (reason_.has_value()) return false;
    reason_.emplace(reason.code(), reason.what());
    // Release: a thread that sees `failed_` sees the reason.
    failed_.store(true, std::memory_order_release);
    return true;
  }
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// With a text of its own for each caller: copies of an exception share theirs, and the last one
  /// to go frees it.
  [[nodiscard]] std::optional<Error> reason() const {
    if (!failed()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return Error(reason_->code(), reason_->what());
  }

  [[nodiscard]] bool is_valid() const {
    const std::lock_guard lock(mutex_);
    return failed_.load(std::memory_order_relaxed) == reason_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> reason_;
  std::atomic<bool> failed_{false};
};

}  // namespace heddle
