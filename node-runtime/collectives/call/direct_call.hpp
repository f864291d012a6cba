#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/direct.hpp"

namespace heddle::collectives {

/// What a group's ranks have found out about each other's memory: whether those that would do a
/// direct operation on it can map it. Alike on all ranks, since all hear the same answers to the
/// same questions.
///
/// Threads: any.
class KnownMemory {
 public:
  enum class Knowledge : std::uint8_t { unknown, mapped, refused };
  [[nodiscard]] Knowledge of(std::uint64_t memory) const;
  void learn(std::uint64_t memory, bool is_mapped);
  /// Keeps memory that other ranks' devices may still write to, though nobody needs it any more: as
  /// long as the group.
  void keep(std::shared_ptr<std::byte> memory);

 private:
  static constexpr std::size_t most = 1024;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, bool> known_;  ///< by a number for the allocations of all ranks
  std::vector<std::shared_ptr<std::byte>> kept_;
};

/// The direct way of ranks on one host: each tells all others where its memory is; the first rank
/// on each device does a share of the elements for all, reading and writing the memory of all in
/// one kernel, and says when it is done (002 sections 4.1 and 5.1). Nobody waits on a device. With
/// one device no process but the first one's uses it.
///
/// Where a rank's memory is not on a device, or not in the reach of those who would do the work,
/// all hear it before anything is written, and the schedule's steps follow.
///
/// No deadlock: all messages of a stage are begun together; who does a share waits for no one but
/// its device.
struct DirectRank {
  Rank own{0};
  std::vector<NodeId> nodes;  ///< by rank
  std::shared_ptr<KnownMemory> known;
};
/// This rank's side of one operation, with the task's operation, scalar and seal.
struct DirectMemory {
  Home home;
  std::byte* input = nullptr;  ///< its first block; null: none
  std::byte* output = nullptr;
  std::int64_t block_bytes = 0;  ///< the same on all ranks
  std::uint64_t signature = 0;   ///< of a block, likewise
  bool is_forced = false;        ///< the call asks for this way: where it cannot be taken, it fails
};

/// Adds the stages to `task.before`, and `task.has_all`.
void add_direct_way(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                    Task& task);

}  // namespace heddle::collectives
