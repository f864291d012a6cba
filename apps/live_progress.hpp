#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "apps/report.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// What LiveProgress tells of a phase. This node's part stands for all.
struct LivePhase {
  std::string name;       ///< "factorizing"
  double amount = 0;      ///< of the phase on all nodes: flops or bytes, or any unit without a rate
  std::string_view rate;  ///< as Progress::rate
  std::function<double()> fraction;  ///< of the phase that is done; called by another thread
};

/// Shows a phase's progress on a terminal about ten times a second, from its own thread, until the
/// end of the scope. Without effect, and without a thread, if not `wanted`.
class LiveProgress {
 public:
  /// `wanted`: a user watches the terminal. `node` must outlive it.
  LiveProgress(const Node& node, LivePhase phase, bool wanted);
  LiveProgress(const LiveProgress&) = delete;
  LiveProgress& operator=(const LiveProgress&) = delete;
  ~LiveProgress();

  /// Clears the line, then calls `write`, which writes to the terminal.
  void between(const std::function<void()>& write);

 private:
  void run();

  const Node& node_;
  LivePhase phase_;
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace heddle
