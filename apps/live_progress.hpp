#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "apps/report.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// Shows on a terminal how far a job has come, about ten times a second, from a thread of its own
/// until the end of the scope. Does nothing, and has no thread, where it is not wanted.
class LiveProgress {
 public:
  /// `flops` is the whole job's, of all nodes; this node's tasks stand for the others'. `wanted`:
  /// there is a terminal and a person at it.
  /// The node outlives it.
  LiveProgress(const Node& node, const Job& job, std::string phase, double flops, bool wanted);
  LiveProgress(const LiveProgress&) = delete;
  LiveProgress& operator=(const LiveProgress&) = delete;
  ~LiveProgress();

  /// Calls `write`, which writes to the terminal, while nothing else stands in the line.
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
