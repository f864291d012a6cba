#include "apps/tuning/cpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <span>

#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "kernels/cholesky.hpp"
#include "kernels/qr.hpp"

namespace heddle::tuning {
namespace {

constexpr std::array<std::int64_t, 7> square_tiles{128, 192, 256, 320, 384, 448, 512};
constexpr std::array<std::int64_t, 4> panel_widths{48, 96, 144, 192};
constexpr std::array<std::int64_t, 2> panel_inners{32, 48};
constexpr std::array<std::int64_t, 3> panel_heights{1024, 2048, 4096};

constexpr double seconds_each = 0.03;  ///< of one kernel on one shape, in each round
/// The best of so many rounds counts, each over all shapes: a passing disturbance of the machine
/// hits one of them.
constexpr int rounds = 3;

/// One worker's tiles for Cholesky. What is updated comes from memory, one tile after the other;
/// what updates, from a panel that outlives it.
class SquareTiles {
 public:
  SquareTiles(std::int64_t tile, const NormalValues& normal, SharedPanel& panel)
      : n_(tile),
        panel_(panel),
        updated_(std::clamp<std::int64_t>(operand_bytes / (tile * tile * 8), 2, operand_sets_max)),
        memory_(static_cast<std::size_t>((updated_ + 3) * n_ * n_)) {
    normal.fill(memory_);
    for (std::int64_t j = 0; j < n_; ++j) definite()(j, j) = definite_diagonal(n_);
    copy(definite(), factor());
    run(kernel::potrf, whole_, {factor()});
  }

  /// Matrices that kernels change for good are put right before each run.
  [[nodiscard]] Work work(const Kernel& kernel) {
    const auto nothing = [](int) {};
    if (&kernel == &kernel::potrf) {
      return {[this](int) { copy(definite(), result()); },
              [this](int) { run(kernel::potrf, whole_, {result()}); }};
    }
    if (&kernel == &kernel::trsm) {
      return {[this](int i) { copy(panel_.tile(i, n_, n_), updated(i)); },
              [this](int i) {
                run(kernel::trsm, whole_, {updated(i), factor()});
              }};
    }
    if (&kernel == &kernel::syrk) {
      return {nothing, [this](int i) {
                run(kernel::syrk, whole_, {updated(i), panel_.tile(i, n_, n_)});
              }};
    }
    // Down a column, then the next one: one of the two stays.
    return {nothing, [this](int i) {
              const TileView column = panel_.tile(i / SharedPanel::tiles, n_, n_);
              run(kernel::gsmm, update_, {updated(i), panel_.tile(i, n_, n_), column});
            }};
  }

 private:
  [[nodiscard]] TileView at(std::int64_t index) {
    return {memory_.data() + index * n_ * n_, n_, n_, n_};
  }
  [[nodiscard]] TileView updated(int i) { return at(i % updated_); }
  [[nodiscard]] TileView definite() { return at(updated_); }
  [[nodiscard]] TileView factor() { return at(updated_ + 1); }
  [[nodiscard]] TileView result() { return at(updated_ + 2); }
  void copy(const TileView& from, const TileView& to) const {
    std::copy_n(from.data, n_ * n_, to.data);
  }
  static void run(const Kernel& kernel, const KernelParameters& parameters,
                  std::initializer_list<TileView> tiles) {
    const std::int64_t info = kernel.host({std::span(tiles.begin(), tiles.size()), parameters});
    HEDDLE_CHECK(info == 0, "{} of a good tile gives info {}", kernel.name, info);
  }

  std::int64_t n_;
  SharedPanel& panel_;
  std::int64_t updated_;
  std::vector<double> memory_;
  KernelParameters whole_{kernel::PieceParameters{0}};
  KernelParameters update_{kernel::UpdateParameters{0}};
};

/// One worker's panel of a tall tile, and tiles beside it.
class TallTiles {
 public:
  TallTiles(std::int64_t rows, std::int64_t width, std::int64_t inner, const NormalValues& normal)
      : given_(filled(rows * width, normal)),
        panel_(given_),
        sets_(std::clamp<std::int64_t>(operand_bytes / (8 * rows * width), 2, operand_sets_max)),
        beside_(filled(sets_ * rows * width, normal)),
        top_(filled(width * width, normal)),
        reflectors_(given_),
        factors_(static_cast<std::size_t>(inner * width)),
        views_{TileView{panel_.data(), rows, width, rows},
               TileView{top_.data(), width, width, width},
               TileView{reflectors_.data(), rows, width, rows},
               TileView{factors_.data(), inner, width, inner}},
        parameters_(kernel::PanelParameters{0, 0, inner}) {
    std::vector<double> r(top_);
    run(kernel::tsqrt, {views_[2], TileView{r.data(), width, width, width}, views_[3]});
  }

  [[nodiscard]] Work work(const Kernel& kernel) {
    if (&kernel == &kernel::geqrt) {
      factors_of_panel_ = factors_;
      TileView t = views_[3];
      t.data = factors_of_panel_.data();
      return {[this](int) { std::copy(given_.begin(), given_.end(), panel_.begin()); },
              [this, t](int) {
                run(kernel::geqrt, {views_[0], views_[1], t});
              }};
    }
    return {[](int) {},
            [this](int i) {
              run(kernel::tsmqr, {beside(i), views_[1], views_[2], views_[3]});
            }};
  }

