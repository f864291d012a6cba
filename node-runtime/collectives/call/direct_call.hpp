#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/known_memory.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/copy_table.hpp"
#include "node-runtime/collectives/schedule/direct.hpp"

namespace heddle::collectives {

/// The direct way of ranks on one host: each tells all others where its memory is; the first rank
/// on each device does a share of the elements for all, reading and writing the memory of all in
/// one kernel, and says when it is done (002 sections 4.1 and 5.1). Nobody waits on a device. With
/// one device no process but the first one's uses it.
///
/// Where a rank's memory is not on a device, or one of those who would do the work cannot map it,
/// all hear it before anything is written: all go another way (`otherwise`), or take the schedule's
/// steps. So they do for memory that is new, where mapping takes long: it is mapped when it comes
/// again.
///
/// Elements of reductions in rows of one length and stride on all ranks, or triangles alike, are
/// reduced where they lie; others are packed before, and unpacked behind. Only when all have heard
/// of each other's memory is it known which: a rank that packs then tells those that do the work.
///
/// No deadlock: all messages of a stage are begun together; who does a share waits for no one but
/// its device.
struct DirectRank {
  Rank own{0};
  std::vector<NodeId> nodes;  ///< by rank
  std::shared_ptr<KnownMemory> known;
  /// Mapping memory takes longer than an operation on it; if one rank says so, all go by it.
  bool maps_slowly = false;
  /// Measured copies to and from this rank's device; null: none.
  std::shared_ptr<const CopyTable> copies{};
};
/// This rank's side of one operation.
struct DirectMemory {
  Home home;
  std::byte* input = nullptr;  ///< its first block; null: none
  std::byte* output = nullptr;
  std::int64_t block_bytes = 0;  ///< the same on all ranks
  std::uint64_t signature = 0;   ///< of a block, likewise
  /// Both sides that this rank has are rows, which a reduction may take where they lie: it does if
  /// all ranks' inputs lie alike, and all outputs.
  bool has_rows = false;
  ElementRows input_rows{};
  ElementRows output_rows{};
  bool is_packed = false;        ///< unless rows are taken: one of the sides
  std::vector<Stage> packing{};  ///< then: of the input
  bool is_forced = false;        ///< the call asks for this way: where it cannot be taken, it fails
  std::int64_t number = 0;       ///< of the operation in its group
};

/// Adds the stages to `task.before`, `task.has_all`, `task.why_not`, conditions to the stages of
/// `task.after`, which unpack the output, and, where `otherwise` is not
/// empty, `task.errand`. `otherwise` makes what ranks that share one device do where it cannot map
/// all their memory; all ranks have it, or none.
void add_direct_way(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                    std::function<std::shared_ptr<Errand>()> otherwise, Task& task);

}  // namespace heddle::collectives
