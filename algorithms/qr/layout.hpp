#pragma once

#include <cstdint>

#include "algorithms/qr/qr_matrix.hpp"
#include "config/config.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {

/// How an m x n matrix is cut and dealt out for its QR factorization.
struct QrCut {
  QrLayout layout;
  Distribution distribution;
};

/// What the configuration says, and measured choices where it says `auto`: tall matrices are
/// dealt out by rows and their panels joined in pairs, others lie on a grid that is as square as
/// can be; a virtual tile is as much of a node's part of a column as caches hold and its workers
/// can do without. The same on all nodes. Throws Error(usage) when a wanted combination is
/// impossible.
[[nodiscard]] QrCut choose_qr_cut(std::int64_t rows, std::int64_t columns,
                                  const config::Layout& wanted, const NodeFacts& facts);

/// The keys of `layout` that say just this, whatever the machine; that of the grid stays open.
[[nodiscard]] config::Layout layout_keys(const QrLayout& layout);

/// The layout of a matrix that is cut already, as `choose_qr_cut` would have it where that cuts the
/// matrix alike. Throws Error(usage) for one that QR cannot factorize.
[[nodiscard]] QrLayout qr_layout_of(const MatrixSpec& a, const config::Layout& wanted,
                                    const NodeFacts& facts);

/// Makes the matrices, cut as the node's configuration wants it.
[[nodiscard]] QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns);

}  // namespace heddle
