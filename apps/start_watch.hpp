#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace heddle {

/// Watchdog of a step that may hang: calls `give_up` on its own thread if the step has not ended
/// within `patience`. Time while the process is stopped does not count.
class StartWatch {
 public:
  /// Throws Error(usage) if the system refuses a thread.
  StartWatch(std::chrono::milliseconds patience, std::function<void()> give_up);
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  /// Ends the watch: the step has ended.
  ~StartWatch();

 private:
  void run();

  std::chrono::milliseconds patience_;
  std::function<void()> give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::thread thread_;  ///< last: uses all members above
};

}  // namespace heddle
