#include "algorithms/qr/layout.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

/// Rows over columns from which on a matrix counts as tall.
constexpr std::int64_t tall_ratio = 4;

/// Columns of a tile on CPUs. Panels are factored by one worker each, updates run at the speed of
/// products as soon as tiles have some width: narrow tiles where there are few columns for many
/// rows, wider ones as the matrix grows (bench/results).
std::int64_t cpu_tile(std::int64_t rows, std::int64_t columns) {
  if (rows >= tall_ratio * columns) return columns <= 1024 ? 64 : 96;
  return columns <= 6000 ? 128 : 192;
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

QrCut choose_qr_cut(const Node& node, std::int64_t rows, std::int64_t columns) {
  const config::Layout& wanted = node.config().layout;
  const NodeFacts& facts = node.facts();
  const bool tall = rows >= tall_ratio * std::max<std::int64_t>(1, columns);
  QrCut cut;
  cut.distribution = facts.distribution;
  if (!wanted.grid && tall) {
    cut.distribution.grid_rows = facts.nodes;
    cut.distribution.grid_columns = 1;
  }
  const std::int64_t nodes = cut.distribution.grid_rows;

  config::Layout squares = wanted;
  if (!wanted.tile && facts.devices == 0) squares.tile = cpu_tile(rows, columns);
  const TileLayout tiles = choose_layout(columns, columns, squares, facts);
  QrLayout& layout = cut.layout;
  layout.tile = tiles.tile;
  layout.strip = tiles.strip;
  layout.small = tiles.small;
  layout.inner = static_cast<std::int32_t>(wanted.inner.value_or(layout.tile));
  if (layout.inner > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.inner {} is more than the tile of {}",
                                              layout.inner, layout.tile));
  }

  const std::int64_t tile_rows = std::max<std::int64_t>(1, quotient_up(rows, layout.tile));
  const std::int64_t tile_columns = std::max<std::int64_t>(1, quotient_up(columns, layout.tile));
  const std::int64_t places = facts.cpu_workers + facts.devices;  // of a node, that compute
  // Tall tiles of each node in a column: enough tasks for all its places beside each other.
  const std::int64_t share = quotient_up(tile_rows, nodes);
  const std::int64_t pieces = std::clamp<std::int64_t>(
      quotient_up(4 * places * cut.distribution.grid_columns, tile_columns), 1, share);
  layout.virtual_tiles = static_cast<std::int32_t>(
      std::min(wanted.virtual_tiles.value_or(quotient_up(share, pieces)), tile_rows));
  if (wanted.tree) {
    layout.tree = *wanted.tree == config::Tree::binomial ? QrTree::binomial : QrTree::flat;
  } else {
    layout.tree = tall && nodes > 1 ? QrTree::binomial : QrTree::flat;
  }
  return cut;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns) {
  const QrCut cut = choose_qr_cut(node, rows, columns);
  return qr_matrix(node, rows, columns, cut.layout, cut.distribution);
}

}  // namespace heddle
