#include "node-runtime/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/error.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// Square tiles for CPUs: large enough for the kernels, small enough that the last tile columns
/// keep all cores busy. Measured by bench/cholesky_cpu (bench/results): about n / 20 for two cores,
/// between 128 and 384.
std::int64_t cpu_tile(std::int64_t n, std::int64_t cores) {
  const double wanted = static_cast<double>(n) / (6.0 + 2.0 * static_cast<double>(cores));
  const auto rounded = static_cast<std::int64_t>(std::lround(wanted / 32)) * 32;
  return std::clamp<std::int64_t>(rounded, 96, n < 6000 ? 192 : 320);
}

}  // namespace

TileLayout choose_layout(std::int64_t rows, std::int64_t columns, const config::Layout& wanted,
                         const NodeFacts& facts) {
  TileLayout layout;
  layout.rows = rows;
  layout.columns = columns;
  const std::int64_t order = std::max<std::int64_t>({rows, columns, 1});
  const std::int64_t cores = std::int64_t{facts.cpu_workers} * facts.nodes;
  if (wanted.tile.has_value()) {
    layout.tile = *wanted.tile;
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
  // of workers going.
  layout.strip =
      wanted.strip.value_or(facts.devices > 0 ? layout.tile / 8 / layout.small * layout.small : 0);
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
