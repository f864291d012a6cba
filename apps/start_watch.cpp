#include "apps/start_watch.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/process_limits.hpp"
#include "base/waking_time.hpp"

namespace heddle {

StartWatch::StartWatch(std::chrono::milliseconds patience, std::function<void()> give_up)
    : patience_(patience), give_up_(std::move(give_up)) {
  thread_ = start_thread("watching over the start", [this] { run(); });
}

StartWatch::~StartWatch() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StartWatch::run() {
  constexpr std::chrono::milliseconds look_interval{200};
  WakingTime awake(now_ns());
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, look_interval, [this] { return has_ended_; })) {
    if (awake.at(now_ns()) < std::chrono::nanoseconds(patience_).count()) continue;
    lock.unlock();
    return give_up_();
  }
}

}  // namespace heddle
