/// How fast is the QR factorization on CPUs, alone or over several nodes? Prints one line per
/// figure, as cholesky_cpu does.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "algorithms/io/trace_file.hpp"
#include "algorithms/qr/qr.hpp"
#include "bench/node_run.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

struct Options {
  std::int64_t m = 0;
  std::int64_t n = 4000;
  std::int64_t tile = 192;
  std::int32_t virtual_tiles = 1000;
  std::int32_t inner = 0;
  int repetitions = 5;
  int warm_up = 1;
  int workers = 2;
  std::string grid;
  std::string trace;
  bool nodes_run = false;
};

/// From a cheap hash of the position, with a heavier diagonal.
double element(std::int64_t i, std::int64_t j) {
  auto h = static_cast<std::uint64_t>(i) << 32 ^ static_cast<std::uint64_t>(j);
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11) * 0x1p-53 - 0.5 + (i == j ? 2.0 : 0.0);
}

int run(const Options& options, Node& node) {
  const QrLayout layout{.tile = options.tile,
                        .virtual_tiles = static_cast<std::int32_t>(std::min<std::int64_t>(
                            options.virtual_tiles, (options.m + options.tile - 1) / options.tile)),
                        .inner = options.inner};
  const QrMatrix q = qr_matrix(node, options.m, options.n, layout, node.facts().distribution);
  std::vector<double> times;
  double kernels = 0;
  std::int64_t messages = 0;
  for (int r = -options.warm_up; r < options.repetitions; ++r) {
    Matrix<double>(q.a).fill(element);
    node.barrier();
    const double before = work_of(node).kernels;
    const double start = now();
    Job job = node.submit(qr(q));
    const JobResult result = job.wait();
    if (r >= 0) {
      times.push_back(now() - start);
      kernels += (work_of(node).kernels - before) / options.repetitions;
    }
    messages = job.counters().sends;
    if (result.status != JobResult::Status::done) {
      fmt::print(stderr, "qr_cpu: the factorization failed\n");
      return 1;
    }
  }
  if (!options.trace.empty()) write_trace(node, options.trace);
  auto sent = static_cast<double>(messages);
  node.all_reduce({&sent, 1}, Reduction::sum);
  if (node.rank() != 0) return 0;
  std::sort(times.begin(), times.end());
  const double middle = times[times.size() / 2];
  const double flops =
      qr_flops(static_cast<double>(options.m), static_cast<double>(options.n)) * 1e-9;
  fmt::print(
      "peer=heddle op=qr m={} n={} nb={} virtual={} inner={} nodes={} workers={} "
      "gflops_median={:.2f} gflops_best={:.2f} seconds={:.5f} kernel_seconds={:.5f} "
      "messages={:.0f}\n",
      options.m, options.n, options.tile, layout.virtual_tiles, options.inner, node.size(),
      node.facts().cpu_workers, flops / middle, flops / times.front(), middle, kernels, sent);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"QR factorization rate"};
  app.add_option("--m", options.m, "rows; left out: as many as columns");
  app.add_option("--n", options.n, "columns");
  app.add_option("--nb", options.tile, "tile");
  app.add_option("--virtual", options.virtual_tiles, "tiles of a virtual tile; left out: all");
  app.add_option("--inner", options.inner,
                 "columns of a block of reflectors; left out: the tile's");
  app.add_option("--repetitions", options.repetitions, "timed runs");
  app.add_option("--warm-up", options.warm_up, "runs before them");
  app.add_option("--workers", options.workers, "CPU workers of a node");
  app.add_option("--grid", options.grid, "[rows, columns] of nodes");
  app.add_option("--trace", options.trace, "record a trace of all runs, and write it");
  app.add_flag("--nodes-run", options.nodes_run, "one of several processes under mpiexec");
  CLI11_PARSE(app, argc, argv);
  if (options.m == 0) options.m = options.n;
  if (options.inner == 0) options.inner = static_cast<std::int32_t>(options.tile);
  const std::string text =
      fmt::format("runtime: {{cpu_workers: {}}}\nlayout: {{grid: {}}}\n{}", options.workers,
                  options.grid.empty() ? "auto" : options.grid,
                  options.trace.empty() ? "" : fmt::format("trace: {{file: {}}}\n", options.trace));
  const heddle::Config config = heddle::Config::from_text(text, "qr_cpu");
  return heddle::run_on_node(config, options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
