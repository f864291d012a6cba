/// How large should tiles be, and how small their parts? Sweeps the tile and the small size (as 000
/// figure 3.9 does) for tiles that run whole, that CPU workers divide, with strips, and with both;
/// prints a line for each point, and draws a picture.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr.hpp"
#include "apps/chart/line_chart.hpp"
#include "bench/node_run.hpp"

namespace heddle {
namespace {

/// How the CPU workers come by small tasks.
enum class Way : std::uint8_t { whole, divided, strips, both };

struct Options {
  std::string kind = "cholesky";
  std::int64_t n = 4000;
  std::vector<std::int64_t> tiles{192, 384, 576, 768, 960};
  std::vector<std::int64_t> smalls{96, 192};
  std::vector<std::string> ways{"whole", "divided"};
  int rounds = 5;
  int workers = 2;
  std::string backend = "none";
  int devices = 1;
  std::string memory = "auto";
  double strip_share = 0.2;
  std::string picture;
};

struct Point {
  Way way = Way::whole;
  std::int64_t tile = 0;
  std::int64_t small = 0;  ///< 0: of no meaning
  std::vector<double> seconds{};

  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  /// Columns of each tile that the CPUs keep.
  [[nodiscard]] std::int64_t strip(double share) const {
    if (way != Way::strips && way != Way::both) return 0;
    const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(tile));
    return std::clamp(wanted / small * small, small, tile / small * small);
  }
  [[nodiscard]] std::int64_t fine() const {
    return way == Way::divided || way == Way::both ? small : 0;
  }
};

const char* name(Way way) {
  switch (way) {
    case Way::whole:
      return "whole";
    case Way::divided:
      return "divided";
    case Way::strips:
      return "strips";
    case Way::both:
      return "both";
  }
  return "";
}

std::vector<Point> points_of(const Options& options) {
  std::vector<Point> points;
  for (const Way way : {Way::whole, Way::divided, Way::strips, Way::both}) {
    if (std::count(options.ways.begin(), options.ways.end(), name(way)) == 0) continue;
    for (const std::int64_t tile : options.tiles) {
      if (way == Way::whole) {
        points.push_back({way, tile});
        continue;
      }
      for (const std::int64_t small : options.smalls) {
        if (small < tile) points.push_back({way, tile, small});
      }
    }
  }
  return points;
}

/// Runs it once; its seconds. The matrices are gone afterwards.
double run_cholesky(Node& node, const Options& options, const Point& point) {
  MatrixSpec spec;
  spec.rows = spec.columns = options.n;
  spec.storage = Storage::lower;
  spec.has_layout = true;
  spec.layout = {.rows = options.n,
                 .columns = options.n,
                 .tile = point.tile,
                 .strip = point.strip(options.strip_share),
                 .small = point.small,
                 .fine = point.fine()};
  spec.distribution = node.facts().distribution;
  Matrix<double> a = node.matrix<double>(spec);
  a.fill([&](std::int64_t i, std::int64_t j) {
    return i == j ? static_cast<double>(options.n) : hashed(i, j);
  });
  RunOptions once;
  once.repetitions = 1;
  once.warm_up = 0;
  return time_job(
             node, once, [] {}, [&] { return cholesky(a); })
      .median();
}

double run_qr(Node& node, const Options& options, const Point& point) {
  QrLayout layout;
  layout.tile = point.tile;
  layout.strip = point.strip(options.strip_share);
  layout.small = point.small;
  layout.fine = point.fine();
  layout.inner = static_cast<std::int32_t>(std::min<std::int64_t>(point.tile, 48));
  const QrMatrix q = qr_matrix(node, options.n, options.n, layout, node.facts().distribution);
  Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) { return hashed(i, j); });
  RunOptions once;
  once.repetitions = 1;
  once.warm_up = 0;
  return time_job(
             node, once, [] {}, [&] { return qr(q); })
      .median();
}

