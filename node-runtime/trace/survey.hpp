#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// What must be known of all nodes of a run before the first event of an exported trace can be
/// written. Use: add() for every trace, finish() once, then the rest. One thread.
class Survey {
 public:
  /// The next trace of the merge. Throws Error(usage) when two are of the same node, or of runs
  /// with different numbers of nodes.
  void add(const NodeTrace& trace);
  void finish();

  /// Where times begin: the first thing of all nodes, on node 0's clock.
  [[nodiscard]] std::int64_t origin_ns() const { return origin_ns_; }
  [[nodiscard]] const MessageFlows& messages() const { return messages_; }
  [[nodiscard]] std::uint64_t records_dropped() const { return records_dropped_; }
  /// A node's process, from 1: process 0 is the idle process to some viewers.
  [[nodiscard]] static std::int32_t process(NodeId node) { return node.value() + 1; }
  /// The first number for rows. Above all processes: viewers take a thread with the number of its
  /// process as special, and those with the same number in two processes as one.
  [[nodiscard]] std::int32_t first_row() const { return processes_ + 1; }

 private:
  std::map<NodeId, std::size_t> seen_;
  std::int32_t node_count_ = 0;
  std::int32_t processes_ = 0;
  std::int64_t origin_ns_ = 0;
  std::uint64_t records_dropped_ = 0;
  MessageFlows messages_;
};

}  // namespace heddle::trace
