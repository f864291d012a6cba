#include "node-runtime/machine/tile_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace heddle {
namespace {

constexpr double equal_time = 1.01;  ///< times that differ by less are the same
constexpr double strip_share_min = 0.1;

/// Of a node's generation thread, for a task; what a simulation takes, too (SimulatedMachine).
constexpr double generation_s = 0.5e-6;

double to_double(std::int64_t value) {
  return static_cast<double>(value);
}

double cube(std::int64_t value) {
  return to_double(value) * to_double(value) * to_double(value);
}

bool is_square_time(const KernelTime& time, std::string_view kernel) {
  return time.kernel == kernel && time.rows == time.columns;
}

/// Sizes of square tiles of a kernel that were measured, rising.
std::set<std::int64_t> measured_tiles(const KernelTimes& times, std::string_view kernel) {
  std::set<std::int64_t> tiles;
  for (const KernelTime& time : times) {
    if (is_square_time(time, kernel)) tiles.insert(time.columns);
  }
  return tiles;
}

/// The measured sizes, and in between the multiples of an eighth of the power of two below.
std::vector<std::int64_t> candidate_tiles(const KernelTimes& times) {
  const std::set<std::int64_t> measured = measured_tiles(times, "gsmm");
  std::set<std::int64_t> candidates = measured;
  if (measured.empty()) return {};
  for (std::int64_t power = 64; power <= *measured.rbegin(); power *= 2) {
    const std::int64_t step = std::max<std::int64_t>(32, power / 8);
    for (std::int64_t tile = power; tile < 2 * power; tile += step) {
      if (tile >= *measured.begin() && tile <= *measured.rbegin()) candidates.insert(tile);
    }
  }
  return {candidates.begin(), candidates.end()};
}

/// Seconds of a panel's kernel on `rows` rows, linear between and beyond the measured heights
/// around them; nothing where it was not measured with that cut.
std::optional<double> panel_seconds(const KernelTimes& times, std::string_view kernel, double rows,
                                    const PanelCut& cut) {
  std::map<std::int64_t, double> measured;  // microseconds by rows
  for (const KernelTime& time : times) {
    const bool fits = time.kernel == kernel && time.columns == cut.width && time.inner == cut.inner;
    if (fits) measured[time.rows] = time.microseconds;
  }
  if (measured.empty()) return std::nullopt;
  const auto [least_rows, least] = *measured.begin();
  // A short panel takes a share of the shortest one that was measured, or a line would cut below
  // nothing.
  if (rows <= to_double(least_rows) || measured.size() == 1) {
    return least * 1e-6 * std::max(0.25, rows / to_double(least_rows));
  }
  auto above = std::next(measured.begin());
  while (std::next(above) != measured.end() && to_double(above->first) < rows) ++above;
  const auto below = std::prev(above);
  const double slope =
      std::max(0.0, above->second - below->second) / to_double(above->first - below->first);
  return (below->second + slope * (rows - to_double(below->first))) * 1e-6;
}

/// Devices update columns behind a panel as a whole.
bool updates_whole_columns(const KernelTimes& times) {
  return std::ranges::any_of(times, [](const KernelTime& time) { return time.kernel == "unmqr"; });
}

/// Seconds of a panel of `rows` rows, and of one update by it: a whole column on devices, on CPUs
/// cut into tall tiles of the best height. And those from one panel to the next, which begins when
/// the first tall tile of its column is updated: on CPUs that is as low as the chain needs it.
struct PanelSeconds {
  double factor = 0;
  double update = 0;
  double next_rows = 0;
  double next_factor = 0;
  double next_update = 0;
};
std::optional<PanelSeconds> panel_and_update(const KernelTimes& times, double rows,
                                             const PanelCut& cut) {
  double pieces = 1;
  const bool is_whole = updates_whole_columns(times);
  double low = rows;
  if (!is_whole) {
    const auto height = best_panel_height(times, cut);
    if (!height) return std::nullopt;
    pieces = rows / to_double(*height);
    rows = to_double(*height);
    low = std::min(low, to_double(panel_rows_least));
  }
  const char* const update_name = is_whole ? "unmqr" : "tsmqr";
  const auto factor = panel_seconds(times, "geqrt", rows, cut);
  const auto update = panel_seconds(times, update_name, rows, cut);
  const auto next_factor = panel_seconds(times, "geqrt", low, cut);
  const auto next_update = panel_seconds(times, update_name, low, cut);
  if (!factor || !update || !next_factor || !next_update) return std::nullopt;
  return PanelSeconds{*factor * pieces, *update * pieces, low, *next_factor, *next_update};
}

/// Rate of products on square tiles of the measured size nearest to `tile`, flops per second.
double product_rate(const KernelTimes& times, std::int64_t tile) {
  double rate = 0;
  std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
  for (const KernelTime& time : times) {
    if (!is_square_time(time, "gsmm") || std::abs(time.columns - tile) >= nearest) continue;
    nearest = std::abs(time.columns - tile);
    rate = 2 * cube(time.columns) / (time.microseconds * 1e-6);
  }
  return rate;
}

}  // namespace

