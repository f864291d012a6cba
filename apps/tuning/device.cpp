#include "apps/tuning/device.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apps/tuning/device_bench.hpp"
#include "apps/tuning/operands.hpp"
#include "base/median.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"

namespace heddle::tuning {
namespace {

constexpr std::array<std::int64_t, 5> device_tiles{256, 512, 1024, 2048, 4096};
constexpr std::array<std::int64_t, 3> device_panel_widths{256, 512, 1024};
constexpr std::array<std::int64_t, 2> device_panel_inners{256, 512};
/// Panels as low and as high as these; on slow devices those that the time allows.
constexpr std::array<std::int64_t, 3> device_panel_heights{2048, 4096, 16384};

constexpr double kernel_seconds = 0.15;  ///< of a kernel that is timed alone
/// Products from this size on meet the power limit of a GPU. They are measured for long, the sizes
/// in turns, so that all of them meet the device as warm.
constexpr std::int64_t sustained_from = 1024;
constexpr double seconds_sustained = 0.4;
constexpr int sustained_rounds = 3;

/// Rates that differ by less are the same: fewer streams then.
constexpr double equal_rate = 0.99;

/// What is kept free of the device's memory for its own bookkeeping.
constexpr double usable_share = 0.9;

class DeviceMeasuring {
 public:
  DeviceMeasuring(Device& device, std::int64_t inner, const NormalValues& normal, Effort& effort)
      : bench_(device, normal), inner_(inner), effort_(effort) {
    result_.backend = name_of(device.info().backend);
    result_.name = device.info().kind;
  }

  DeviceMeasurement run() {
    for (const std::int64_t tile : device_tiles) {
      if (!fits(DeviceBench::product_bytes(tile)) || !has_time_for_squares(tile)) break;
      measure_factor(tile);
      measure_products(tile, kernel_seconds);
    }
    for (int round = 0; round < sustained_rounds; ++round) measure_sustained_products();
    choose_streams();
    for (const std::int64_t width : device_panel_widths) {
      for (const std::int64_t inner : device_panel_inners) {
        if (inner <= width) measure_panels(width, inner);
      }
    }
    return std::move(result_);
  }

 private:
  void tell(const std::string& what) const {
    effort_.tell(fmt::format("{} on {}", what, result_.name));
  }

  [[nodiscard]] bool fits(std::uint64_t bytes) {
    return static_cast<double>(bytes) <
           usable_share * static_cast<double>(bench_.device().memory_available());
  }

  /// By the rate so far. The first size is measured in any case: without it there is no table.
  [[nodiscard]] bool has_time_for_squares(std::int64_t tile) const {
    if (product_rate_ == 0) return true;
    // Three products of each number of streams go in any case, and the factor's kernels, which are
    // slower, five times each.
    constexpr double products = 40;
    const double least = products * flops_of(kernel::gsmm, tile, tile) / product_rate_;
    return effort_.allows(std::max(least, effort_.lasting(kernel_seconds * 3)));
  }

  void add(const Kernel& kernel, std::int64_t rows, std::int64_t columns, std::int64_t inner,
           double seconds) {
    result_.kernels.push_back({&kernel, rows, columns, inner, microseconds(seconds)});
  }

  void time(const DeviceCase& timed, std::int64_t rows, std::int64_t columns, std::int64_t inner) {
    tell(fmt::format("{} {} x {}", timed.kernel->name, rows, columns));
    add(*timed.kernel, rows, columns, inner,
        bench_.seconds_of(timed, effort_.lasting(kernel_seconds)));
  }

  /// potrf, trsm and syrk, with inverse blocks where Cholesky has them.
  void measure_factor(std::int64_t tile) {
    Device& device = bench_.device();
    const KernelParameters whole(kernel::PieceParameters{0});
    const DeviceTile given(device, tile, tile);
    const DeviceTile factor(device, tile, tile);
    const DeviceTile other(device, tile, tile);
    const DeviceTile x(device, tile, tile);
    bench_.fill_definite(given);
    bench_.fill_normal(other);
    bench_.fill_normal(x);
    std::optional<DeviceTile> inverses;
    if (inner_ > 0) inverses.emplace(device, std::min(inner_, tile), tile);
    const auto with_inverses = [&](std::vector<TileView> tiles) {
      if (inverses) tiles.push_back(inverses->view());
      return tiles;
    };
    time({&kernel::potrf, whole, with_inverses({factor.view()}), {{&factor, &given}}}, tile, tile,
         0);
    time({&kernel::trsm, whole, with_inverses({x.view(), factor.view()}), {{&x, &other}}}, tile,
         tile, 0);
    time({&kernel::syrk, whole, {given.view(), other.view()}, {}}, tile, tile, 0);
  }

