#include "apps/live_progress.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/process_limits.hpp"
#include "node-runtime/node_internals.hpp"

namespace heddle {

LiveProgress::LiveProgress(const Node& node, LivePhase phase, bool wanted)
    : node_(node), phase_(std::move(phase)), line_(stderr, wanted) {
  if (wanted) thread_ = start_thread("the progress line", [this] { run(); });
}

LiveProgress::~LiveProgress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void LiveProgress::between(const std::function<void()>& write) {
  const std::lock_guard lock(mutex_);
  line_.clear();
  write();
}

void LiveProgress::run() {
  NodeInternals(node_).bind_beside_workers();
  const auto begin = ProgressLine::Clock::now();
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, ProgressLine::interval, [this] { return ended_; })) {
    const auto now = ProgressLine::Clock::now();
    line_.update({.phase = phase_.name,
                  .done = phase_.amount * phase_.fraction(),
                  .total = phase_.amount,
                  .elapsed_seconds = std::chrono::duration<double>(now - begin).count(),
                  .rate = phase_.rate},
                 now);
  }
}

}  // namespace heddle
