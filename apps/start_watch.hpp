#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace heddle {

/// Looks after a step that may wait for ever: calls `give_up` on a thread of its own when the step
/// has not ended within `patience`. Time in which the process was stopped does not count.
class StartWatch {
 public:
  /// Throws Error(usage) where the system refuses a thread.
  StartWatch(std::chrono::milliseconds patience, std::function<void()> give_up);
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  /// The step has ended.
  ~StartWatch();

 private:
  void run();

  std::chrono::milliseconds patience_;
  std::function<void()> give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace heddle