std::optional<double> square_tile_seconds(const KernelTimes& times, std::string_view kernel,
                                          std::int64_t tile) {
  const KernelTime* below = nullptr;
  const KernelTime* above = nullptr;
  for (const KernelTime& time : times) {
    if (!is_square_time(time, kernel)) continue;
    if (time.columns <= tile && (below == nullptr || time.columns > below->columns)) below = &time;
    if (time.columns >= tile && (above == nullptr || time.columns < above->columns)) above = &time;
  }
  if (below == nullptr || above == nullptr) return std::nullopt;
  if (below->columns == above->columns) return below->microseconds * 1e-6;
  const double position = std::log(to_double(tile) / to_double(below->columns)) /
                          std::log(to_double(above->columns) / to_double(below->columns));
  return below->microseconds * 1e-6 * std::pow(above->microseconds / below->microseconds, position);
}

std::optional<double> cholesky_seconds(const KernelTimes& times, std::int64_t n, std::int64_t tile,
                                       const Workforce& workforce) {
  const auto potrf = square_tile_seconds(times, "potrf", tile);
  const auto trsm = square_tile_seconds(times, "trsm", tile);
  const auto syrk = square_tile_seconds(times, "syrk", tile);
  const auto gsmm = square_tile_seconds(times, "gsmm", tile);
  if (!potrf || !trsm || !syrk || !gsmm) return std::nullopt;
  const double places = to_double(workforce.places);
  const double tile_bytes = 8 * to_double(tile) * to_double(tile);
  const double tile_travels =
      workforce.exchange_rate > 0 ? tile_bytes / (workforce.exchange_rate * 1e9) : 0;
  const double tiles = to_double(n) / to_double(tile);
  const auto steps = static_cast<std::int64_t>(std::ceil(tiles));
  double seconds = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    // A last tile that is not whole counts as the part that it is.
    const double size = std::min(1.0, tiles - to_double(k));
    const double below = std::max(0.0, tiles - to_double(k) - 1);
    const double work =
        *potrf * size * size * size + below * (*trsm + *syrk) + below * below / 2 * *gsmm;
    const double chain = *potrf * size * size * size +
                         std::min(1.0, below) * (*trsm + tile_travels + std::max(*syrk, *gsmm));
    const double travel = below * tile_travels * (1 - 1 / places);
    const double tasks = 1 + below * (below + 3) / 2;
    const double generation = tasks / to_double(workforce.nodes) * generation_s;
    seconds += std::max({work / places, chain, travel, generation});
  }
  return seconds;
}

