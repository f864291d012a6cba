/// How fast is the QR factorization on a node with devices? Prints one line per figure, as
/// cholesky_gpu does.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <string>

#include "algorithms/qr/layout.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "bench/device_run.hpp"
#include "bench/peers/normal.hpp"
#include "bench/random_check.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

struct Options : DeviceOptions {
  std::int64_t m = 0;  ///< after the command line was read never 0
  std::int64_t n = 16384;
};

Matrix<double>::Visitor fill(const TileLayout& layout) {
  return [layout](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t row = layout.row_begin(i);
    const std::int64_t column = layout.column_begin(c);
    for (std::int64_t b = 0; b < tile.columns; ++b) {
      for (std::int64_t a = 0; a < tile.rows; ++a) {
        tile(a, b) = peer::normal(row + a, column + b);
      }
    }
  };
}

/// How far A x is from Q (R x), and x from Q (Q^T x), both scaled, for random x.
struct Deviation {
  double residual = 0;
  double orthogonality = 0;

  [[nodiscard]] bool is_rounding() const { return residual < 10 && orthogonality < 10; }
};

Deviation deviation(const QrMatrix& q, const Columns& x, const Columns& expected, Node& node) {
  const auto m = static_cast<double>(q.a.rows());
  const QrOperand sides = qr_operand(q, Columns::count);
  const auto apply = [&](const JobSpec& job) {
    if (node.submit(job).wait().status != JobResult::Status::done) {
      throw Error(ErrorCode::internal, "a product with Q ended without a result\n");
    }
  };
  Deviation result;
  spread(product(q.r, x, Operand::upper), sides.top);
  spread(Columns(q.a.rows()), sides.x);
  apply(apply_q(q, sides));
  result.residual = distance(expected, gathered(sides.x)).scaled(m);

  const Columns tall = random_columns(q.a.rows());
  spread(tall, sides.x);
  apply(apply_q_transposed(q, sides));
  apply(apply_q(q, sides));
  result.orthogonality = distance(tall, gathered(sides.x)).scaled(m);
  return result;
}

int run(const Options& options, Node& node) {
  const QrCut cut = choose_qr_cut(options.m, options.n, node.config().layout, node.facts());
  const QrLayout& layout = cut.layout;
  const QrMatrix q = qr_matrix(node, options.m, options.n, layout, cut.distribution);
  Input input(q.a, options.regenerate, fill(q.a.layout()));
  const Columns x = random_columns(options.check ? options.n : 0);
  const Columns expected =
      options.check ? product(input.content(), x, Operand::general) : Columns(0);
  const std::unique_ptr<TraceFile> trace = recording(node, options);
  const Timings timings = time_job(
      node, options, [&] { input.restore(); }, [&] { return qr(q); });
  const Deviation found = options.check ? deviation(q, x, expected, node) : Deviation();
  if (trace) trace->finish(about(timings));
  if (node.rank() == 0) {
    fmt::print(
        "peer=heddle op=qr m={} n={} nb={} strip={} virtual={} inner={} tree={} nodes={} "
        "workers={} gpus={} backend={} {}{}\n",
        options.m, options.n, layout.tile, layout.strip, layout.virtual_tiles, layout.inner,
        layout.tree == QrTree::binomial ? "binomial" : "flat", node.size(),
        node.facts().cpu_workers, node.facts().devices, node.facts().device_backend,
        figures(qr_flops(static_cast<double>(options.m), static_cast<double>(options.n)), timings),
        options.check ? fmt::format(" residual={:.3g} orthogonality={:.3g}", found.residual,
                                    found.orthogonality)
                      : "");
  }
  return found.is_rounding() ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"QR factorization rate on devices"};
  app.add_option("-m,--m", options.m, "rows; left out: as many as columns")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("-n,--n", options.n, "columns")->check(CLI::Range(1, 1 << 20));
  app.add_option("--inner", options.inner, "columns of a block of reflectors");
  app.add_option("--virtual", options.virtual_tiles, "tiles of a virtual tile");
  app.add_option("--tree", options.tree, "flat, binomial");
  heddle::add_device_options(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.m == 0) options.m = options.n;
  return heddle::run_on_node(heddle::configuration(options), options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
