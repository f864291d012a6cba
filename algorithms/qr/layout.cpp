#include "algorithms/qr/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <limits>
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

/// Rows of a tall tile of a binomial tree on CPUs: its pairs take a second pass over the tops, so
/// fewer of them.
constexpr std::int64_t cpu_height_binomial = 4096;

/// Tall tiles of so many tiles, and what a flat tree of them takes.
struct TallTiles {
  std::int64_t tiles;
  double cost;  ///< operations, as if one after the other at the rate of updates
};

/// What a flat tree takes on CPUs, in operations at the rate of updates. The work of all workers
/// and, for all of them but the one who works on it, the chain of geqrt and unmqr of one tall tile
/// for each panel, of which those of geqrt run at half the rate, hide each other in part. Beside
/// the operations there is what the tops of tall tiles and short products cost, and what a V that
/// is large for the caches does. Fitted to 93 cuts of 1000 to 8000 columns on 2 to 28 workers:
/// within 5 % (root of the mean square); of those that were measured the one it takes for the best
/// takes 1.3 % more than the best, at most 10 (bench/results/2026-11-26-32-cores.md).
double flat_tree_cost(std::int64_t rows, std::int64_t columns, std::int64_t width,
                      std::int64_t tiles, std::int64_t workers) {
  const auto m = static_cast<double>(rows);
  const auto n = static_cast<double>(columns);
  const auto w = static_cast<double>(width);
  const auto v = static_cast<double>(tiles);
  const auto p = static_cast<double>(workers);
  const double per_operation = (1 + 6 / w) * (1 + tall_tile_top(w) / v) * (1 + 4e-7 * v * w * w);
  const double work = 2 * n * n * (m - n / 3) * per_operation;
  double high = 0;  // tiles of the tall tiles at the tops of all panels
  for (double row = 0; row < n; row += w) high += std::min(v, (m - row) / w);
  return std::hypot(work / p, 8 * w * w * w * high * (1 - 1 / p));
}

/// The best tall tiles of that width, of at most so many tiles.
TallTiles best_tall_tiles(std::int64_t rows, std::int64_t columns, std::int64_t width,
                          std::int64_t most, std::int64_t workers) {
  TallTiles best{1, std::numeric_limits<double>::infinity()};
  for (std::int64_t tiles = 1; tiles <= most; ++tiles) {
    const double cost = flat_tree_cost(rows, columns, width, tiles, workers);
    if (cost < best.cost) best = {tiles, cost};
  }
  return best;
}

/// Columns of a tile in a flat tree on CPUs, at most so many: of those that are about as good the
/// widest with which there are enough for the workers, as far as there is one. Those in between
/// (144) have slower kernels on some processors.
std::int64_t flat_tree_width(std::int64_t rows, std::int64_t columns, std::int64_t most,
                             std::int64_t workers) {
  constexpr double about = 1.02;
  constexpr std::array<std::int64_t, 3> widths{48, 96, 192};
  std::array<double, widths.size()> costs{};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::int64_t w = widths[i];
    costs[i] = w > std::max(most, widths.front())
                   ? std::numeric_limits<double>::infinity()
                   : best_tall_tiles(rows, columns, w, tall_tile_rows_most / w, workers).cost;
  }
  const double least = *std::ranges::min_element(costs);
  std::int64_t chosen = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (costs[i] > about * least) continue;
    if (chosen == 0 || are_columns_for(workers, columns, widths[i])) chosen = widths[i];
  }
  return chosen;
}

/// Columns of a tile on CPUs. Where there is a `measured` cut, of its width. `workers` share the
/// columns, `all` of them the work.
std::int64_t cpu_tile(std::int64_t rows, std::int64_t columns, bool tall, std::int64_t workers,
                      std::int64_t all, const std::optional<PanelCut>& measured) {
  if (columns <= 64) return std::max<std::int64_t>(16, (columns + 15) / 16 * 16);
  if (columns <= narrow_columns) return 64;
  const std::int64_t wanted = columns > 3000 || tall ? 192 : columns > 1500 ? 144 : 96;
  const std::int64_t most =
      measured ? measured->width
      : tall   ? std::max<std::int64_t>(48, std::min(wanted, columns / workers) / 48 * 48)
               : flat_tree_width(rows, columns, wanted, all);
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

/// Tiles of a tall tile on CPUs, at most so many.
std::int64_t cpu_tall_tiles(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                            const std::optional<PanelCut>& measured, std::int64_t most,
                            const NodeFacts& facts, std::int64_t workers) {
  const auto within = [&](std::int64_t height) {
    return std::min(most, std::max<std::int64_t>(1, height / layout.tile));
  };
  if (layout.tree == QrTree::binomial) return within(cpu_height_binomial);
  if (measured) {
    const auto height =
        best_panel_height(*measured_times(facts), rows, columns, *measured, workforce_of(facts));
    if (height) return within(*height);
  }
  return best_tall_tiles(rows, columns, layout.tile, within(tall_tile_rows_most), workers).tiles;
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
  const std::int64_t all_workers = of_node * facts.nodes;

  config::Layout squares = wanted;
  if (!wanted.tile) squares.tile = facts.tuning.fixed.tile;
  const bool divides = divides_tasks(wanted, facts) && facts.devices == 0;
  const std::optional<PanelCut> measured =
      squares.tile || divides ? std::nullopt : measured_cut(rows, columns, tall, facts);
  if (!squares.tile && facts.devices == 0 && !divides) {
    squares.tile = cpu_tile(rows, columns, tall, workers, all_workers, measured);
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
    most = cpu_tall_tiles(rows, columns, layout, measured, most, facts, all_workers);
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