std::optional<std::int64_t> best_cholesky_tile(const KernelTimes& times, std::int64_t n,
                                               const Workforce& workforce) {
  std::vector<std::int64_t> candidates = candidate_tiles(times);
  if (candidates.empty() || 2 * candidates.front() > n) return std::nullopt;
  const std::int64_t most =
      std::max(candidates.front(), n / std::max<std::int64_t>(2, workforce.tiles_min));
  std::erase_if(candidates, [most](std::int64_t tile) { return tile > most; });
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t tile : candidates) {
    if (const auto seconds = cholesky_seconds(times, n, tile, workforce)) {
      least = std::min(least, *seconds);
    }
  }
  std::optional<std::int64_t> best;
  for (const std::int64_t tile : candidates) {
    const auto seconds = cholesky_seconds(times, n, tile, workforce);
    if (seconds && *seconds <= least * equal_time) best = tile;
  }
  return best;
}

std::optional<double> qr_seconds(const KernelTimes& times, std::int64_t m, std::int64_t n,
                                 const PanelCut& cut, const Workforce& workforce) {
  const double places = to_double(workforce.places);
  const double panels = to_double(n) / to_double(cut.width);
  const auto steps = static_cast<std::int64_t>(std::ceil(panels));
  double seconds = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const double rows = std::max(to_double(cut.width), to_double(m - k * cut.width));
    const double size = std::min(1.0, panels - to_double(k));
    const double behind = std::max(0.0, panels - to_double(k) - 1);
    const auto panel = panel_and_update(times, rows, cut);
    if (!panel) return std::nullopt;
    const double panel_bytes = 8 * panel->next_rows * to_double(cut.width);
    const double travel =
        workforce.exchange_rate > 0 ? panel_bytes / (workforce.exchange_rate * 1e9) : 0;
    const double work = panel->factor * size + behind * panel->update;
    const double chain =
        panel->next_factor * size + std::min(1.0, behind) * (travel + panel->next_update);
    seconds += std::max(work / places, chain);
  }
  return seconds;
}

std::optional<PanelCut> best_panel_cut(const KernelTimes& times, std::int64_t m, std::int64_t n,
                                       const Workforce& workforce) {
  std::set<std::pair<std::int64_t, std::int64_t>> cuts;  // by rising width
  for (const KernelTime& time : times) {
    if (time.kernel == "geqrt") cuts.emplace(time.columns, time.inner);
  }
  if (cuts.empty() || n < 2 * cuts.begin()->first) return std::nullopt;
  std::optional<PanelCut> best;
  double least = std::numeric_limits<double>::infinity();
  for (const bool is_choosing : {false, true}) {
    for (const auto& [width, inner] : cuts) {
      const auto seconds = qr_seconds(times, m, n, {width, inner}, workforce);
      if (!seconds) continue;
      if (is_choosing && *seconds <= least * equal_time) best = PanelCut{width, inner};
      if (!is_choosing) least = std::min(least, *seconds);
    }
  }
  return best;
}

std::optional<std::int64_t> best_panel_height(const KernelTimes& times, const PanelCut& cut) {
  std::optional<std::int64_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (const KernelTime& time : times) {
    const bool fits =
        time.kernel == "tsmqr" && time.columns == cut.width && time.inner == cut.inner;
    if (!fits) continue;
    const double each_row = time.microseconds / to_double(time.rows);
    if (each_row >= least) continue;
    least = each_row;
    best = time.rows;
  }
  return best;
}

std::int64_t worthwhile_strip(const KernelTimes& host, std::int64_t workers,
                              const KernelTimes& device, std::int64_t devices, std::int64_t tile,
                              std::int64_t small) {
  const double host_rate = product_rate(host, tile) * to_double(workers);
  const double device_rate = product_rate(device, tile) * to_double(devices);
  if (host_rate <= 0 || device_rate <= 0) return 0;
  const double share = host_rate / (host_rate + device_rate);
  if (share < strip_share_min) return 0;
  return static_cast<std::int64_t>(share * to_double(tile)) / small * small;
}

}  // namespace heddle
