#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "apps/report.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// Shows a job's progress on a terminal about ten times a second, from its own thread, until the
/// end of the scope. Without effect, and without a thread, if not `wanted`.
class LiveProgress {
 public:
  /// `flops`: of the job on all nodes; this node's progress stands for all. `wanted`: a user
  /// watches the terminal. `node` must outlive it.
  LiveProgress(const Node& node, const Job& job, std::string phase, double flops, bool wanted);
  LiveProgress(const LiveProgress&) = delete;
  LiveProgress& operator=(const LiveProgress&) = delete;
  ~LiveProgress();

  /// Clears the line, then calls `write`, which writes to the terminal.
  void between(const std::function<void()>& write);

 private:
  void run();

  const Node& node_;
  Job job_;
  std::string phase_;
  double flops_;
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace heddle
