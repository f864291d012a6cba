#include "node-runtime/collectives/schedule/make_schedule.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/barrier.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"
#include "node-runtime/collectives/schedule/scan.hpp"
#include "node-runtime/collectives/schedule/scatter.hpp"

namespace heddle::collectives {

namespace {

Schedule without_host_cache(const ScheduleKey& key, Rank rank, const Places& places,
                            const Levels& levels) {
  const Rank root{key.root};
  switch (key.kind) {
    case CollectiveKind::barrier:
      return make_barrier(rank, levels, key.trees);
    case CollectiveKind::broadcast:
      return make_broadcast(rank, root, levels, key.trees);
    case CollectiveKind::scatter:
      return make_scatter(rank, root, levels, key.trees);
    case CollectiveKind::gather:
      return make_gather(rank, root, levels, key.trees);
    case CollectiveKind::all_gather:
      return make_all_gather(rank, levels, key.trees);
    case CollectiveKind::reduce:
      return make_reduce(rank, root, levels, key.trees, key.order);
    case CollectiveKind::all_reduce:
      return make_all_reduce(rank, levels, key.trees, key.all_reduce, key.order);
    case CollectiveKind::reduce_scatter:
      return make_reduce_scatter(rank, levels, key.trees, key.order);
    case CollectiveKind::all_to_all:
      return make_all_to_all(rank, places, levels, key.all_to_all);
    case CollectiveKind::scan:
      return make_scan(rank, places.size(), Scan::inclusive);
    case CollectiveKind::exclusive_scan:
      return make_scan(rank, places.size(), Scan::exclusive);
  }
  HEDDLE_CHECK(false, "a collective of number {}", static_cast<int>(key.kind));
  return {};
}

}  // namespace

ScheduleKey key_of(CollectiveKind kind, std::int32_t root, const CollectiveChoice& choice) {
  return {kind, root, choice.trees, choice.all_reduce, choice.all_to_all, choice.order};
}

Schedule make_schedule(const ScheduleKey& key, Rank rank, const Places& places,
                       const Levels& levels) {
  return with_host_cache(without_host_cache(key, rank, places, levels), places, key.host_cache);
}

std::int32_t message_parts(const ScheduleKey& key, std::int32_t ranks) {
  if (key.kind == CollectiveKind::broadcast) return broadcast_blocks(key.trees);
  if (key.kind == CollectiveKind::all_reduce) {
    return all_reduce_blocks(key.all_reduce, ranks, key.trees);
  }
  return 1;
}

Cut::Range message_part(std::int64_t count, std::int32_t part, std::int32_t parts) {
  const std::int64_t begin = count / parts * part + std::min<std::int64_t>(part, count % parts);
  return {begin, begin + count / parts + (part < count % parts ? 1 : 0)};
}

Fragmentation fragmentation_of(const CollectiveQuery& query, const CollectiveChoice& choice,
                               std::int64_t longest, std::int64_t element_bytes) {
  const bool is_cut =
      query.is_known && choice.fragment_bytes > 0 && choice.fragment_bytes < query.bytes;
  if (!is_cut) return {longest, 1};
  const double elements = choice.fragment_bytes / static_cast<double>(element_bytes);
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(elements)), choice.in_flight};
}

}  // namespace heddle::collectives
