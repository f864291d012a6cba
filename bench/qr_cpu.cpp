/// How fast is the QR factorization on CPUs, alone or over several nodes? Prints one line per
/// figure, as cholesky_cpu does.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "algorithms/qr/layout.hpp"
#include "algorithms/qr/measures.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "bench/node_run.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

struct Options : RunOptions {
  std::int64_t m = 0;
  std::int64_t n = 4000;
  std::string layout;  ///< what is not heddle's own choice, in YAML
  int workers = 2;
};

/// With a heavier diagonal.
double element(std::int64_t i, std::int64_t j) {
  return hashed(i, j) + (i == j ? 2.0 : 0.0);
}

/// |A - Q R| and |I - Q^T Q|, scaled as the report of a run has them. Leaves Q in a matrix like A.
int check(const QrMatrix& q, Node& node) {
  const auto m = static_cast<double>(q.a.rows());
  QrOperand x = explicit_q_operand(q);
  const auto apply_to = [&](const Matrix<double>& top) {
    x.x.fill([](std::int64_t, std::int64_t) { return 0.0; });
    node.submit(apply_q_to_triangle(q, {x.x, top, x.traveling})).wait();
  };
  apply_to(q.r);
  Matrix<double> a = node.matrix<double>(q.a.spec());
  a.fill(element);
  const Norm a_norm = largest_of(column_norms(a));
  x.x.for_each_tile([layout = x.x.layout()](TileRow i, TileColumn c, TileView tile) {
    for (std::int64_t k = 0; k < tile.columns; ++k) {
      for (std::int64_t l = 0; l < tile.rows; ++l) {
        tile(l, k) -= element(layout.row_begin(i) + l, layout.column_begin(c) + k);
      }
    }
  });
  const Norm difference = largest_of(column_norms(x.x));
  x.top.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
  apply_to(x.top);
  const double residual = scaled_factor_residual(difference, a_norm, m);
  const double orthogonality =
      loss_of_orthogonality(x.x) / (m * std::numeric_limits<double>::epsilon());
  if (node.rank() == 0) {
    fmt::print("residual={:.3g} orthogonality={:.3g}\n", residual, orthogonality);
  }
  return residual < 10 && orthogonality < 10 ? 0 : 1;
}

int run(const Options& options, Node& node) {
  const QrCut cut = choose_qr_cut(options.m, options.n, node.config().layout, node.facts());
  const QrLayout& layout = cut.layout;
  const QrMatrix q = qr_matrix(node, options.m, options.n, layout, cut.distribution);
  const std::unique_ptr<TraceFile> trace = recording(node, options);
  const Timings timings = time_job(
      node, options, [&] { Matrix<double>(q.a).fill(element); }, [&] { return qr(q); });
  if (trace) trace->finish(about(timings));
  auto sent = static_cast<double>(timings.sends);
  node.all_reduce({&sent, 1}, Reduction::sum);
  if (node.rank() == 0) {
    fmt::print(
        "peer=heddle op=qr m={} n={} nb={} virtual={} inner={} tree={} grid={}x{} nodes={} "
        "workers={} {} messages={:.0f}\n",
        options.m, options.n, layout.tile, layout.virtual_tiles, layout.inner,
        layout.tree == QrTree::binomial ? "binomial" : "flat", cut.distribution.grid_rows,
        cut.distribution.grid_columns, node.size(), node.facts().cpu_workers,
        figures(qr_flops(static_cast<double>(options.m), static_cast<double>(options.n)), timings),
        sent);
  }
  if (options.check) return check(q, node);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"QR factorization rate"};
  app.add_option("--m", options.m, "rows; left out: as many as columns");
  app.add_option("--n", options.n, "columns");
  std::map<std::string, std::string> layout{
      {"tile", ""}, {"virtual", ""}, {"inner", ""}, {"tree", ""}, {"grid", ""}};
  app.add_option("--nb", layout["tile"], "tile");
  app.add_option("--virtual", layout["virtual"], "tiles of a virtual tile");
  app.add_option("--inner", layout["inner"], "columns of a block of reflectors");
  app.add_option("--tree", layout["tree"], "flat, binomial");
  app.add_option("--grid", layout["grid"], "[rows, columns] of nodes");
  app.add_option("--workers", options.workers, "CPU workers of a node");
  heddle::add_run_options(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.m == 0) options.m = options.n;
  for (const auto& [key, value] : layout) {
    if (!value.empty()) options.layout += fmt::format("  {}: {}\n", key, value);
  }
  const std::string text =
      fmt::format("runtime: {{cpu_workers: {}, devices: {{backend: none}}}}\n{}{}", options.workers,
                  options.layout.empty() ? "" : "layout:\n" + options.layout,
                  options.trace.empty() ? "" : fmt::format("trace: {{file: {}}}\n", options.trace));
  const heddle::Config config = heddle::Config::from_text(text, "qr_cpu");
  return heddle::run_on_node(config, options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
