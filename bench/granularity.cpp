/// How large should tiles be, and how small their parts? Sweeps the tile and the small size (as 000
/// figure 3.9 does) for tiles that run whole, that CPU workers divide, with strips, with both, and
/// with dynamic placement, whole or divided; prints a line for each point, and draws a picture.
///
/// With --device-times an emulated device has the rate of so many times all CPU workers, and only
/// pretends to compute; with --worker-gflops these do so, too, so that few cores show what many
/// workers would do: results are then of no use, and only times are told.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "apps/chart/line_chart.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "bench/node_run.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

/// How the CPU workers come by small tasks; with lent ones also by those of devices.
enum class Way : std::uint8_t { whole, divided, strips, both, lent, lent_divided };
constexpr std::array<Way, 6> all_ways{Way::whole, Way::divided, Way::strips,
                                      Way::both,  Way::lent,    Way::lent_divided};

struct Options {
  std::string kind = "cholesky";
  std::int64_t n = 4000;
  std::vector<std::int64_t> tiles{192, 384, 576, 768, 960};
  std::vector<std::int64_t> smalls{96, 192};
  std::vector<std::string> ways{"whole", "divided"};
  int rounds = 5;
  int jobs = 1;  ///< of each point in a round
  int workers = 2;
  std::int64_t inner = 0;  ///< of QR; 0: 48, on GPUs the tile
  std::string backend = "none";
  int devices = 1;
  std::string memory = "auto";
  double strip_share = 0.2;
  double device_times = 0;  ///< the CPU workers' rate; 0: emulated devices compute
  double device_half = 0;   ///< order of a tile at which it has half of what it tends to
  std::vector<std::string> device_kernels;  ///< that it runs; empty: all
  double worker_gflops = 0;                 ///< that each worker pretends to have; 0: they compute
  std::string picture;
  std::string trace;  ///< a folder for a run's folder of each point
  std::string from;   ///< lines of an earlier call: nothing is run
};

struct Point {
  Way way = Way::whole;
  std::int64_t tile = 0;
  std::int64_t small = 0;  ///< 0: of no meaning
  std::vector<double> seconds{};
  std::vector<double> first{};   ///< seconds of nodes' first jobs with the tile, where it has them
  std::vector<double> shares{};  ///< of the sum of all rates, where devices pretend
  std::int64_t lent = 0;         ///< tasks, in the last run
  double copied_bytes = 0;       ///< likewise

  /// Columns of each tile that the CPUs keep.
  [[nodiscard]] std::int64_t strip(double share) const {
    if (way != Way::strips && way != Way::both) return 0;
    const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(tile));
    return std::clamp(wanted / small * small, small, tile / small * small);
  }
  [[nodiscard]] std::int64_t fine() const {
    return way == Way::divided || way == Way::both || way == Way::lent_divided ? small : 0;
  }
  [[nodiscard]] bool moves_tasks() const { return way == Way::lent || way == Way::lent_divided; }
  [[nodiscard]] bool has_small() const { return way != Way::whole && way != Way::lent; }
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
    case Way::lent:
      return "lent";
    case Way::lent_divided:
      return "lent-divided";
  }
  return "";
}

