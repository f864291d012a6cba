#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"

/// The sequential program of QR, and which parts of its tiles travel.
namespace heddle::qr_tree {

enum class Work : std::uint8_t {
  factorize,         ///< the panel, then Q^T on the columns to its right
  apply_transposed,  ///< Q^T on another matrix, with panels that are factored
  apply,             ///< Q on another matrix: from the last panel and the last tile to the first
  generate,          ///< the same on a square upper triangle over nothing
};

/// Each node walks the tasks that write its own tiles. To factorize, `x` is A itself.
[[nodiscard]] Program walk(TaskStream& tasks, QrMatrix q, QrOperand x, Work work);

/// What other nodes need of a tile (JobSpec::part): reflectors without what is above them,
/// triangles, and only the rows of a panel.
[[nodiscard]] TilePart part_of(const QrMatrix& q, const QrOperand& x, Work work,
                               protocol::TileId tile, Version version);

/// The nodes that read a version of a tile elsewhere (JobSpec::readers): reflectors go along the
/// rows of the grid, the rows beside R to the node of the task that takes them.
[[nodiscard]] std::vector<protocol::Reader> readers_of(const QrMatrix& q, const QrOperand& x,
                                                       Work work, protocol::TileId tile,
                                                       Version version);

}  // namespace heddle::qr_tree
