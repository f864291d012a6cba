#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/machine/measurements.hpp"

/// What sizes of tiles are worth, from measured times of kernels: small models of a factorization,
/// pure functions. They rank sizes; they do not predict a run, which also reads, waits and talks.
namespace heddle {

/// Who works on a matrix: places of one kind.
struct Workforce {
  std::int64_t places = 1;  ///< CPU workers or devices, of all nodes
  /// 10^9 bytes per second at which tiles of a factored panel reach a place that is not theirs; 0:
  /// all places share one memory.
  double exchange_rate = 0;
  /// That generate tasks, each for itself.
  std::int64_t nodes = 1;
  /// Tile columns that a matrix is cut into at least. Kernels measured one by one do not tell what
  /// it costs when too few of them are left to run side by side.
  std::int64_t tiles_min = 2;
};

/// Seconds of a kernel on square tiles, between measured sizes interpolated by powers; nothing
/// outside of them.
[[nodiscard]] std::optional<double> square_tile_seconds(const KernelTimes& times,
                                                        const Kernel& kernel, std::int64_t tile);

/// A tile Cholesky of order n: in each step the places share the updates, while one after the other
/// the next panel's pieces become ready (potrf, one trsm, one update), the
/// panel travels, and each node generates its part of the step's tasks; the longest of these
/// counts. Nothing where a kernel was not measured around that size.
[[nodiscard]] std::optional<double> cholesky_seconds(const KernelTimes& times, std::int64_t n,
                                                     std::int64_t tile, const Workforce& workforce);

/// The size between the measured ones (and such that kernels like: a multiple of an eighth of a
/// power of two) with the shortest time, at least two and, where the measured sizes allow,
/// `tiles_min` of them to n; the largest of those within 1 % of it. Nothing without measurements,
/// or for a matrix smaller than two of the smallest tiles.
[[nodiscard]] std::optional<std::int64_t> best_cholesky_tile(const KernelTimes& times,
                                                             std::int64_t n,
                                                             const Workforce& workforce);

/// How wide a panel of QR is, and how many of its reflectors are applied together.
struct PanelCut {
  std::int64_t width = 0;
  std::int64_t inner = 0;

  friend bool operator==(const PanelCut&, const PanelCut&) = default;
};

/// Rows of a tall tile of a flat tree on CPUs at most: its V stays in the last cache of a core
/// while a column of tiles is updated.
inline constexpr std::int64_t tall_tile_rows_most = 2048;

/// What the work on a tall tile on CPUs takes beside what its kernels alone do, as a part of that,
/// in tall tiles of one tile of that width; of v tiles a v-th of it: its top is handed on, and its
/// tasks are more. Fitted (algorithms/qr/layout.cpp).
[[nodiscard]] constexpr double tall_tile_top(double width) {
  return (120 / width) * (120 / width);
}

/// A QR of m x n by panels of `cut`. Where whole columns are updated (unmqr was measured: devices):
/// in each step the places share the updates of the columns behind the panel, which one of them
/// factors while it updates none. On CPUs, in tall tiles of the best height: the work of all
/// places, and the chain of geqrt and tsmqr of one tall tile for each panel, hide each other in
/// part. Nothing where the cut was not measured.
[[nodiscard]] std::optional<double> qr_seconds(const KernelTimes& times, std::int64_t m,
                                               std::int64_t n, const PanelCut& cut,
                                               const Workforce& workforce);

/// The measured cut with the shortest time. Of those within 1 % of it the widest; on CPUs, of ten
/// panels at least, within 2 % the widest with which there are columns for the workers, otherwise
/// the narrowest. Nothing without measurements, or for a matrix narrower than two of the narrowest
/// panels.
[[nodiscard]] std::optional<PanelCut> best_panel_cut(const KernelTimes& times, std::int64_t m,
                                                     std::int64_t n, const Workforce& workforce);

/// Rows of tall tiles on CPUs with which the factorization takes least, a multiple of the panel's
/// width. Nothing where the cut was not measured.
[[nodiscard]] std::optional<std::int64_t> best_panel_height(const KernelTimes& times,
                                                            std::int64_t m, std::int64_t n,
                                                            const PanelCut& cut,
                                                            const Workforce& workforce);

/// Columns of each tile that `workers` on the host should keep beside `devices`, a multiple of
/// `small`: their share of all rates of products. 0 below a tenth: what cutting tiles and moving
/// panels to the host costs is of that size. Both by their gsmm times near the tile's size.
[[nodiscard]] std::int64_t worthwhile_strip(const KernelTimes& host, std::int64_t workers,
                                            const KernelTimes& device, std::int64_t devices,
                                            std::int64_t tile, std::int64_t small);

}  // namespace heddle
