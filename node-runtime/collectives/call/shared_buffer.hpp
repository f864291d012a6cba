#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "node-runtime/collectives/call/buffer_side.hpp"

namespace heddle::collectives {

/// The gsb way of ranks on one host (002 sections 4.1 and 5.2): the leader, BufferOptions::root,
/// has a buffer on its device, which the others copy their elements into; it reduces them there,
/// and they copy the result out. For reduce, all_reduce and broadcast. A copy is mapped, done by
/// the device of the rank that has the elements, or staged, through host memory and by a message,
/// as the leader's CopyPolicy says. The buffer is a ring of fragments. Notes are messages: no
/// device waits.
///
/// Where a rank has its elements on the host, or cannot map the buffer, its copies are staged.
///
/// No deadlock: each side always listens for the other's next note; what a note asks for waits for
/// nothing but its device and its message. The leader begins a fragment's copies when the copies of
/// the one before have ended, and the fragment whose place in the ring it takes has been given out.
///
/// A buffer's parts, in bytes from its begin: for each place of the ring a slot for every member's
/// fragment and one for the result; then the slot of a copy that is done again, and those of the
/// leader's own fragments, which are needed if its elements are on the host.
struct SharedBufferLayout {
  BufferCut cut;
  std::int32_t members = 0;  ///< ranks beside the leader; 0: nothing is copied in

  [[nodiscard]] std::int64_t slot(std::int32_t member, std::int64_t fragment) const {
    return cut.slot_bytes() * (fragment % cut.places() * (members + 1) + member);
  }
  [[nodiscard]] std::int64_t result(std::int64_t fragment) const { return slot(members, fragment); }
  [[nodiscard]] std::int64_t again() const {
    return cut.slot_bytes() * (members + 1) * cut.places();
  }
  [[nodiscard]] std::int64_t own(std::int64_t fragment) const {
    return again() + cut.slot_bytes() * (1 + fragment % cut.places());
  }
  [[nodiscard]] std::int64_t all_bytes() const {
    return again() + cut.slot_bytes() * (1 + cut.places());
  }
};

/// What both sides of the way have in common.
class SharedBufferSide : public BufferSide {
 public:
  SharedBufferSide(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                   const BufferOptions& options, const Task& task);
  /// Counts all copies of the operation.
  [[nodiscard]] std::string describe() const override;

 protected:
  const SharedBufferLayout layout_;  // NOLINT(*-non-private-member-variables-in-classes)
};

/// This rank's side. The leader's takes device memory: throws what RankDevices::scratch does, and
/// Error(usage) for an operation without a form for its device.
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_way(const Call& call,
                                                             const DirectRank& rank,
                                                             const DirectMemory& memory,
                                                             const BufferOptions& options,
                                                             const Task& task);
/// Both are in files of their own.
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_leader(const Call& call,
                                                                const DirectRank& rank,
                                                                const DirectMemory& memory,
                                                                const BufferOptions& options,
                                                                const Task& task);
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_member(const Call& call,
                                                                const DirectRank& rank,
                                                                const DirectMemory& memory,
                                                                const BufferOptions& options,
                                                                const Task& task);

}  // namespace heddle::collectives
