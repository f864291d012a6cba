#pragma once

#include <optional>

#include "node-runtime/node.hpp"

namespace heddle {

/// GFLOP/s of independent matrix products of the tile's size, C -= A A^T, on all CPU workers and
/// devices of all nodes at the same time: the reference rate of the factorization. Takes about 0.2
/// s. Nothing if that exceeds the time of `flops` operations, or a node lacks memory. Collective.
[[nodiscard]] std::optional<double> measure_gemm_rate(Node& node, const TileLayout& layout,
                                                      double flops);

}  // namespace heddle