 private:
  static std::vector<double> filled(std::int64_t count, const NormalValues& normal) {
    std::vector<double> elements(static_cast<std::size_t>(count));
    normal.fill(elements);
    return elements;
  }
  /// The columns that are updated come from memory, one after the other; V stays in the caches.
  [[nodiscard]] TileView beside(int i) {
    TileView view = views_[0];
    view.data = beside_.data() + i % sets_ * view.rows * view.columns;
    return view;
  }
  void run(const Kernel& kernel, std::initializer_list<TileView> tiles) const {
    static_cast<void>(kernel.host({std::span(tiles.begin(), tiles.size()), parameters_}));
  }

  std::vector<double> given_;
  std::vector<double> panel_;
  std::int64_t sets_;
  std::vector<double> beside_;
  std::vector<double> top_;
  std::vector<double> reflectors_;
  std::vector<double> factors_;
  std::vector<double> factors_of_panel_;
  std::array<TileView, 4> views_;  ///< panel, top, reflectors, their factors
  KernelParameters parameters_;
};

/// Puts a time into the table, or keeps the shorter one.
void keep_best(KernelTimes& times, const KernelTime& next) {
  for (KernelTime& time : times) {
    const bool is_same = time.kernel == next.kernel && time.rows == next.rows &&
                         time.columns == next.columns && time.inner == next.inner;
    if (!is_same) continue;
    time.microseconds = std::min(time.microseconds, next.microseconds);
    return;
  }
  times.push_back(next);
}

template <class Tiles, class... Given>
std::vector<std::unique_ptr<Tiles>> tiles_of_all(std::int32_t count, Given&... given) {
  std::vector<std::unique_ptr<Tiles>> all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::int32_t w = 0; w < count; ++w) all.push_back(std::make_unique<Tiles>(given...));
  return all;
}

void measure_squares(CpuMeasurement& result, const Workers& workers, std::int64_t tile,
                     const NormalValues& normal, const Effort& effort) {
  SharedPanel panel(tile * tile, normal);
  const auto tiles = tiles_of_all<SquareTiles>(workers.count, tile, normal, panel);
  for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
    effort.tell(fmt::format("{} {} on the CPU", kernel->name, tile));
    const auto work_of = [&](std::int32_t w) {
      return tiles[static_cast<std::size_t>(w)]->work(*kernel);
    };
    for (const std::int32_t count : {1, workers.count}) {
      const double seconds = time_on(workers, count, work_of, effort.lasting(seconds_each));
      KernelTimes& times = count == 1 ? result.one_worker : result.all_workers;
      keep_best(times, {std::string(kernel->name), tile, tile, 0, microseconds(seconds)});
      if (workers.count == 1) break;
    }
  }
}

void measure_panel(CpuMeasurement& result, const Workers& workers, std::int64_t rows,
                   std::int64_t width, std::int64_t inner, const NormalValues& normal,
                   const Effort& effort) {
  const auto tiles = tiles_of_all<TallTiles>(workers.count, rows, width, inner, normal);
  for (const Kernel* kernel : {&kernel::geqrt, &kernel::tsmqr}) {
    effort.tell(fmt::format("{} {} x {}, inner {} on the CPU", kernel->name, rows, width, inner));
    const auto work_of = [&](std::int32_t w) {
      return tiles[static_cast<std::size_t>(w)]->work(*kernel);
    };
    const double seconds = time_on(workers, workers.count, work_of, effort.lasting(seconds_each));
    keep_best(result.all_workers,
              {std::string(kernel->name), rows, width, inner, microseconds(seconds)});
  }
}

/// All shapes once, small ones first, as far as the time allows.
void measure_round(CpuMeasurement& result, const Workers& workers, const NormalValues& normal,
                   const Effort& effort) {
  double last = 0;
  const auto timed = [&](const auto& work) {
    const double begin = effort.elapsed();
    work();
    last = effort.elapsed() - begin;
  };
  for (const std::int64_t tile : square_tiles) {
    // Without the first two there is no table.
    if (tile > square_tiles[1] && !effort.allows(last)) break;
    timed([&] { measure_squares(result, workers, tile, normal, effort); });
  }
  last = 0;
  for (const std::int64_t rows : panel_heights) {
    for (const std::int64_t width : panel_widths) {
      for (const std::int64_t inner : panel_inners) {
        if (inner > width || !effort.allows(last)) continue;
        timed([&] { measure_panel(result, workers, rows, width, inner, normal, effort); });
      }
    }
  }
}

}  // namespace

CpuMeasurement measure_cpu(const Workers& workers, const NormalValues& normal, Effort& effort) {
  CpuMeasurement result;
  result.workers = workers.count;
  for (int round = 0; round < rounds; ++round) {
    const double begin = effort.elapsed();
    measure_round(result, workers, normal, effort);
    if (!effort.allows(effort.elapsed() - begin)) break;
  }
  if (workers.count == 1) {
    for (const KernelTime& time : result.one_worker) result.all_workers.push_back(time);
  }
  return result;
}

}  // namespace heddle::tuning