/// A line for each way and small size, over the tiles.
std::string picture_of(const Options& options, const std::vector<Point>& points, double flops) {
  LineChart chart;
  chart.title = fmt::format(
      "{}, n = {}: {} CPU workers, {}", options.kind, options.n, options.workers,
      options.backend == "none" ? "no device"
                                : fmt::format("{} {} device(s)", options.devices, options.backend));
  chart.x_label = "tile";
  chart.y_label = "GFLOP/s, median";
  for (const std::int64_t tile : options.tiles) chart.x_names.push_back(std::to_string(tile));
  for (const Point& point : points) {
    const std::string series =
        point.small == 0 ? name(point.way) : fmt::format("{}, {}", name(point.way), point.small);
    auto at = std::find_if(chart.series.begin(), chart.series.end(),
                           [&](const ChartSeries& s) { return s.name == series; });
    if (at == chart.series.end()) {
      chart.series.push_back({series, std::vector<std::optional<double>>(options.tiles.size())});
      at = chart.series.end() - 1;
    }
    const auto x = std::find(options.tiles.begin(), options.tiles.end(), point.tile);
    at->values[static_cast<std::size_t>(x - options.tiles.begin())] = flops * 1e-9 / point.median();
  }
  return to_svg(chart);
}

int run(const Options& options, Node& node) {
  std::vector<Point> points = points_of(options);
  const bool is_cholesky = options.kind == "cholesky";
  const auto n = static_cast<double>(options.n);
  const double flops = is_cholesky ? n * n * n / 3 : 4 * n * n * n / 3;
  const auto& once = is_cholesky ? run_cholesky : run_qr;
  // Round by round, so that what else the machine does meets all of them; the first one warms up.
  for (int round = -1; round < options.rounds; ++round) {
    for (Point& point : points) {
      const double seconds = once(node, options, point);
      if (round >= 0) point.seconds.push_back(seconds);
    }
  }
  for (const Point& point : points) {
    fmt::print(
        "op={} n={} way={} tile={} small={} strip={} workers={} devices={} seconds={:.5f} "
        "gflops_median={:.2f} gflops_best={:.2f}\n",
        options.kind, options.n, name(point.way), point.tile, point.small,
        point.strip(options.strip_share), node.facts().cpu_workers, node.facts().devices,
        point.median(), flops * 1e-9 / point.median(),
        flops * 1e-9 / *std::min_element(point.seconds.begin(), point.seconds.end()));
  }
  if (options.picture.empty()) return 0;
  std::ofstream file(options.picture);
  file << picture_of(options, points, flops);
  if (!file.flush()) {
    fmt::print(stderr, "granularity: cannot write '{}'\n", options.picture);
    return 1;
  }
  return 0;
}

std::string configuration(const Options& options) {
  std::string devices = fmt::format("{{backend: {}", options.backend);
  if (options.backend != "none") {
    devices += fmt::format(", per_node: {}, memory: {}", options.devices, options.memory);
  }
  return fmt::format("runtime: {{cpu_workers: {}, devices: {}}}}}\n", options.workers, devices);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"Tile and small sizes, and who divides tiles"};
  app.add_option("--kind", options.kind, "cholesky or qr")
      ->check(CLI::IsMember({"cholesky", "qr"}));
  app.add_option("--n", options.n, "order")->check(CLI::PositiveNumber);
  app.add_option("--tiles", options.tiles, "tiles, from small to large")->delimiter(',');
  app.add_option("--smalls", options.smalls, "parts of tiles, pieces of strips")->delimiter(',');
  app.add_option("--ways", options.ways, "whole, divided, strips, both")
      ->delimiter(',')
      ->check(CLI::IsMember({"whole", "divided", "strips", "both"}));
  app.add_option("--rounds", options.rounds, "runs of each point")->check(CLI::Range(1, 1000));
  app.add_option("--workers", options.workers, "CPU workers");
  app.add_option("--backend", options.backend, "none, emulated or cuda");
  app.add_option("--devices", options.devices, "devices, with a backend");
  app.add_option("--memory", options.memory, "of each device");
  app.add_option("--strip-share", options.strip_share, "of a tile's columns, for strips");
  app.add_option("--picture", options.picture, "an SVG file to write");
  CLI11_PARSE(app, argc, argv);
  const heddle::Config config =
      heddle::Config::from_text(heddle::configuration(options), "granularity");
  heddle::Node node(config);
  return heddle::run(options, node);
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
