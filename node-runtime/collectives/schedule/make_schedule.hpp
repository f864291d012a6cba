#pragma once

#include <compare>
#include <cstdint>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/host_cache.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// From a choice to one rank's steps, for everyone who runs operations: on nodes (call/plan.hpp) or
/// in virtual time (replay/collectives). Pure.
namespace heddle::collectives {

/// What the schedules of an operation depend on, beside the places of the group.
struct ScheduleKey {
  CollectiveKind kind = CollectiveKind::barrier;
  std::int32_t root = 0;  ///< 0 where there is none
  LevelTrees trees{Tree::binomial, Tree::binomial, Tree::binomial, Tree::binomial};
  AllReduce all_reduce = AllReduce::reduce_broadcast;
  AllToAll all_to_all = AllToAll::pairwise;
  Order order = Order::ranks;  ///< of reductions
  HostCache host_cache = HostCache::none;

  friend auto operator<=>(const ScheduleKey&, const ScheduleKey&) = default;
};
[[nodiscard]] ScheduleKey key_of(CollectiveKind kind, std::int32_t root,
                                 const CollectiveChoice& choice);

/// The steps of `rank`. `levels`: those of `places`, or a flat one of as many ranks. What a rank
/// keeps in its host cache concerns itself alone: other ranks' steps are the same. Throws
/// Error(usage) for a root that is not there, and for too many ranks in all_to_all.
[[nodiscard]] Schedule make_schedule(const ScheduleKey& key, Rank rank, const Places& places,
                                     const Levels& levels);

/// Blocks that one message is cut into; 1 for operations with a block for each rank or pair, whose
/// blocks are whole.
[[nodiscard]] std::int32_t message_parts(const ScheduleKey& key, std::int32_t ranks);
/// Elements of block `part` of a message of `count`, which is cut into `parts`.
[[nodiscard]] Cut::Range message_part(std::int64_t count, std::int32_t part, std::int32_t parts);

/// How a rank runs its schedule.
struct Fragmentation {
  std::int64_t fragment_elements = 1;
  std::int32_t in_flight = 1;
};
/// `longest`: elements of the longest block, the length of a fragment where nothing is cut.
[[nodiscard]] Fragmentation fragmentation_of(const CollectiveQuery& query,
                                             const CollectiveChoice& choice, std::int64_t longest,
                                             std::int64_t element_bytes);

}  // namespace heddle::collectives
