#include "algorithms/qr/layout.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/require.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/machine/tile_model.hpp"
#include "node-runtime/node_facts.hpp"
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

/// Columns of a tile on CPUs; `workers` share the columns. Of a matrix for which there is a `cut`,
/// of its width.
std::int64_t cpu_tile(std::int64_t columns, std::int64_t workers,
                      const std::optional<PanelCut>& cut) {
  if (columns <= 64) return std::max<std::int64_t>(16, (columns + 15) / 16 * 16);
  if (columns <= narrow_columns) return 64;
  const std::int64_t ruled =
      std::max<std::int64_t>(48, std::min<std::int64_t>(192, columns / workers) / 48 * 48);
  const std::int64_t most = cut ? cut->width : ruled;
  // Columns of equal width: a narrow last column would be all panel.
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

/// Devices of each node. Columns of a square matrix for each GPU: two GPUs are slower than one up
/// to 8192 and 1.27 times as fast at 16384 (bench/results/2026-11-28-sizes-h200.md). A tall matrix
/// has rows for all.
std::int32_t devices_of_node(std::int64_t columns, bool tall, const NodeFacts& facts) {
  constexpr std::int64_t columns_each = 8192;
  if (!facts.has_gpus() || facts.are_devices_wanted || tall) return facts.devices;
  const std::int64_t of_node = quotient_up(columns / columns_each, facts.nodes);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(of_node, 1, facts.devices));
}

/// Times of kernels on tall tiles of those widths on CPUs where none were measured; how they
/// compare is what counts. An operation takes longer in narrow tiles, and where V is large for the
/// caches; operations of geqrt take twice as long. With tall_tile_top() fitted to 93 cuts of 1000
/// to 8000 columns on 2 to 28 workers: the model is within 5 % (root of the mean square), and of
/// the cuts that were measured the one it takes for the best takes 1.8 % more than the best, at
/// most 11 (bench/results/2026-11-26-32-cores.md).
KernelTimes usual_times(std::span<const std::int64_t> widths) {
  constexpr std::array<std::int64_t, 5> heights{256, 512, 1024, 1536, tall_tile_rows_most};
  KernelTimes times;
  for (const std::int64_t width : widths) {
    for (const std::int64_t rows : heights) {
      const auto w = static_cast<double>(width);
      const auto h = static_cast<double>(rows);
      const double of_operation = 1e-3 * (1 + 6 / w) * (1 + 4e-7 * h * w);
      for (const Kernel* const kernel : {&kernel::geqrt, &kernel::tsmqr}) {
        times.push_back({kernel, rows, width, cpu_inner(width), 4 * h * w * w * of_operation});
      }
    }
  }
  return times;
}

/// Widths between these (144) have slower kernels on some processors.
constexpr std::array<std::int64_t, 3> usual_widths{48, 96, 192};

/// The best panels by times of kernels, and which these are.
struct TimedCut {
  PanelCut cut;
  KernelTimes times;
};

/// By what was measured; on CPUs, where nothing was, by what is usual. Nothing where neither says
/// much: a narrow or tall matrix on CPUs is joined by kernels that were not timed.
std::optional<TimedCut> timed_cut(std::int64_t rows, std::int64_t columns, bool tall,
                                  const NodeFacts& facts) {
  const bool on_cpus = facts.devices == 0;
  if (on_cpus && (tall || columns <= narrow_columns)) return std::nullopt;
  const KernelTimes* const measured = measured_times(facts);
  for (const KernelTimes& times : {measured != nullptr ? *measured : KernelTimes{},
                                   on_cpus ? usual_times(usual_widths) : KernelTimes{}}) {
    const auto cut = best_panel_cut(times, rows, columns,
                                    workforce_of(facts, devices_of_node(columns, tall, facts)));
    if (cut) return TimedCut{*cut, times};
  }
  return std::nullopt;
}

std::int64_t automatic_inner(std::int64_t tile, const std::optional<TimedCut>& timed,
                             const NodeFacts& facts) {
  if (const auto fixed = facts.tuning.fixed.inner) return std::min(*fixed, tile);
  if (timed) return std::min(timed->cut.inner, tile);
  if (facts.has_gpus()) return std::min(gpu_inner, tile);
  return facts.devices > 0 ? tile : cpu_inner(tile);
}

