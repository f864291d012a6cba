#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"
#include "node-runtime/residency/frame_space.hpp"

/// What the classes of this folder exchange with their caller.
namespace heddle {

/// Where the content of a block is; the MOESI states of a device's copy (ResidentBlocks).
enum class BlockContent : std::uint8_t { invalid, modified, shared, backed };

/// One use of a block by a task, a copy or a message.
struct ResidencyUse {
  ResidentBlock block;
  /// `write`: the whole content is overwritten, so it is not fetched.
  protocol::AccessMode mode = protocol::AccessMode::read;
  protocol::TileId tile{};    ///< tile in the block; only passed on with its transfers
  std::int32_t priority = 0;  ///< of the user; the block's transfers have it meanwhile
};

/// Most blocks that one request uses.
inline constexpr std::size_t residency_uses_max = 16;

/// Identifies a request; never reused.
using ResidencyTicket = Index<struct ResidencyTicketTag, std::int64_t>;

/// A copy between a block's frame and its backing.
struct ResidencyTransfer {
  ResidentBlock block;
  std::uint64_t offset = 0;  ///< of the frame in the pool
  std::uint64_t bytes = 0;   ///< of the block
  protocol::TileId tile{};   ///< of the last use
};

/// What the caller has to do after an event; filled by events, cleared by the caller.
struct ResidencyActions {
  std::vector<ResidencyTransfer> fetches;      ///< backing to frame; then call fetch_finished
  std::vector<ResidencyTransfer> write_backs;  ///< frame to backing; then call write_back_finished
  std::vector<ResidencyTicket> ready;  ///< all blocks present and pinned; then call release()

  [[nodiscard]] bool empty() const {
    return fetches.empty() && write_backs.empty() && ready.empty();
  }
  void clear() {
    fetches.clear();
    write_backs.clear();
    ready.clear();
  }
};

struct ResidencyStatistics {
  std::int64_t fetches = 0;  ///< finished
  std::uint64_t fetched_bytes = 0;
  std::int64_t write_backs = 0;  ///< finished
  std::uint64_t written_bytes = 0;
  std::int64_t evictions = 0;            ///< frames given up whose content stays in the backing
  std::uint64_t resident_bytes_max = 0;  ///< of frames
};

}  // namespace heddle
