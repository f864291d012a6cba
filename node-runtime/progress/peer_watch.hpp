#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/process_watch.hpp"
#include "base/waking_time.hpp"

namespace heddle {

/// Notices other nodes that are lost: at once where they ran on this host, else by their silence.
/// Each node watches the one before it in a ring, and sends a heartbeat to the one after it.
///
/// Times are those in which this process ran (WakingTime): a node that was stopped judges no other
/// by that time. A watched process that is stopped itself is not lost.
///
/// Invariant (`is_valid()`): heard has a time for each node, none in the future;  no process of
/// this node is watched.
///
/// Not thread-safe: the progress thread's.
class PeerWatch {
 public:
  static constexpr std::int64_t heartbeat_ns = 500'000'000;

  struct Options {
    int rank = 0;
    std::vector<std::string> hosts;             ///< of each node
    std::vector<std::int32_t> local_processes;  ///< of each node; 0: on another host
    double silence_seconds = 0;
  };
  PeerWatch(Options options, std::int64_t now_ns);

  /// A message of that node has arrived.
  void heard(int rank, std::int64_t now_ns);
  /// Looks at the other nodes, if the last look is long enough ago. True: a heartbeat is due.
  /// Throws Error(communication) that names the node, its host and the reason when one is lost.
  [[nodiscard]] bool look(std::int64_t now_ns);
  /// The next look is not put off.
  void look_soon() { looked_ns_ = -heartbeat_ns; }
  /// The processes on this host only.
  void look_at_processes() const;
  /// The node that the heartbeats go to.
  [[nodiscard]] int successor() const { return (options_.rank + 1) % size(); }
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] int size() const { return static_cast<int>(options_.hosts.size()); }
  [[noreturn]] void lost(int rank, const std::string& how) const;

  Options options_;
  /// The other nodes on this host, null elsewhere.
  std::vector<std::unique_ptr<const ProcessWatch>> processes_;
  WakingTime awake_;
  std::vector<std::int64_t> heard_ns_;  ///< by awake_; of this node: its last heartbeat
  std::int64_t looked_ns_ = 0;
  std::int64_t now_ns_ = 0;  ///< by awake_
};

}  // namespace heddle
