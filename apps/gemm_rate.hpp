#pragma once

#include <optional>

#include "node-runtime/node.hpp"

namespace heddle {

/// GFLOP/s of independent matrix products of the tile's size, C -= A A^T, on all CPU workers and
/// devices of all nodes at the same time: what the factorization is compared with. Takes about
/// 0.2 s. Nothing where measuring would take longer than the work of `flops` operations, or where
/// a node has no memory left for it. Collective.
[[nodiscard]] std::optional<double> measure_gemm_rate(Node& node, const TileLayout& layout,
                                                      double flops);

}  // namespace heddle