std::vector<Point> points_of(const Options& options) {
  std::vector<Point> points;
  for (const Way way : all_ways) {
    if (std::count(options.ways.begin(), options.ways.end(), name(way)) == 0) continue;
    for (const std::int64_t tile : options.tiles) {
      if (!Point{way}.has_small()) {
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

/// Runs it once. The matrices are gone afterwards.
Timings run_cholesky(Node& node, const Options& options, const Point& point) {
  const MatrixSpec spec({.rows = options.n,
                         .columns = options.n,
                         .tile = point.tile,
                         .strip = point.strip(options.strip_share),
                         .small = point.small,
                         .fine = point.fine()},
                        node.facts().distribution, Storage::lower);
  Matrix<double> a = node.matrix<double>(spec);
  // Where devices pretend, nothing may grow without bounds that they should have scaled.
  const double beside = options.device_times > 0 || options.worker_gflops > 0 ? 0 : 1;
  a.fill([&](std::int64_t i, std::int64_t j) {
    return i == j ? static_cast<double>(options.n) : beside * hashed(i, j);
  });
  RunOptions once;
  once.repetitions = 1;
  once.warm_up = 0;
  return time_job(
      node, once, [] {}, [&] { return cholesky(a); });
}

Timings run_qr(Node& node, const Options& options, const Point& point) {
  QrLayout layout;
  layout.tile = point.tile;
  layout.strip = point.strip(options.strip_share);
  layout.small = point.small;
  layout.fine = point.fine();
  const std::int64_t inner = options.backend == "cuda" ? point.tile : 48;
  layout.inner =
      static_cast<std::int32_t>(std::min(point.tile, options.inner > 0 ? options.inner : inner));
  const QrMatrix q = qr_matrix(node, options.n, options.n, layout, node.facts().distribution);
  Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) { return hashed(i, j); });
  RunOptions once;
  once.repetitions = 1;
  once.warm_up = 0;
  return time_job(
      node, once, [] {}, [&] { return qr(q); });
}

Timings run_once(Node& node, const Options& options, const Point& point) {
  return options.kind == "cholesky" ? run_cholesky(node, options, point)
                                    : run_qr(node, options, point);
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
    at->values[static_cast<std::size_t>(x - options.tiles.begin())] =
        flops * 1e-9 / median(point.seconds);
  }
  return to_svg(chart);
}

/// Operations per second of so many threads that multiply tiles of order `small` in their caches.
double workers_rate(int workers, std::int64_t small) {
  constexpr double seconds = 0.3;
  std::atomic<std::int64_t> products{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers));
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&] {
      std::vector<double> tiles(static_cast<std::size_t>(3 * small * small), 0.5);
      std::array<TileView, 3> views;
      for (std::size_t i = 0; i < views.size(); ++i) {
        views.at(i) = {tiles.data() + static_cast<std::int64_t>(i) * small * small, small, small,
                       small};
      }
      const KernelParameters parameters(kernel::UpdateParameters{0});
      for (const double end = now() + seconds; now() < end; ++products) {
        kernel::gsmm.host({views, parameters});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto order = static_cast<double>(small);
  return 2 * order * order * order * static_cast<double>(products.load()) / seconds;
}

/// What a kernel on these tiles computes.
double flops_of_arguments(const Kernel& kernel, const KernelArguments& arguments) {
  return flops_of(CaseKey::of(kernel, arguments).what());
}

/// A device that pretends to be so many times as fast as all CPU workers are at the moment: unless
/// these pretend too, they are measured before each run, since other programs use the same cores.
class PretendedDevice {
 public:
  explicit PretendedDevice(const Options& options) : options_(options) {}

  [[nodiscard]] bool is_wanted() const { return options_.device_times > 0; }
  /// Operations per second of all workers and devices together, from now on.
  double calibrate() {
    const double workers = options_.worker_gflops > 0
                               ? options_.workers * options_.worker_gflops * 1e9
                               : workers_rate(options_.workers, options_.smalls.back());
    rate_.store(options_.device_times * workers, std::memory_order_relaxed);
    return workers * (1 + options_.device_times * options_.devices);
  }
  /// What a kernel takes; any thread.
  [[nodiscard]] double seconds(const Kernel& kernel, const KernelArguments& arguments) const {
    const double rate = rate_.load(std::memory_order_relaxed);
    const auto order = static_cast<double>(arguments.tiles[0].rows);
    const auto largest = static_cast<double>(std::ranges::max(options_.tiles));
    return flops_of_arguments(kernel, arguments) / rate / share_at(order) * share_at(largest);
  }

 private:
  /// Of its rate, for tiles of that order.
  [[nodiscard]] double share_at(double order) const {
    return order / (order + options_.device_half);
  }

  const Options& options_;
  std::atomic<double> rate_{0};
};

/// Where the trace of a point lies; empty: none was asked for.
std::string trace_of(const Options& options, const Point& point) {
  if (options.trace.empty()) return {};
  return std::filesystem::path(options.trace) / fmt::format("{}-{}-{}-{}-{}", options.kind,
                                                            options.n, name(point.way), point.tile,
                                                            point.small);
}

std::string configuration(const Options& options, bool moves_tasks) {
  std::string devices = fmt::format("{{backend: {}", options.backend);
  if (options.backend != "none") {
    devices += fmt::format(", per_node: {}, memory: {}", options.devices, options.memory);
  }
  return fmt::format("runtime: {{cpu_workers: {}, placement: {}, devices: {}}}}}\n{}",
                     options.workers, moves_tasks ? "dynamic" : "static", devices,
                     options.trace.empty() ? "" : "trace: {file: points}\n");
}

/// One job of a point that is measured, traced into a folder unless that is empty. One that does
/// not count warms up.
void run_job(Node& node, const Options& options, PretendedDevice& device, Point& point,
             double flops, const std::string& trace_folder, bool counts) {
  const double rate = device.is_wanted() ? device.calibrate() : 0;
  const std::int64_t lent = NodeInternals(node).engine().tasks_lent();
  const std::uint64_t copied = NodeInternals(node).engine().counters().traffic().bytes_copied;
  RunOptions traced;
  traced.trace = trace_folder;
  const std::unique_ptr<TraceFile> trace = recording(node, traced);
  const Timings timings = run_once(node, options, point);
  const double seconds = timings.median();
  if (trace) trace->finish(about(timings));
  point.lent = NodeInternals(node).engine().tasks_lent() - lent;
  point.copied_bytes =
      static_cast<double>(NodeInternals(node).engine().counters().traffic().bytes_copied - copied);
  if (!counts) return;
  point.seconds.push_back(seconds);
  if (rate > 0) point.shares.push_back(flops / seconds / rate);
}

/// Runs each point's jobs; placement is a property of a node, so there is one for each, and in
/// every other round the other one comes first: neither always meets what the other leaves behind.
/// A node's first job with a tile size takes longer: there is one of each, told apart from the
/// others. Rounds count from 0; the last one's last jobs are traced, if traces were asked for.
void run_round(const Options& options, PretendedDevice& device, std::vector<Point>& points,
               double flops, int round) {
  NodeFaults model;
  if (!options.device_kernels.empty()) {
    model.device_runs = [&](const Kernel& kernel) {
      return std::ranges::count(options.device_kernels, kernel.name) > 0;
    };
  }
  if (device.is_wanted()) {
    model.device_seconds = [&](const Kernel& kernel, const KernelArguments& arguments) {
      return device.seconds(kernel, arguments);
    };
  }
  if (options.worker_gflops > 0) {
    model.worker_seconds = [rate = options.worker_gflops * 1e9](const Kernel& kernel,
                                                                const KernelArguments& arguments) {
      return flops_of_arguments(kernel, arguments) / rate;
    };
  }
  const bool begins = round % 2 != 0;
  for (const bool moves_tasks : {begins, !begins}) {
    if (std::ranges::none_of(points, [=](auto& p) { return p.moves_tasks() == moves_tasks; })) {
      continue;
    }
    // The node asks what kernels take before its first task.
    if (device.is_wanted()) static_cast<void>(device.calibrate());
    Node node(Config::from_text(configuration(options, moves_tasks), "granularity"), model);
    std::set<std::int64_t> warm;  // tiles
    for (Point& point : points) {
      if (point.moves_tasks() != moves_tasks) continue;
      if (warm.insert(point.tile).second) {
        if (device.is_wanted()) static_cast<void>(device.calibrate());
        const double first = run_once(node, options, point).median();
        if (round >= 0) point.first.push_back(first);
      }
      const bool is_last = round + 1 == options.rounds;
      for (int left = options.jobs - 1; left >= 0; --left) {
        const std::string trace = is_last && left == 0 ? trace_of(options, point) : "";
        run_job(node, options, device, point, flops, trace, round >= 0);
      }
    }
  }
}

/// The points of an earlier call's lines, of those with this kind and order. Throws where a line
/// cannot be read.
std::vector<Point> points_from(Options& options) {
  std::ifstream file(options.from);
  if (!file) throw Error(ErrorCode::usage, fmt::format("cannot read '{}'", options.from));
  std::vector<Point> points;
  options.tiles.clear();
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("op=")) continue;
    std::map<std::string, std::string> values;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::size_t at = word.find('=');
      if (at != std::string::npos) values[word.substr(0, at)] = word.substr(at + 1);
    }
    try {
      if (values.at("op") != options.kind || std::stoll(values.at("n")) != options.n) continue;
      const auto way = std::ranges::find(all_ways, values.at("way"), name);
      if (way == all_ways.end()) throw std::out_of_range(values.at("way"));
      points.push_back({*way, std::stoll(values.at("tile")), std::stoll(values.at("small"))});
      points.back().seconds = {std::stod(values.at("seconds"))};
      options.tiles.push_back(points.back().tile);
      options.workers = std::stoi(values.at("workers"));
      options.devices = std::stoi(values.at("devices"));
    } catch (const std::logic_error& error) {
      throw Error(ErrorCode::usage, fmt::format("'{}': no line of this program: {} ({})",
                                                options.from, line, error.what()));
    }
  }
  std::ranges::sort(options.tiles);
  options.tiles.erase(std::unique(options.tiles.begin(), options.tiles.end()), options.tiles.end());
  if (options.devices == 0) options.backend = "none";
  return points;
}

