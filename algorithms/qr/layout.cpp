#include "algorithms/qr/layout.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/error.hpp"
#include "node-runtime/machine/tile_model.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

/// Rows over columns from which on a matrix counts as tall.
constexpr std::int64_t tall_ratio = 4;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Up to here the rules for few columns hold, whatever was measured.
constexpr std::int64_t narrow_columns = 300;

/// Columns of a tile on CPUs. A panel is factored by one worker at a time, at half the speed of the
/// updates: narrow tiles where there are few of them for the `workers` that share the columns, so
/// that panels and updates overlap, wide ones for the kernels where there are enough. Fitted to
/// bench/qr_cpu on 2 and 16 cores (bench/results). Where there is a `measured` cut, of its width.
std::int64_t cpu_tile(std::int64_t columns, bool tall, std::int64_t workers,
                      const std::optional<PanelCut>& measured) {
  if (columns <= 64) return std::max<std::int64_t>(16, (columns + 15) / 16 * 16);
  if (columns <= narrow_columns) return 64;
  const std::int64_t wanted = columns > 3000 || tall ? 192 : columns > 1500 ? 144 : 96;
  const std::int64_t shared = columns / (tall ? workers : 2 * workers);
  const std::int64_t ruled = std::max<std::int64_t>(48, std::min(wanted, shared) / 48 * 48);
  const std::int64_t most = measured ? measured->width : ruled;
  // Of equal width as far as can be: a narrow last column would be all panel.
  const std::int64_t count = quotient_up(columns, most);
  return quotient_up(quotient_up(columns, count), 24) * 24;
}

/// Reflectors that are applied together on CPUs: their triangular factor costs the panel as much as
/// half its own work, with all of a wide panel in one block.
std::int64_t cpu_inner(std::int64_t tile) {
  if (tile >= 96) return 48;
  return tile >= 48 ? std::min<std::int64_t>(32, tile) : tile;
}

/// Rows of a tall tile on CPUs: its V stays in the last cache of a core while a column of tiles is
/// updated; pairs of a binomial tree take a second pass over the tops, so fewer of them.
constexpr std::int64_t cpu_height_flat = 2048;
constexpr std::int64_t cpu_height_binomial = 4096;

/// Columns of a tile on GPUs: a panel's columns are factored at the speed of memory and hide behind
/// the updates of the other columns, which are products at the full rate from some hundred
/// reflectors on.
std::int64_t gpu_tile(std::int64_t columns, std::int64_t gpus) {
  const std::int64_t wanted = columns / (gpus > 1 ? 16 : 12);
  return wanted >= 1024 ? 1024 : wanted >= 512 ? 512 : 256;
}
constexpr std::int64_t gpu_inner = 512;

/// What the measurements say for the width of panels; nothing without them, and where they say
/// little: a narrow or tall matrix on CPUs is joined by kernels that were not measured.
std::optional<PanelCut> measured_cut(std::int64_t rows, std::int64_t columns, bool tall,
                                     const NodeFacts& facts) {
  const KernelTimes* times = measured_times(facts);
  const bool is_apart = facts.devices == 0 && (tall || columns <= narrow_columns);
  if (times == nullptr || is_apart) return std::nullopt;
  return best_panel_cut(*times, rows, columns, workforce_of(facts));
}

std::int64_t automatic_inner(std::int64_t tile, const std::optional<PanelCut>& measured,
                             const NodeFacts& facts) {
  if (const auto fixed = facts.tuning.fixed.inner) return std::min(*fixed, tile);
  if (measured) return std::min(measured->inner, tile);
  if (facts.has_gpus()) return std::min(gpu_inner, tile);
  return facts.devices > 0 ? tile : cpu_inner(tile);
}

/// Rows of a tall tile on CPUs.
std::int64_t cpu_height(QrTree tree, const std::optional<PanelCut>& measured,
                        const NodeFacts& facts) {
  if (tree == QrTree::binomial) return cpu_height_binomial;
  if (!measured) return cpu_height_flat;
  return best_panel_height(*measured_times(facts), *measured).value_or(cpu_height_flat);
}

/// Tiles of a tall tile of a flat tree on CPUs, so that no chain of tasks is long beside the work
/// of all workers. From panel to panel at least geqrt and unmqr of one tall tile of v tiles wait
/// for each other: v w^3 (2 + 4) operations of which those of geqrt run at half the rate, so that
/// n / w panels take as long as 8 v w^2 n; there are 2 n^2 (m - n / 3) operations in all. A
/// quarter, as workers wait for more than this chain: with that, simulated runs of 2 to 32 workers
/// reach at least nine tenths of what the best height gives (tests/system/sizes_test.cpp).
std::int64_t tiles_for_chain(std::int64_t rows, std::int64_t columns, std::int64_t tile,
                             std::int64_t workers_of_all) {
  const auto m = static_cast<double>(std::max(rows, columns));
  const auto n = static_cast<double>(std::min(rows, columns));
  const auto w = static_cast<double>(tile);
  constexpr double share = 0.25;
  const double tiles = share * n * (m - n / 3) / (4 * w * w * static_cast<double>(workers_of_all));
  return std::max(quotient_up(panel_rows_least, tile), static_cast<std::int64_t>(tiles));
}

}  // namespace

