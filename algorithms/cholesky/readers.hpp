#pragma once

#include <optional>
#include <vector>

#include "node-runtime/matrix.hpp"

namespace heddle {

/// The readers of a version in cholesky(a, inverses), in the order of JobSpec::readers. The closed
/// form of what the walk broadcasts: a diagonal tile goes down its column; a tile of the panel goes
/// along its row to the column of its own diagonal tile, and from there down that column. Each run
/// ends where the grid has come round.
[[nodiscard]] std::vector<protocol::Reader> cholesky_readers(
    const Matrix<double>& a, const std::optional<Matrix<double>>& inverses, protocol::TileId tile,
    Version version);

}  // namespace heddle