/// Rows of a tall tile on CPUs.
std::int64_t cpu_height(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                        const std::optional<TimedCut>& timed, const NodeFacts& facts) {
  if (layout.tree == QrTree::binomial) return cpu_height_binomial;
  const PanelCut own{layout.tile, cpu_inner(layout.tile)};
  const TimedCut used = timed ? *timed : TimedCut{own, usual_times({&own.width, 1})};
  return best_panel_height(used.times, rows, columns, used.cut, workforce_of(facts, facts.devices))
      .value_or(tall_tile_rows_most);
}

/// A tile that is larger than the matrix in both directions holds no more than one of its order,
/// but what goes with tiles is as large as they are: triangles, rows on their way.
void clip_to_matrix(QrLayout& layout, std::int64_t order) {
  if (layout.tile <= order) return;
  layout.tile = order;
  layout.inner = static_cast<std::int32_t>(std::min<std::int64_t>(layout.inner, order));
  if (layout.fine >= order) layout.fine = 0;
  layout.small = std::min(layout.small, order);
  if (layout.small > 0) layout.strip = std::min(layout.strip, order) / layout.small * layout.small;
}

bool is_tall(std::int64_t rows, std::int64_t columns) {
  return rows >= tall_ratio * std::max<std::int64_t>(1, columns);
}

/// The average of all nodes, so that nodes with different numbers of workers choose alike.
std::int64_t workers_of_node(const NodeFacts& facts) {
  return std::max(1, facts.cpu_workers_of_all / facts.nodes);
}

QrTree choose_tree(std::int64_t rows, std::int64_t columns, std::int64_t tile,
                   const Distribution& distribution, const config::Layout& wanted,
                   const NodeFacts& facts) {
  if (wanted.tree) {
    return *wanted.tree == config::Tree::binomial ? QrTree::binomial : QrTree::flat;
  }
  if (!is_tall(rows, columns)) return QrTree::flat;
  // Without columns for all to update meanwhile, a flat tree is a chain of panels.
  const std::int64_t tile_columns = std::max<std::int64_t>(1, quotient_up(columns, tile));
  const std::int64_t workers = workers_of_node(facts) * distribution.grid_columns;
  const bool is_chain = tile_columns < std::max<std::int64_t>(2, workers);
  return distribution.grid_rows > 1 || is_chain ? QrTree::binomial : QrTree::flat;
}

}  // namespace

QrCut choose_qr_cut(std::int64_t rows, std::int64_t columns, const config::Layout& wanted,
                    const NodeFacts& facts) {
  const bool tall = is_tall(rows, columns);
  QrCut cut;
  cut.distribution = facts.distribution;
  cut.distribution.devices = devices_of_node(columns, tall, facts);
  if (!wanted.grid && tall) {
    cut.distribution.grid_rows = facts.nodes;
    cut.distribution.grid_columns = 1;
  }
  const std::int64_t nodes = cut.distribution.grid_rows;
  const std::int64_t of_node = workers_of_node(facts);
  const std::int64_t workers = of_node * cut.distribution.grid_columns;

  config::Layout squares = wanted;
  if (!wanted.tile) squares.tile = facts.tuning.fixed.tile;
  const bool divides = divides_tasks(wanted, facts) && facts.devices == 0;
  const std::optional<TimedCut> timed =
      squares.tile || divides ? std::nullopt : timed_cut(rows, columns, tall, facts);
  if (!squares.tile && facts.devices == 0 && !divides) {
    squares.tile = cpu_tile(columns, workers, timed ? std::optional(timed->cut) : std::nullopt);
  } else if (timed) {
    squares.tile = timed->cut.width;
  } else if (!squares.tile && facts.has_gpus()) {
    squares.tile =
        gpu_tile(columns, std::int64_t{cut.distribution.devices} * cut.distribution.grid_columns);
  }
  const TileLayout tiles = choose_layout(columns, columns, squares, facts);
  QrLayout& layout = cut.layout;
  layout.tile = tiles.tile;
  layout.strip = tiles.strip;
  layout.small = tiles.small;
  layout.fine = tiles.fine;
  layout.inner =
      static_cast<std::int32_t>(wanted.inner.value_or(automatic_inner(layout.tile, timed, facts)));
  if (layout.inner > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.inner {} is more than the tile of {}",
                                              layout.inner, layout.tile));
  }
  clip_to_matrix(layout, std::max<std::int64_t>({rows, columns, 1}));

  const std::int64_t tile_rows = std::max<std::int64_t>(1, quotient_up(rows, layout.tile));
  const std::int64_t tile_columns = std::max<std::int64_t>(1, quotient_up(columns, layout.tile));
  layout.tree = choose_tree(rows, columns, layout.tile, cut.distribution, wanted, facts);

  // Tall tiles of each node in a column: enough tasks for all its places beside each other, and no
  // more rows than are good for the caches.
  const std::int64_t places = of_node + cut.distribution.devices;
  const std::int64_t share = quotient_up(tile_rows, nodes);
  const std::int64_t leaves = layout.tree == QrTree::binomial ? quotient_up(3 * places, 2) : 1;
  const std::int64_t pieces = std::clamp<std::int64_t>(
      std::max(leaves, quotient_up(2 * places * cut.distribution.grid_columns, tile_columns)), 1,
      share);
  // A GPU factors a panel of any height as fast as the memory allows: nothing is won by cutting it.
  std::int64_t most = facts.has_gpus() ? share : quotient_up(share, pieces);
  if (facts.devices == 0) {
    const std::int64_t height = cpu_height(rows, columns, layout, timed, facts);
    most = std::min(most, std::max<std::int64_t>(1, height / layout.tile));
  }
  const std::int64_t automatic = facts.tuning.fixed.virtual_tiles.value_or(most);
  layout.virtual_tiles =
      static_cast<std::int32_t>(std::min(wanted.virtual_tiles.value_or(automatic), tile_rows));
  return cut;
}

