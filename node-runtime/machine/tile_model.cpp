#include "node-runtime/machine/tile_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "kernels/kernels.hpp"

namespace heddle {
namespace {

constexpr double equal_time = 1.01;       ///< times that differ by less are the same
constexpr double equal_tall_time = 1.02;  ///< likewise in tall tiles on CPUs
constexpr double strip_share_min = 0.1;

/// Seconds that a node's generation thread takes per task; a simulation uses the same value
/// (SimulatedMachine).
constexpr double generation_s = 0.5e-6;

double to_double(std::int64_t value) {
  return static_cast<double>(value);
}

double cube(std::int64_t value) {
  return to_double(value) * to_double(value) * to_double(value);
}

bool is_square_time(const KernelTime& time, const Kernel& kernel) {
  return time.kernel == &kernel && time.rows == time.columns;
}

/// Sizes of square tiles of a kernel that were measured, rising.
std::set<std::int64_t> measured_tiles(const KernelTimes& times, const Kernel& kernel) {
  std::set<std::int64_t> tiles;
  for (const KernelTime& time : times) {
    if (is_square_time(time, kernel)) tiles.insert(time.columns);
  }
  return tiles;
}

/// The measured sizes, and in between the multiples of an eighth of the power of two below.
std::vector<std::int64_t> candidate_tiles(const KernelTimes& times) {
  const std::set<std::int64_t> measured = measured_tiles(times, kernel::gsmm);
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

/// Times of a panel's kernel by its rows, as they were measured with a cut.
class PanelTimes {
 public:
  PanelTimes(const KernelTimes& times, const Kernel& kernel, const PanelCut& cut) {
    for (const KernelTime& time : times) {
      const bool fits =
          time.kernel == &kernel && time.columns == cut.width && time.inner == cut.inner;
      if (fits) seconds_[to_double(time.rows)] = time.microseconds * 1e-6;
    }
  }

  [[nodiscard]] explicit operator bool() const { return !seconds_.empty(); }

  /// Seconds for a whole column of tiles. A column shorter than all measured ones takes a share of
  /// the shortest one's time, since the line through the measured points may be negative there.
  [[nodiscard]] double of_column(double rows) const {
    const auto [least_rows, least] = *seconds_.begin();
    if (rows > least_rows && seconds_.size() > 1) return between(rows);
    return least * std::max(0.25, rows / least_rows);
  }

  /// Seconds for a tall tile on CPUs. A tile lower than all measured ones takes a share of the
  /// lowest one's time.
  [[nodiscard]] double of_tall_tile(double rows) const {
    const auto [least_rows, least] = *seconds_.begin();
    if (rows > least_rows && seconds_.size() > 1) return between(rows);
    return least * rows / least_rows;
  }

 private:
  /// Linear between and beyond the measured heights around them.
  [[nodiscard]] double between(double rows) const {
    auto above = std::next(seconds_.begin());
    while (std::next(above) != seconds_.end() && above->first < rows) ++above;
    const auto below = std::prev(above);
    const double slope =
        std::max(0.0, above->second - below->second) / (above->first - below->first);
    return below->second + slope * (rows - below->first);
  }

  std::map<double, double> seconds_;
};

/// Devices update columns behind a panel as a whole.
bool updates_whole_columns(const KernelTimes& times) {
  return std::ranges::any_of(times,
                             [](const KernelTime& time) { return time.kernel == &kernel::unmqr; });
}

/// The panels of a QR, one after the other.
struct PanelStep {
  double rows = 0;
  double size = 0;    ///< of the panel's width: a last one may be narrower
  double behind = 0;  ///< panels to its right
};
template <class Use>
void for_each_panel(std::int64_t m, std::int64_t n, const PanelCut& cut, const Use& use) {
  const double panels = to_double(n) / to_double(cut.width);
  const auto steps = static_cast<std::int64_t>(std::ceil(panels));
  for (std::int64_t k = 0; k < steps; ++k) {
    use(PanelStep{std::max(to_double(cut.width), to_double(m - k * cut.width)),
                  std::min(1.0, panels - to_double(k)), std::max(0.0, panels - to_double(k) - 1)});
  }
}

/// Seconds to transfer a panel's rows from the place that has them to the others.
double travel_seconds(double rows, const PanelCut& cut, const Workforce& workforce) {
  const double bytes = 8 * rows * to_double(cut.width);
  return workforce.exchange_rate > 0 ? bytes / (workforce.exchange_rate * 1e9) : 0;
}

/// In columns as a whole.
std::optional<double> column_qr_seconds(const KernelTimes& times, std::int64_t m, std::int64_t n,
                                        const PanelCut& cut, const Workforce& workforce) {
  const PanelTimes geqrt(times, kernel::geqrt, cut);
  const PanelTimes unmqr(times, kernel::unmqr, cut);
  if (!geqrt || !unmqr) return std::nullopt;
  double seconds = 0;
  for_each_panel(m, n, cut, [&](const PanelStep& step) {
    const double factor = geqrt.of_column(step.rows) * step.size;
    const double update = unmqr.of_column(step.rows);
    const double work = factor + step.behind * update;
    const double chain =
        factor + std::min(1.0, step.behind) * (travel_seconds(step.rows, cut, workforce) + update);
    seconds += std::max(work / to_double(workforce.places), chain);
  });
  return seconds;
}

/// Whether columns of that width are enough for CPU workers: with fewer, those that wait for panels
/// were slower than the model says.
bool are_columns_for(std::int64_t workers, std::int64_t columns, std::int64_t width) {
  return 7 * width * workers <= 5 * columns;
}

/// Heights of tall tiles closer to each other are not told apart.
constexpr std::int64_t rows_apart = 32;

struct TallTime {
  std::int64_t rows = 0;  ///< of a tall tile
  double seconds = 0;
};

/// In tall tiles of the best height.
std::optional<TallTime> tall_qr_time(const KernelTimes& times, std::int64_t m, std::int64_t n,
                                     const PanelCut& cut, const Workforce& workforce) {
  const PanelTimes geqrt(times, kernel::geqrt, cut);
  const PanelTimes tsmqr(times, kernel::tsmqr, cut);
  if (!geqrt || !tsmqr) return std::nullopt;
  const double places = to_double(workforce.places);
  const double width = to_double(cut.width);
  const std::int64_t most = std::max(tall_tile_rows_most, cut.width);
  const std::int64_t apart = cut.width * std::max<std::int64_t>(1, rows_apart / cut.width);
  std::optional<TallTime> best;
  for (std::int64_t height = apart; height <= most; height += apart) {
    double work = 0;
    double chain = 0;
    for_each_panel(m, n, cut, [&](const PanelStep& step) {
      const double rows = std::min(to_double(height), step.rows);
      const double pieces = step.rows / rows;
      const double factor = geqrt.of_tall_tile(rows) * step.size;
      const double update = tsmqr.of_tall_tile(rows);
      const double beside = tall_tile_top(width) * width / rows;
      work += pieces * (factor + step.behind * update) * (1 + beside);
      chain +=
          factor + std::min(1.0, step.behind) * (travel_seconds(rows, cut, workforce) + update);
    });
    const double seconds = std::hypot(work / places, chain * (1 - 1 / places));
    if (!best || seconds < best->seconds) best = TallTime{height, seconds};
  }
  return best;
}

/// Rate of products on square tiles of the measured size nearest to `tile`, flops per second.
double product_rate(const KernelTimes& times, std::int64_t tile) {
  double rate = 0;
  std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
  for (const KernelTime& time : times) {
    if (!is_square_time(time, kernel::gsmm) || std::abs(time.columns - tile) >= nearest) continue;
    nearest = std::abs(time.columns - tile);
    rate = 2 * cube(time.columns) / (time.microseconds * 1e-6);
  }
  return rate;
}

}  // namespace

std::optional<double> square_tile_seconds(const KernelTimes& times, const Kernel& kernel,
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
  const auto potrf = square_tile_seconds(times, kernel::potrf, tile);
  const auto trsm = square_tile_seconds(times, kernel::trsm, tile);
  const auto syrk = square_tile_seconds(times, kernel::syrk, tile);
  const auto gsmm = square_tile_seconds(times, kernel::gsmm, tile);
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
  if (updates_whole_columns(times)) return column_qr_seconds(times, m, n, cut, workforce);
  const auto best = tall_qr_time(times, m, n, cut, workforce);
  return best ? std::optional(best->seconds) : std::nullopt;
}

std::optional<PanelCut> best_panel_cut(const KernelTimes& times, std::int64_t m, std::int64_t n,
                                       const Workforce& workforce) {
  std::set<std::pair<std::int64_t, std::int64_t>> cuts;  // by rising width
  for (const KernelTime& time : times) {
    if (time.kernel == &kernel::geqrt) cuts.emplace(time.columns, time.inner);
  }
  if (cuts.empty() || n < 2 * cuts.begin()->first) return std::nullopt;
  const bool on_cpus = !updates_whole_columns(times);
  std::vector<std::pair<PanelCut, double>> timed;  // by rising width
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [width, inner] : cuts) {
    if (on_cpus && 10 * width > n && width > cuts.begin()->first) continue;
    const PanelCut cut{width, inner};
    if (const auto seconds = qr_seconds(times, m, n, cut, workforce)) {
      timed.emplace_back(cut, *seconds);
      least = std::min(least, *seconds);
    }
  }
  std::optional<PanelCut> best;
  for (const auto& [cut, seconds] : timed) {
    if (seconds > least * (on_cpus ? equal_tall_time : equal_time)) continue;
    const bool is_wide = best && best->width < cut.width;
    if (is_wide && on_cpus && !are_columns_for(workforce.places, n, cut.width)) continue;
    best = cut;
  }
  return best;
}

std::optional<std::int64_t> best_panel_height(const KernelTimes& times, std::int64_t m,
                                              std::int64_t n, const PanelCut& cut,
                                              const Workforce& workforce) {
  const auto best = tall_qr_time(times, m, n, cut, workforce);
  return best ? std::optional(best->rows) : std::nullopt;
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
