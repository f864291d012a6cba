#include <algorithm>
#include <string_view>

#include "base/require.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// The contract of insert(); accesses are few.
void TaskStream::check(const Kernel& kernel, std::span<const protocol::Access> accesses) const {
  const auto job = [&] {
    return bounds_.spec == nullptr ? std::string_view("a job") : bounds_.spec->name;
  };
  require(!accesses.empty() && accesses.size() <= protocol::accesses_max,
          "'{}' inserts '{}' with {} accesses; a task has 1 to {}", job(), kernel.name,
          accesses.size(), protocol::accesses_max);
  require(accesses.front().mode != protocol::AccessMode::read,
          "'{}' inserts '{}' whose first access only reads; it must be the task's main output",
          job(), kernel.name);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const protocol::TileId tile = accesses[i].tile;
    const NodeId node = accesses[i].home.node;
    require(bounds_.nodes == 0 || node.value() < bounds_.nodes,
            "'{}' inserts '{}' on a tile of node {}; there are {} nodes", job(), kernel.name,
            node.value(), bounds_.nodes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool both_read = accesses[i].mode == protocol::AccessMode::read &&
                             accesses[j].mode == protocol::AccessMode::read;
      require(accesses[j].tile != tile || both_read,
              "'{}' inserts '{}' that writes tile {} of matrix {} and accesses it twice; one "
              "access can read and write",
              job(), kernel.name, tile.index, tile.matrix.value());
    }
    require(bounds_.spec == nullptr || std::ranges::find(bounds_.spec->matrices, tile.matrix) !=
                                           bounds_.spec->matrices.end(),
            "'{}' inserts '{}' on matrix {}, which is not among the matrices of the job", job(),
            kernel.name, tile.matrix.value());
  }
}

TaskStream::Room TaskStream::insert(const Kernel& kernel, const AccessList& list,
                                    const TaskOptions& options) {
  const std::span<const protocol::Access> accesses = list.all();
  check(kernel, accesses);
  listener_->insert(kernel, options, accesses);
  return {this};
}

void TaskStream::announce(const protocol::Access& access, NodeId reader, std::int32_t priority) {
  listener_->announce(access, reader, priority);
}

bool TaskStream::publish(const protocol::Access& access) {
  if (bounds_.spec == nullptr || !bounds_.spec->readers) return false;
  if (access.version == protocol::count_here) return false;
  const auto readers = bounds_.spec->readers(access.tile, access.version);
  if (readers.empty()) return false;
  if (access.home.node == node_) {
    listener_->publish(access, readers);
    return true;
  }
  const bool is_known = std::ranges::any_of(
      readers, [&](const protocol::Reader& reader) { return reader.node == node_; });
  require(
      is_known,
      "'{}' reads tile {} of matrix {}, version {}, on node {}, which its JobSpec::readers does "
      "not name for it",
      bounds_.spec->name, access.tile.index, access.tile.matrix.value(), access.version.value(),
      node_.value());
  return true;
}

void TaskStream::release(const protocol::Access& access) {
  listener_->release(access);
}

}  // namespace heddle