QrLayout qr_layout_of(const MatrixSpec& a, const config::Layout& wanted, const NodeFacts& facts) {
  const TileLayout& cut = a.layout;
  const std::int64_t width = cut.wide_width();
  require(cut.rows >= cut.columns && cut.tile % width == 0 && a.storage == Storage::full &&
              a.dealing == Dealing::cyclic && a.distribution.row_group == 1,
          "qr: a matrix of {} x {} in tiles of {} x {}; it must have at least as many rows as "
          "columns, tiles whose rows are a multiple of their columns, and Storage::full",
          cut.rows, cut.columns, cut.tile, width);
  require(!wanted.inner || *wanted.inner <= width || width >= cut.rows,
          "qr: layout.inner {} is more than the tiles' {} columns", wanted.inner.value_or(0),
          width);
  config::Layout open = wanted;
  open.inner.reset();  // of this matrix, not of one that is cut otherwise
  const QrCut chosen = choose_qr_cut(cut.rows, cut.columns, open, facts);
  const MatrixSpec best = qr_specs(cut.rows, cut.columns, chosen.layout, chosen.distribution).a;
  QrLayout layout = chosen.layout;
  if (best.layout != cut || best.distribution != a.distribution) {
    const std::int64_t inner = std::min(automatic_inner(width, std::nullopt, facts), width);
    layout = {.tile = width,
              .strip = cut.strip,
              .small = cut.small,
              .fine = cut.fine,
              .virtual_tiles = static_cast<std::int32_t>(cut.tile / width),
              .inner = static_cast<std::int32_t>(inner),
              .tree = choose_tree(cut.rows, cut.columns, width, a.distribution, wanted, facts)};
  }
  if (wanted.inner) layout.inner = static_cast<std::int32_t>(std::min(*wanted.inner, width));
  return layout;
}

config::Layout layout_keys(const QrLayout& layout) {
  config::Layout keys = layout_keys(TileLayout{
      .tile = layout.tile, .strip = layout.strip, .small = layout.small, .fine = layout.fine});
  keys.inner = layout.inner;
  keys.virtual_tiles = layout.virtual_tiles;
  keys.tree = layout.tree == QrTree::flat ? config::Tree::flat : config::Tree::binomial;
  return keys;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns) {
  const QrCut cut = choose_qr_cut(rows, columns, node.config().layout, node.facts());
  return qr_matrix(node, rows, columns, cut.layout, cut.distribution);
}

}  // namespace heddle
