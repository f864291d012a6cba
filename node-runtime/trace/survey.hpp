#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// What an exporter must know of all nodes before it writes the first event. Use: add() for every
/// trace, finish() once, then the rest. Not thread-safe.
class Survey {
 public:
  /// Adds the next trace of the merge. Throws Error(usage) if two are of the same node, or of runs
  /// with different node counts.
  void add(const NodeTrace& trace);
  void finish();

  /// Start of all times: the first record of all nodes, on node 0's clock.
  [[nodiscard]] std::int64_t origin_ns() const { return origin_ns_; }
  [[nodiscard]] const MessageFlows& messages() const { return messages_; }
  [[nodiscard]] std::uint64_t records_dropped() const { return records_dropped_; }
  /// A node's process id, from 1: some viewers treat process 0 as the idle process.
  [[nodiscard]] static std::int32_t process(NodeId node) { return node.value() + 1; }
  /// The first thread id. Above all process ids: viewers treat a thread with its process's id as
  /// special, and equal ids in two processes as one thread.
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
