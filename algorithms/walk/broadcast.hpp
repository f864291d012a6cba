#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "node-runtime/threads/program.hpp"

namespace heddle {

/// One version of a tile on its way to its readers, in a program of which every node walks all
/// tasks: sent to those that the job knows (JobSpec::readers) as soon as the program comes to the
/// first of them, or else to each when the program comes to its first task that reads it.
class Broadcast {
 public:
  Broadcast(TaskStream& tasks, const protocol::Access& tile) : tasks_(&tasks), tile_(tile) {}

  /// What tasks read.
  [[nodiscard]] const protocol::Access& tile() const { return tile_; }

  /// The next task of the program that reads the tile runs on `reader`.
  void to(NodeId reader, std::int32_t priority) {
    reads_here_ = reads_here_ || reader == tasks_->node();
    if (tile_.home.node != tasks_->node() || reader == tasks_->node() || is_published_) return;
    if (has(reader)) return;
    is_published_ = readers_.empty() && tasks_->publish(tile_);
    if (is_published_) return;
    readers_.push_back(reader);
    tasks_->announce(tile_, reader, priority);
  }

  /// No later task reads the tile.
  void release() {
    if (reads_here_ || tile_.home.node == tasks_->node()) tasks_->release(tile_);
  }

 private:
  [[nodiscard]] bool has(NodeId reader) const {
    return std::find(readers_.begin(), readers_.end(), reader) != readers_.end();
  }

  TaskStream* tasks_;
  protocol::Access tile_;
  std::vector<NodeId> readers_;  ///< on other nodes; only where the tile lives
  bool reads_here_ = false;
  bool is_published_ = false;
};

}  // namespace heddle