  void measure_products(std::int64_t tile, double wanted_seconds) {
    const double seconds = effort_.lasting(wanted_seconds);
    for (std::int32_t streams = 1; streams <= DeviceBench::streams_max; ++streams) {
      tell(fmt::format("gsmm {} on {} stream{}", tile, streams, streams == 1 ? "" : "s"));
      const double each = bench_.product_seconds(tile, streams, seconds);
      product_seconds_[tile][static_cast<std::size_t>(streams) - 1].push_back(each);
      product_rate_ = std::max(product_rate_, flops_of(kernel::gsmm, tile, tile) / each);
    }
  }

  /// If half of the time that is left suffices: the rest is for the panels.
  void measure_sustained_products() {
    for (const auto& [tile, seconds] : product_seconds_) {
      if (tile < sustained_from) continue;
      const double several = 10 * flops_of(kernel::gsmm, tile, tile) / product_rate_;
      const double expected = std::max(several, effort_.lasting(seconds_sustained));
      if (!effort_.allows(2 * DeviceBench::streams_max * expected)) return;
      measure_products(tile, seconds_sustained);
    }
  }

  /// By number of streams. What was measured first was brief, and counts only where nothing else
  /// was measured.
  using Seconds = std::array<std::vector<double>, DeviceBench::streams_max>;
  [[nodiscard]] static double typical(const std::vector<double>& seconds) {
    if (seconds.size() == 1) return seconds.front();
    return median({seconds.begin() + 1, seconds.end()});
  }

  /// The fewest streams that hold the rates of large products, and the table's products on them. At
  /// least two: a kernel of a panel does not fill a GPU by itself (Cholesky of n = 8192 on an H200:
  /// a fifth slower on one).
  void choose_streams() {
    std::array<double, DeviceBench::streams_max> scores{};
    const std::int64_t largest = product_seconds_.rbegin()->first;
    for (const auto& [tile, seconds] : product_seconds_) {
      // Small tiles tell where there are no large ones.
      if (tile < std::min(sustained_from, largest)) continue;
      std::array<double, DeviceBench::streams_max> each{};
      std::ranges::transform(seconds, each.begin(), typical);
      const double best = *std::ranges::min_element(each);
      for (std::size_t s = 0; s < scores.size(); ++s) scores[s] += best / each[s];
    }
    constexpr std::size_t least = 1;  // index of two streams
    const double best = *std::max_element(scores.begin() + least, scores.end());
    std::size_t chosen = least;
    while (scores[chosen] < equal_rate * best) ++chosen;
    result_.streams = static_cast<std::int32_t>(chosen) + 1;
    for (const auto& [tile, seconds] : product_seconds_) {
      add(kernel::gsmm, tile, tile, 0, typical(seconds[chosen]));
    }
  }

  void measure_panels(std::int64_t width, std::int64_t inner) {
    for (const std::int64_t rows : device_panel_heights) {
      const auto bytes = static_cast<std::uint64_t>(8 * (4 * rows + 3 * width) * width);
      // A panel's columns come one after the other: a small share of the rate of products.
      constexpr double panel_share = 0.1;
      const double factor = flops_of(kernel::geqrt, rows, width) / panel_share;
      const double update = flops_of(kernel::unmqr, rows, width);
      const double expected = 6 * (factor + update) / product_rate_;
      if (!fits(bytes) || !effort_.allows(expected)) return;
      measure_panel(rows, width, inner);
    }
  }

  void measure_panel(std::int64_t rows, std::int64_t width, std::int64_t inner) {
    Device& device = bench_.device();
    const KernelParameters parameters(kernel::PanelParameters{0, 0, inner});
    const DeviceTile given(device, rows, width);
    const DeviceTile panel(device, rows, width);
    const DeviceTile beside(device, rows, width);
    const DeviceTile r(device, width, width);
    const DeviceTile top(device, width, width);
    const DeviceTile factors(device, inner, width);
    bench_.fill_normal(given);
    bench_.fill_normal(beside);
    bench_.fill_normal(r);
    bench_.fill_normal(top);
    time({&kernel::geqrt, parameters, {panel.view(), r.view(), factors.view()}, {{&panel, &given}}},
         rows, width, inner);
    time(
        {&kernel::unmqr, parameters, {beside.view(), top.view(), panel.view(), factors.view()}, {}},
        rows, width, inner);
  }

  DeviceBench bench_;
  std::int64_t inner_;
  Effort& effort_;
  DeviceMeasurement result_;
  double product_rate_ = 0;  ///< the highest so far, flops per second
  std::map<std::int64_t, Seconds> product_seconds_;
};

}  // namespace

DeviceMeasurement measure_device(Device& device, std::int64_t inner, const NormalValues& normal,
                                 Effort& effort) {
  return DeviceMeasuring(device, inner, normal, effort).run();
}

}  // namespace heddle::tuning
