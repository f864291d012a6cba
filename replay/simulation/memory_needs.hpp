#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "replay/simulation/simulated_job.hpp"

namespace heddle::replay {

/// Memory of a node's part of a job's matrices at each place: its tiles, and renaming blocks of
/// each size that occurs, as the runtime reserves them. Fed with the node's walk. Only for machines
/// with limited memory: it remembers each tile.
class MemoryNeeds {
 public:
  MemoryNeeds(const SimulatedJob& job, NodeId node, std::int32_t places)
      : job_(job), node_(node), bytes_(static_cast<std::size_t>(places)) {}

  void meet(std::span<const protocol::Access> accesses);

  [[nodiscard]] std::uint64_t bytes(PlaceId place) const {
    return bytes_[static_cast<std::size_t>(place.value())];
  }
  /// Tiles at home there, ascending.
  [[nodiscard]] std::vector<protocol::TileId> tiles(PlaceId place) const;
  [[nodiscard]] std::uint64_t largest_tile_bytes() const { return largest_tile_bytes_; }

 private:
  const SimulatedJob& job_;
  NodeId node_;
  std::vector<std::uint64_t> bytes_;  ///< by place
  std::uint64_t largest_tile_bytes_ = 0;
  /// Homes, by matrix and tile; -1: elsewhere.
  std::map<std::pair<std::int32_t, std::int32_t>, PlaceId> tiles_;
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>>
      renamings_;  ///< matrix, class, place
};

}  // namespace heddle::replay
