#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "node-runtime/tasks.hpp"

namespace heddle {

/// The nodes that read a version (JobSpec::readers), collected in the order of the program.
class ReaderList {
 public:
  /// `home`: where the tile lives; it needs no message.
  explicit ReaderList(NodeId home) : home_(home) {}

  /// A task of this priority on `node` reads the version next. Repetitions change nothing.
  void add(NodeId node, std::int32_t priority) {
    const auto is_node = [&](const protocol::Reader& r) { return r.node == node; };
    if (node == home_ || std::any_of(readers_.begin(), readers_.end(), is_node)) return;
    readers_.push_back({node, priority});
  }

  [[nodiscard]] std::vector<protocol::Reader> take() { return std::move(readers_); }

 private:
  NodeId home_;
  std::vector<protocol::Reader> readers_;
};

}  // namespace heddle
