#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "base/indexed_vector.hpp"
#include "node-runtime/protocol/block_pool.hpp"
#include "node-runtime/protocol/links.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

struct JobOptions {
  std::int32_t window = 1;         ///< generated, unfinished items of this job on this node at most
  std::vector<PoolOptions> pools;  ///< one per place
  /// The nodes that read a version, without its home, in the order of their first reads. None where
  /// they are not known: it is sent from its home to those that are announced there, as to a reader
  /// that the list lacks. Empty: so are all.
  std::function<std::vector<Reader>(TileId, Version)> readers;
  /// The way of a version that lives on node `home` to its readers, as it looks from this node. A
  /// node that passes a version on comes before those that have it from there (decision 011). Comes
  /// with `readers`. Both agree on all nodes and do not throw.
  std::function<Route(std::span<const Reader>, NodeId home)> route;
};

struct JobCounters {
  std::int64_t tasks = 0;     ///< appended here
  std::int64_t finished = 0;  ///< finished tasks
  std::int64_t skipped = 0;   ///< tasks without an access on this node
  std::int64_t sends = 0;
  std::int64_t receives = 0;
  std::int64_t copies = 0;
};

/// One submitted program on this node. Owned by the protocol until forget().
///
/// Invariant: `items` is in program order and has `unfinished` elements; `pending_sends` of
/// `open_sends` are not done; the pools' extra() adds up
/// to the lengths of all Item::extra_blocks and of `orphan_extra_blocks`; Task::offered counts the
/// task's missing inputs that are available elsewhere.
struct Job {
  JobId id;
  void* context = nullptr;  ///< for the caller
  std::int32_t window = 1;
  std::int32_t unfinished = 0;     ///< items
  std::int32_t pending_sends = 0;  ///< versions that others are to have from here
  std::uint64_t next_order = 0;
  bool generation_ended = false;
  bool cancelled = false;
  bool drained = false;
  Links items;  ///< unfinished, in program order
  Links open_replicas;
  Links open_remotes;
  Links open_sends;
  Links orphan_extra_blocks;  ///< holders of extra blocks whose first user had no successor
  IndexedVector<PlaceId, BlockPool> pools;
  std::function<std::vector<Reader>(TileId, Version)> readers;       ///< as in JobOptions
  std::function<Route(std::span<const Reader>, NodeId home)> route;  ///< likewise
  JobCounters counters;

  explicit Job(JobId job_id) : id(job_id) {}
  /// Item::order of the oldest unfinished item; 0 if all are finished.
  [[nodiscard]] std::uint64_t oldest_order() const {
    return items.linked() ? static_cast<const Item*>(items.next)->order : 0;
  }
  [[nodiscard]] bool window_is_full() const { return unfinished >= window; }
  /// True once an eighth of a full window is free again: avoids waking the generator for every
  /// finished item. An empty window always qualifies, and until then the oldest item can advance.
  [[nodiscard]] bool window_reopens() const {
    return unfinished <= window - (window < 8 ? 1 : window / 8);
  }
  [[nodiscard]] bool is_valid() const;
  /// What the oldest unfinished item waits for (D9).
  [[nodiscard]] std::string blockage() const;
};

}  // namespace heddle::protocol
