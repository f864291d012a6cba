#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {

/// The memory of jobs: blocks for what a job copies, receives and makes on the way, a pool at each
/// place.
///
/// Thread: any; one job by one thread at a time. Takes and gives back memory, which takes long:
/// never under the engine's lock.
class JobMemory {
 public:
  struct Options {
    std::int32_t cpu_workers = 1;
    /// Most blocks of a pool beyond the planned minimum.
    std::int32_t extra_blocks_max = 0;
    /// The workers need all cores.
    bool oversubscribed = false;
  };
  JobMemory(const Options& options, TileStore& store) : options_(options), store_(store) {}

  /// Blocks of that size that a job gets at a place where it needs `minimum`, if memory allows.
  [[nodiscard]] std::int32_t capacity(PlaceId place, std::int32_t minimum, bool has_temporaries,
                                      std::size_t block_bytes) const;

  /// Whether blocks that are used soon get their pages before reserve() returns.
  enum class Pages : std::uint8_t { now, soon };
  /// All pools that the job asks for, or none. Throws Error(usage) with the numbers when they do
  /// not fit.
  void reserve(JobRecord& job, Pages pages);
  /// The pools of a job that has ended, or will never begin.
  void give_back(JobRecord& job);

 private:
  [[nodiscard]] std::int32_t useful_blocks(PlaceId place, std::int32_t minimum,
                                           bool has_temporaries, std::size_t block_bytes) const;
  [[nodiscard]] std::int32_t affordable_capacity(PlaceId place, std::int32_t minimum,
                                                 bool has_temporaries, std::size_t block_bytes);
  [[nodiscard]] std::vector<std::size_t> bytes_soon(const JobRecord& job, std::size_t block_bytes,
                                                    std::int32_t capacity) const;

  Options options_;
  TileStore& store_;
};

}  // namespace heddle
