#include "apps/tuning/cpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <span>

#include "apps/tuning/beside.hpp"
#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "kernels/kernels.hpp"

namespace heddle::tuning {
namespace {

constexpr std::array<std::int64_t, 7> square_tiles{128, 192, 256, 320, 384, 448, 512};
constexpr std::array<std::int64_t, 4> panel_widths{48, 96, 144, 192};
constexpr std::array<std::int64_t, 2> panel_inners{32, 48};
/// With the first one alone there is a table.
constexpr std::array<std::int64_t, 3> panel_heights{1024, 384, 2048};

constexpr double seconds_each = 0.01;  ///< of one kernel on one shape, in each round
/// Many short rounds, each over all shapes: what matters is how sizes compare, and a machine that
/// others use too changes within seconds (settled_times).
constexpr std::size_t rounds_max = 9;

/// What one worker updates: one piece of memory for all shapes and rounds, filled by the worker
/// itself, so that it lies near its core.
class WorkerMemory {
 public:
  /// How many of `elements` are updated in turns.
  [[nodiscard]] static std::int64_t sets(std::int64_t elements) {
    return std::clamp<std::int64_t>(operand_bytes / (8 * elements), 2, operand_sets_max);
  }

  /// For a shape that updates sets of `elements`.
  void use(std::int64_t elements, const NormalValues& normal) {
    const std::int64_t count = sets(elements) * elements;
    if (updated_.count() < count) updated_ = NormalElements(count, normal);
  }
  [[nodiscard]] double* updated() const { return updated_.data(); }

 private:
  NormalElements updated_;
};

/// One worker's tiles for Cholesky. What is updated comes from memory, one tile after the other;
/// what updates, from a panel that outlives it.
class SquareTiles {
 public:
  SquareTiles(WorkerMemory& memory, std::int64_t tile, const NormalValues& normal,
              SharedPanel& panel)
      : n_(tile), panel_(panel), memory_(memory), own_(static_cast<std::size_t>(3 * n_ * n_)) {
    memory_.use(n_ * n_, normal);
    normal.fill(own_);
    for (std::int64_t j = 0; j < n_; ++j) definite()(j, j) = definite_diagonal(n_);
    copy(definite(), factor());
    run(kernel::potrf, whole_, {factor()});
  }

  /// The runs of a kernel on `worker`, one of `workers` that run it. Matrices that a kernel
  /// overwrites are restored before each run.
  [[nodiscard]] Work work(const Kernel& kernel, std::int32_t worker, std::int32_t workers) {
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
      return {nothing, [this, worker, workers](int i) {
                const auto pair = panel_.pair(i, worker, workers, n_);
                run(kernel::syrk, whole_, {updated(i), panel_.tile(pair.row, n_, n_)});
              }};
    }
    return {nothing, [this, worker, workers](int i) {
              const auto pair = panel_.pair(i, worker, workers, n_);
              run(kernel::gsmm, update_,
                  {updated(i), panel_.tile(pair.row, n_, n_), panel_.tile(pair.column, n_, n_)});
            }};
  }

 private:
  [[nodiscard]] TileView tile_at(double* data) const { return {data, n_, n_, n_}; }
  [[nodiscard]] TileView updated(int i) {
    return tile_at(memory_.updated() + i % WorkerMemory::sets(n_ * n_) * n_ * n_);
  }
  [[nodiscard]] TileView definite() { return tile_at(own_.data()); }
  [[nodiscard]] TileView factor() { return tile_at(own_.data() + n_ * n_); }
  [[nodiscard]] TileView result() { return tile_at(own_.data() + 2 * n_ * n_); }
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
  WorkerMemory& memory_;
  std::vector<double> own_;
  KernelParameters whole_{kernel::PieceParameters{0}};
  KernelParameters update_{kernel::UpdateParameters{0}};
};

/// One worker's panel of a tall tile, and tiles beside it.
class TallTiles {
 public:
  TallTiles(WorkerMemory& memory, std::int64_t rows, std::int64_t width, std::int64_t inner,
            const NormalValues& normal)
      : memory_(memory),
        given_(filled(rows * width, normal)),
        panel_(given_),
        top_(filled(width * width, normal)),
        reflectors_(given_),
        factors_(static_cast<std::size_t>(inner * width)),
        views_{TileView{panel_.data(), rows, width, rows},
               TileView{top_.data(), width, width, width},
               TileView{reflectors_.data(), rows, width, rows},
               TileView{factors_.data(), inner, width, inner}},
        parameters_(kernel::PanelParameters{0, 0, inner}) {
    memory_.use(rows * width, normal);
    std::vector<double> r(top_);
    run(kernel::tsqrt, {views_[2], TileView{r.data(), width, width, width}, views_[3]});
  }

  [[nodiscard]] Work work(const Kernel& kernel, std::int32_t /*worker*/, std::int32_t /*workers*/) {
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
    const std::int64_t elements = view.rows * view.columns;
    view.data = memory_.updated() + i % WorkerMemory::sets(elements) * elements;
    return view;
  }
  void run(const Kernel& kernel, std::initializer_list<TileView> tiles) const {
    static_cast<void>(kernel.host({std::span(tiles.begin(), tiles.size()), parameters_}));
  }