QrCut choose_qr_cut(std::int64_t rows, std::int64_t columns, const config::Layout& wanted,
                    const NodeFacts& facts) {
  const bool tall = rows >= tall_ratio * std::max<std::int64_t>(1, columns);
  QrCut cut;
  cut.distribution = facts.distribution;
  if (!wanted.grid && tall) {
    cut.distribution.grid_rows = facts.nodes;
    cut.distribution.grid_columns = 1;
  }
  const std::int64_t nodes = cut.distribution.grid_rows;
  // Of a node on average: nodes may have different numbers, and must come to the same choice.
  const std::int64_t of_node = std::max(1, facts.cpu_workers_of_all / facts.nodes);
  const std::int64_t workers = of_node * cut.distribution.grid_columns;

  config::Layout squares = wanted;
  if (!wanted.tile) squares.tile = facts.tuning.fixed.tile;
  const bool divides = divides_tasks(wanted, facts) && facts.devices == 0;
  const std::optional<PanelCut> measured =
      squares.tile || divides ? std::nullopt : measured_cut(rows, columns, tall, facts);
  if (!squares.tile && facts.devices == 0 && !divides) {
    squares.tile = cpu_tile(columns, tall, workers, measured);
  } else if (measured) {
    squares.tile = measured->width;
  } else if (!squares.tile && facts.has_gpus()) {
    squares.tile = gpu_tile(columns, std::int64_t{facts.devices} * cut.distribution.grid_columns);
  }
  const TileLayout tiles = choose_layout(columns, columns, squares, facts);
  QrLayout& layout = cut.layout;
  layout.tile = tiles.tile;
  layout.strip = tiles.strip;
  layout.small = tiles.small;
  layout.fine = tiles.fine;
  layout.inner = static_cast<std::int32_t>(
      wanted.inner.value_or(automatic_inner(layout.tile, measured, facts)));
  if (layout.inner > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.inner {} is more than the tile of {}",
                                              layout.inner, layout.tile));
  }

  const std::int64_t tile_rows = std::max<std::int64_t>(1, quotient_up(rows, layout.tile));
  const std::int64_t tile_columns = std::max<std::int64_t>(1, quotient_up(columns, layout.tile));
  if (wanted.tree) {
    layout.tree = *wanted.tree == config::Tree::binomial ? QrTree::binomial : QrTree::flat;
  } else {
    // Without columns for all to update meanwhile, a flat tree is a chain of panels.
    const bool is_chain = tall && tile_columns < std::max<std::int64_t>(2, workers);
    layout.tree = (tall && nodes > 1) || is_chain ? QrTree::binomial : QrTree::flat;
  }

  // Tall tiles of each node in a column: enough tasks for all its places beside each other, and no
  // more rows than are good for the caches.
  const std::int64_t places = of_node + facts.devices;
  const std::int64_t share = quotient_up(tile_rows, nodes);
  const std::int64_t leaves = layout.tree == QrTree::binomial ? quotient_up(3 * places, 2) : 1;
  const std::int64_t pieces = std::clamp<std::int64_t>(
      std::max(leaves, quotient_up(2 * places * cut.distribution.grid_columns, tile_columns)), 1,
      share);
  // A GPU factors a panel of any height as fast as the memory allows: nothing is won by cutting it.
  std::int64_t most = facts.has_gpus() ? share : quotient_up(share, pieces);
  if (facts.devices == 0) {
    const std::int64_t height = cpu_height(layout.tree, measured, facts);
    most = std::min(most, std::max<std::int64_t>(1, height / layout.tile));
    if (layout.tree == QrTree::flat) {
      most = std::min(most, tiles_for_chain(rows, columns, layout.tile, of_node * facts.nodes));
    }
  }
  const std::int64_t automatic = facts.tuning.fixed.virtual_tiles.value_or(most);
  layout.virtual_tiles =
      static_cast<std::int32_t>(std::min(wanted.virtual_tiles.value_or(automatic), tile_rows));
  return cut;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns) {
  const QrCut cut = choose_qr_cut(rows, columns, node.config().layout, node.facts());
  return qr_matrix(node, rows, columns, cut.layout, cut.distribution);
}

}  // namespace heddle
