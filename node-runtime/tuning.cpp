#include "node-runtime/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/error.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// Square tiles for CPUs: large enough for the kernels and for the memory that all cores share,
/// small enough that the last tile columns keep all cores busy. Fitted to bench/cholesky_cpu on two
/// cores (bench/results), where 128 was best for n = 500, 192 for 1000, 256 for 2000, 320 for 4000
/// and 384 from 6000 on; more cores want more tiles.
std::int64_t cpu_tile(std::int64_t n, std::int64_t cores) {
  const double wanted = 140 * std::pow(static_cast<double>(n) / 500, 0.38) *
                        std::pow(2 / static_cast<double>(cores), 0.25);
  return std::clamp<std::int64_t>(std::lround(wanted / 64) * 64, 64, 384);
}

/// Square tiles for GPUs: large enough for products at the full rate, small enough that the panels,
/// which one GPU at a time works on, hide behind the updates of all.
std::int64_t gpu_tile(std::int64_t n, std::int64_t gpus) {
  // Fitted to bench/cholesky_gpu on one and four H200 (bench/results).
  const std::int64_t wanted = n / 8 / (gpus > 1 ? 2 : 1);
  std::int64_t tile = 256;
  while (tile < 2048 && tile * 3 / 2 <= wanted) tile *= 2;
  return tile == 2048 && gpus == 1 && n >= 49152 ? 4096 : tile;
}

}  // namespace

TileLayout choose_layout(std::int64_t rows, std::int64_t columns, const config::Layout& wanted,
                         const NodeFacts& facts) {
  TileLayout layout;
  layout.rows = rows;
  layout.columns = columns;
  const std::int64_t order = std::max<std::int64_t>({rows, columns, 1});
  const std::int64_t cores = facts.cpu_workers_of_all;
  if (wanted.tile.has_value()) {
    layout.tile = *wanted.tile;
  } else if (facts.has_gpus()) {
    layout.tile = gpu_tile(order, std::int64_t{facts.devices} * facts.nodes);
  } else if (facts.devices > 0) {
    layout.tile = std::clamp<std::int64_t>(order / 8 / 64 * 64, 128, 1024);
  } else {
    layout.tile = cpu_tile(order, cores);
  }
  if (wanted.small.has_value()) {
    layout.small = *wanted.small;
  } else if (wanted.strip.has_value() && *wanted.strip > 0) {
    layout.small = *wanted.strip <= 192 ? *wanted.strip : 0;
    for (std::int64_t b = 192; layout.small == 0; --b) {
      if (*wanted.strip % b == 0) layout.small = b;
    }
  } else {
    layout.small = std::min<std::int64_t>(layout.tile, 64);
  }
  // An emulated device computes on the host's own cores: an eighth for the strip keeps both kinds
  // of workers going. Beside a GPU all cores together are a few percent, less than it costs to cut
  // tiles and to move them.
  const bool has_strip = facts.devices > 0 && !facts.has_gpus();
  layout.strip =
      wanted.strip.value_or(has_strip ? layout.tile / 8 / layout.small * layout.small : 0);
  if (layout.strip > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.strip {} is wider than the tile of {}",
                                              layout.strip, layout.tile));
  }
  if (layout.strip > 0 && layout.strip % layout.small != 0) {
    throw Error(ErrorCode::usage, fmt::format("layout.strip {} is no multiple of layout.small {}",
                                              layout.strip, layout.small));
  }
  return layout;
}

}  // namespace heddle