  WorkerMemory& memory_;
  std::vector<double> given_;
  std::vector<double> panel_;
  std::vector<double> top_;
  std::vector<double> reflectors_;
  std::vector<double> factors_;
  std::vector<double> factors_of_panel_;
  std::array<TileView, 4> views_;  ///< panel, top, reflectors, their factors
  KernelParameters parameters_;
};

/// Times all shapes, again and again.
class CpuBench {
 public:
  CpuBench(const Workers& workers, const NormalValues& normal, Effort& effort)
      : workers_(workers),
        normal_(normal),
        effort_(effort),
        memories_(static_cast<std::size_t>(workers.count)),
        panel_(SharedPanel::usual_height, square_tiles.back(), square_tiles.back(), normal) {}

  /// All shapes once, small ones first, as far as the time allows.
  void measure_round();

  [[nodiscard]] CpuMeasurement result() const {
    CpuMeasurement result;
    result.workers = workers_.count;
    result.one_worker = settled_times(one_worker_);
    result.all_workers = workers_.count == 1 ? result.one_worker : KernelTimes{};
    for (const KernelTime& time : settled_times(all_workers_)) result.all_workers.push_back(time);
    for (KernelTimes* times : {&result.one_worker, &result.all_workers}) {
      for (KernelTime& time : *times) time.microseconds = microseconds(time.microseconds * 1e-6);
    }
    return result;
  }

 private:
  void measure_squares(std::int64_t tile);
  void measure_panel(std::int64_t rows, std::int64_t width, std::int64_t inner);

  /// A worker's tiles are made by itself, when its first kernel is timed.
  template <class Tiles>
  [[nodiscard]] double seconds_on(std::int32_t count, const Kernel& kernel,
                                  std::vector<std::unique_ptr<Tiles>>& tiles, const auto& make) {
    const Kernel* const beside = update_beside(kernel);
    const auto work_of = [&](std::int32_t w) {
      const auto index = static_cast<std::size_t>(w);
      if (tiles[index] == nullptr) tiles[index] = make(memories_[index]);
      return tiles[index]->work(beside != nullptr && w != 0 ? *beside : kernel, w, count);
    };
    const double seconds = effort_.lasting(seconds_each);
    if (beside != nullptr) return times_on(workers_, count, work_of, seconds).front();
    return time_on(workers_, count, work_of, seconds);
  }

  const Workers& workers_;
  const NormalValues& normal_;
  Effort& effort_;
  std::vector<WorkerMemory> memories_;
  SharedPanel panel_;
  std::vector<KernelTimes> one_worker_;  ///< by round
  std::vector<KernelTimes> all_workers_;
};

void CpuBench::measure_squares(std::int64_t tile) {
  std::vector<std::unique_ptr<SquareTiles>> tiles(memories_.size());
  const auto make = [&](WorkerMemory& memory) {
    return std::make_unique<SquareTiles>(memory, tile, normal_, panel_);
  };
  for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
    effort_.tell(fmt::format("{} {} on the CPU", kernel->name, tile));
    for (const std::int32_t count : {1, workers_.count}) {
      const double seconds = seconds_on(count, *kernel, tiles, make);
      KernelTimes& times = count == 1 ? one_worker_.back() : all_workers_.back();
      times.push_back({kernel, tile, tile, 0, seconds * 1e6});
      if (workers_.count == 1) break;
    }
  }
}

void CpuBench::measure_panel(std::int64_t rows, std::int64_t width, std::int64_t inner) {
  std::vector<std::unique_ptr<TallTiles>> tiles(memories_.size());
  const auto make = [&](WorkerMemory& memory) {
    return std::make_unique<TallTiles>(memory, rows, width, inner, normal_);
  };
  for (const Kernel* kernel : {&kernel::geqrt, &kernel::tsmqr}) {
    effort_.tell(fmt::format("{} {} x {}, inner {} on the CPU", kernel->name, rows, width, inner));
    const double seconds = seconds_on(workers_.count, *kernel, tiles, make);
    all_workers_.back().push_back({kernel, rows, width, inner, seconds * 1e6});
  }
}

void CpuBench::measure_round() {
  one_worker_.emplace_back();
  all_workers_.emplace_back();
  double last = 0;
  const auto timed = [&](const auto& work) {
    const double begin = effort_.elapsed();
    work();
    last = effort_.elapsed() - begin;
  };
  for (const std::int64_t tile : square_tiles) {
    // Without the first two there is no table.
    if (tile > square_tiles[1] && !effort_.allows(last)) break;
    timed([&] { measure_squares(tile); });
  }
  last = 0;
  for (const std::int64_t rows : panel_heights) {
    for (const std::int64_t width : panel_widths) {
      for (const std::int64_t inner : panel_inners) {
        if (inner > width || !effort_.allows(last)) continue;
        timed([&] { measure_panel(rows, width, inner); });
      }
    }
  }
}

}  // namespace

CpuMeasurement measure_cpu(const Workers& workers, const NormalValues& normal, Effort& effort) {
  CpuBench bench(workers, normal, effort);
  for (std::size_t round = 0; round < rounds_max; ++round) {
    const double begin = effort.elapsed();
    bench.measure_round();
    if (!effort.allows(effort.elapsed() - begin)) break;
  }
  return bench.result();
}

}  // namespace heddle::tuning
