#include "node-runtime/threads/job_memory.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/scheduling/pool_size.hpp"

namespace heddle {
namespace {

/// A stream whose tasks are not known yet uses these beside twice what it needs at least.
constexpr std::int32_t blocks_soon = 16;

}  // namespace

std::int32_t JobMemory::useful_blocks(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                      std::size_t block_bytes) const {
  const bool hands_on = has_temporaries && store_.places() == 1;
  return std::min(
      options_.extra_blocks_max,
      heddle::useful_blocks(place, minimum, options_.cpu_workers, hands_on, block_bytes));
}

std::int32_t JobMemory::capacity(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                 std::size_t block_bytes) const {
  return minimum + useful_blocks(place, minimum, has_temporaries, block_bytes);
}

/// As many as are useful and what is left allows.
std::int32_t JobMemory::affordable_capacity(PlaceId place, std::int32_t minimum,
                                            bool has_temporaries, std::size_t block_bytes) {
  const std::int64_t left = store_.blocks_available(place, block_bytes) - minimum;
  return minimum +
         affordable_blocks(useful_blocks(place, minimum, has_temporaries, block_bytes), left);
}

/// Bytes that the job is going to write in each of the host's first blocks: its receivers would
/// wait for the pages.
std::vector<std::size_t> JobMemory::bytes_soon(const JobRecord& job, std::size_t block_bytes,
                                               std::int32_t capacity) const {
  std::vector<std::size_t> bytes;
  if (job.external) {
    const std::int32_t blocks = 2 * job.blocks_minimum.front() + blocks_soon;
    bytes.assign(static_cast<std::size_t>(blocks), block_bytes);
  }
  for (const protocol::TileId tile : job.host_takes) bytes.push_back(store_.shape(tile).bytes());
  bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(capacity)));
  return bytes;
}

void JobMemory::reserve(JobRecord& job, Pages pages) {
  HEDDLE_CHECK(job.pools.empty() && std::ssize(job.blocks_minimum) == store_.places() &&
                   std::ssize(job.takers) == store_.places(),
               "job '{}' has {} pools, and was planned for {} places of {}", job.name,
               job.pools.size(), job.blocks_minimum.size(), store_.places());
  job.pools.resize(static_cast<std::size_t>(store_.places()));
  try {
    // The host last: it takes as extra blocks what is left when devices have their backings.
    for (std::int32_t p = store_.places(); p-- > 0;) {
      const std::int32_t minimum = job.blocks_minimum[static_cast<std::size_t>(p)];
      std::size_t block_bytes = 0;
      for (const protocol::MatrixId m : job.takers[static_cast<std::size_t>(p)]) {
        block_bytes = std::max(block_bytes, store_.largest_tile_bytes(m));
      }
      const std::int32_t capacity =
          affordable_capacity(PlaceId{p}, minimum, !job.spec.temporaries.empty(), block_bytes);
      std::vector<std::size_t> soon;
      // Cores that workers need are not spent on pages while they compute.
      const bool populates = pages == Pages::now || !options_.oversubscribed;
      if (p == host_place.value() && populates) soon = bytes_soon(job, block_bytes, capacity);
      const std::int32_t pool =
          store_.add_job_pool(PlaceId{p}, block_bytes, capacity, std::move(soon));
      job.pools[static_cast<std::size_t>(p)] = {pool, capacity, minimum};
      if (pages == Pages::now) store_.populate(pool);
    }
  } catch (...) {
    give_back(job);
    throw;
  }
}

void JobMemory::give_back(JobRecord& job) {
  for (const protocol::PoolOptions& pool : std::exchange(job.pools, {})) {
    if (pool.id != protocol::BlockRef::none) store_.remove_job_pool(pool.id);
  }
}

}  // namespace heddle
