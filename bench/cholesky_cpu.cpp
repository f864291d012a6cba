/// How fast is the Cholesky factorization on CPUs, alone or over several nodes? Prints one line per
/// figure, as the peers do; bench/run-cholesky puts them side by side.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <mutex>
#include <string>

#include "algorithms/cholesky/cholesky.hpp"
#include "bench/node_run.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

struct Options : RunOptions {
  std::int64_t n = 4000;
  std::int64_t tile = 0;
  std::int64_t strip = 0;
  std::int64_t small = 0;
  int workers = 2;
  int devices = 0;
  std::string grid;
};

/// Diagonally dominant; strictly upper part zero.
void fill(const Matrix<double>& matrix, std::int64_t n) {
  Matrix<double> a = matrix;
  a.fill([n](GlobalRow row, GlobalColumn column, TileView tile) {
    for (std::int64_t c = 0; c < tile.columns; ++c) {
      const std::int64_t j = column.value() + c;
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        const std::int64_t i = row.value() + r;
        const double below = i > j ? hashed(i, j) : 0.0;
        tile(r, c) = i == j ? static_cast<double>(n) : below;
      }
    }
  });
}

double largest(Matrix<double> matrix, Node& node) {
  double value = 0;
  std::mutex mutex;
  matrix.for_each_tile([&](TileRow, TileColumn, TileView tile) {
    double here = 0;
    for (std::int64_t c = 0; c < tile.columns; ++c) {
      for (std::int64_t r = 0; r < tile.rows; ++r) here = std::max(here, std::abs(tile(r, c)));
    }
    const std::lock_guard lock(mutex);
    value = std::max(value, here);
  });
  node.all_reduce({&value, 1}, Reduction::maximum);
  return value;
}

std::string configuration(const Options& options) {
  const std::string devices =
      options.devices > 0
          ? fmt::format("{{backend: emulated, per_node: {}, memory: 4GiB}}", options.devices)
          : "{backend: none}";
  std::string text = fmt::format("runtime: {{cpu_workers: {}, devices: {}}}\nlayout: {{",
                                 options.workers, devices);
  if (options.tile > 0) text += fmt::format("tile: {}, ", options.tile);
  if (options.small > 0)
    text += fmt::format("small: {}, strip: {}, ", options.small, options.strip);
  text += fmt::format("grid: {}}}\n", options.grid.empty() ? "auto" : options.grid);
  if (!options.trace.empty()) text += fmt::format("trace: {{file: {}}}\n", options.trace);
  return text;
}

int run(const Options& options, Node& node) {
  MatrixSpec spec(options.n, options.n, Storage::lower);
  const Matrix<double> a = node.matrix<double>(spec);
  const std::unique_ptr<TraceFile> trace = recording(node, options);
  const Timings timings = time_job(
      node, options, [&] { fill(a, options.n); }, [&] { return cholesky(a); });
  if (options.check) {
    const Matrix<double> residual = node.matrix<double>(spec);
    fill(residual, options.n);
    node.submit(subtract_product(residual, a)).wait();
    const double scaled = largest(residual, node) / (static_cast<double>(options.n) *
                                                     static_cast<double>(options.n) * 2.2e-16);
    if (!(scaled < 10)) {
      fmt::print(stderr, "cholesky_cpu: residual {}\n", scaled);
      return 1;
    }
  }
  if (trace) trace->finish(about(timings));
  if (node.rank() != 0) return 0;
  fmt::print("peer=heddle op=cholesky n={} nb={} nodes={} workers={} devices={} {}\n", options.n,
             a.layout().tile, node.size(), node.facts().cpu_workers, node.facts().devices,
             figures(cholesky_flops(static_cast<double>(options.n)), timings));
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"Cholesky factorization rate"};
  app.add_option("--n", options.n, "order");
  app.add_option("--nb", options.tile, "tile; left out: heddle's own choice");
  app.add_option("--strip", options.strip, "strip of each tile");
  app.add_option("--small", options.small, "small tiles of the strip");
  app.add_option("--workers", options.workers, "CPU workers of a node");
  app.add_option("--devices", options.devices, "emulated devices of a node");
  app.add_option("--grid", options.grid, "[rows, columns] of nodes");
  heddle::add_run_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const heddle::Config config =
      heddle::Config::from_text(heddle::configuration(options), "cholesky_cpu");
  return heddle::run_on_node(config, options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