int write_picture(const Options& options, const std::vector<Point>& points, double flops) {
  if (options.picture.empty()) return 0;
  std::ofstream file(options.picture);
  file << picture_of(options, points, flops);
  if (file.flush()) return 0;
  fmt::print(stderr, "granularity: cannot write '{}'\n", options.picture);
  return 1;
}

/// Throws where a sweep is of nothing, or of what nobody can run.
void check(const Options& options, const std::vector<Point>& points) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::usage, why); };
  if (points.empty()) refuse("no size of --smalls is below one of --tiles");
  const bool has_devices = options.backend != "none";
  if (options.device_times > 0 && options.backend != "emulated") {
    refuse("--device-times is of emulated devices: say --backend emulated");
  }
  if (!options.device_kernels.empty() && options.backend != "emulated") {
    refuse("--device-kernels is of emulated devices: say --backend emulated");
  }
  for (const std::string& name : options.device_kernels) {
    if (std::ranges::none_of(factorization_kernels, [&](auto* k) { return k->name == name; })) {
      refuse(fmt::format("--device-kernels {}: there is no such kernel", name));
    }
  }
  for (const Point& point : points) {
    if (point.moves_tasks() && !has_devices) {
      refuse(fmt::format("--ways {}: there are no devices to borrow tasks of; say --backend",
                         name(point.way)));
    }
    if (point.fine() > 0 && point.tile > fine_parts_max * point.fine()) {
      refuse(fmt::format("--smalls {} divides a tile of {} into more than {} parts a side",
                         point.small, point.tile, fine_parts_max));
    }
  }
}

