#pragma once

#include <cstdint>
#include <memory>

#include "node-runtime/collectives/call/buffer_side.hpp"

namespace heddle::collectives {

/// The btb way of ranks on one host (002 section 4.1.2): a tree (BufferTree), in which each rank
/// that gets something from others has a buffer on its device. Its children copy their values into
/// it, one level after the other, and between two levels it reduces; then it copies what it has
/// into its parent's. The result goes back the same way, the last level first. For reduce,
/// all_reduce and broadcast.
///
/// Each buffer is a ring of fragments, so that the levels of the tree work at the same time. Notes
/// are messages: no device waits. Who has the buffer says when a child copies, which matches the
/// levels: the one before has ended, and the child has the value of its own part. A copy is mapped,
/// done by the child's device, or staged, by a message: as BufferOptions::copies says, if the child
/// can map it. With a table the first ranks stage; by speed there is nothing to compare, all copies
/// of a level being of different buffers, and all are mapped.
///
/// No deadlock: a fragment waits for fragments before it, that take its place in a ring, and for
/// the ranks behind it in the tree, then for those before it; each side always listens for the
/// other's next note, and what a note asks for waits for nothing but its device and its message.
struct TreeBufferLayout {
  BufferCut cut;
  bool reduces = false;

  /// Where what this rank has of a fragment is: a value of some ranks, then the result.
  [[nodiscard]] std::int64_t value(std::int64_t fragment) const {
    return cut.slot_bytes() * (fragment % cut.places());
  }
  /// Where a child's value comes in.
  [[nodiscard]] std::int64_t incoming(std::int64_t fragment) const {
    return value(fragment) + cut.slot_bytes() * cut.places();
  }
  [[nodiscard]] std::int64_t all_bytes() const {
    return cut.slot_bytes() * cut.places() * (reduces ? 2 : 1);
  }
};

/// This rank's side. One that has a buffer takes device memory: throws what RankDevices::scratch
/// does, and Error(usage) for an operation without a form for its device.
[[nodiscard]] std::shared_ptr<Errand> make_tree_buffer_way(const Call& call, const DirectRank& rank,
                                                           const DirectMemory& memory,
                                                           const BufferOptions& options,
                                                           const Task& task);

}  // namespace heddle::collectives