int run(Options options) {
  const bool is_cholesky = options.kind == "cholesky";
  const auto n = static_cast<double>(options.n);
  const double flops = is_cholesky ? n * n * n / 3 : 4 * n * n * n / 3;
  if (!options.from.empty()) {
    const std::vector<Point> points = points_from(options);
    if (points.empty()) {
      fmt::print(stderr, "granularity: '{}' has no {} of order {}\n", options.from, options.kind,
                 options.n);
      return 1;
    }
    return write_picture(options, points, flops);
  }
  std::vector<Point> points = points_of(options);
  check(options, points);
  load_blas({});
  if (!options.trace.empty()) std::filesystem::create_directories(options.trace);
  PretendedDevice device(options);
  // Round by round, so that what else the machine does meets all of them; the first one warms up.
  for (int round = -1; round < options.rounds; ++round) {
    run_round(options, device, points, flops, round);
  }
  for (const Point& point : points) {
    fmt::print(
        "op={} n={} way={} tile={} small={} strip={} workers={} devices={} seconds={:.5f} "
        "gflops_median={:.2f} gflops_best={:.2f} lent={} copied_gb={:.2f}{}{}\n",
        options.kind, options.n, name(point.way), point.tile, point.small,
        point.strip(options.strip_share), options.workers,
        options.backend == "none" ? 0 : options.devices, median(point.seconds),
        flops * 1e-9 / median(point.seconds),
        flops * 1e-9 / *std::min_element(point.seconds.begin(), point.seconds.end()), point.lent,
        point.copied_bytes * 1e-9,
        point.shares.empty() ? "" : fmt::format(" of_rates={:.3f}", median(point.shares)),
        point.first.empty() ? "" : fmt::format(" first_seconds={:.5f}", median(point.first)));
  }
  return write_picture(options, points, flops);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"Tile and small sizes, and who divides tiles"};
  app.add_option("--kind", options.kind, "cholesky or qr")
      ->check(CLI::IsMember({"cholesky", "qr"}));
  app.add_option("--n", options.n, "order")->check(CLI::PositiveNumber);
  app.add_option("--tiles", options.tiles, "tiles, from small to large")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000));
  app.add_option("--smalls", options.smalls, "parts of tiles, pieces of strips")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000));
  app.add_option("--ways", options.ways, "whole, divided, strips, both, lent, lent-divided")
      ->delimiter(',')
      ->check(CLI::IsMember({"whole", "divided", "strips", "both", "lent", "lent-divided"}));
  app.add_option("--rounds", options.rounds, "of each point")->check(CLI::Range(1, 1000));
  app.add_option("--jobs", options.jobs, "of each point in a round, after one that does not count")
      ->check(CLI::Range(1, 1000));
  app.add_option("--workers", options.workers, "CPU workers")->check(CLI::Range(1, 4096));
  app.add_option("--inner", options.inner,
                 "QR: reflectors of a block; 48 if left out, on GPUs the tile");
  app.add_option("--backend", options.backend, "none, emulated or cuda");
  app.add_option("--devices", options.devices, "devices, with a backend");
  app.add_option("--memory", options.memory, "of each device");
  app.add_option("--device-times", options.device_times,
                 "an emulated device's rate on the largest tiles over that of all CPU workers; it "
                 "pretends to compute")
      ->check(CLI::PositiveNumber);
  app.add_option("--device-half", options.device_half,
                 "with it: order of tiles for which it has half of what it tends to")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--device-kernels", options.device_kernels,
                 "emulated devices run these kernels alone, and workers all others: gsmm for a "
                 "device of products (as 000 section 3.2.2), say")
      ->delimiter(',');
  app.add_option("--worker-gflops", options.worker_gflops,
                 "each CPU worker's rate, GFLOP/s: it pretends to compute")
      ->check(CLI::PositiveNumber);
  app.add_option("--strip-share", options.strip_share, "of a tile's columns, for strips");
  app.add_option("--picture", options.picture, "an SVG file to write");
  app.add_option("--trace", options.trace,
                 "a folder for the last round's runs, one of each point, for heddle analyze");
  app.add_option("--from", options.from,
                 "a file with lines of an earlier call: run nothing, draw the picture of those of "
                 "--kind and --n (and say --backend)");
  CLI11_PARSE(app, argc, argv);
  return heddle::run(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "granularity: {}\n", error.what());
  return 1;
}
