/// How fast is the Cholesky factorization on a node with devices? Prints one line per figure, as
/// the peers do; bench/run-gpu puts them side by side.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <string>

#include "algorithms/cholesky/cholesky.hpp"
#include "bench/device_run.hpp"
#include "bench/random_check.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

struct Options : DeviceOptions {
  std::int64_t n = 16384;
};

int run(const Options& options, Node& node) {
  MatrixSpec spec(options.n, options.n, Storage::lower);
  const Matrix<double> a = node.matrix<double>(spec);
  Input input(a, options.regenerate, spd_fill(a.layout()));
  const Columns x = random_columns(options.check ? options.n : 0);
  const Columns expected =
      options.check ? product(input.content(), x, Operand::symmetric) : Columns(0);
  const std::unique_ptr<TraceFile> trace = recording(node, options);
  const Timings timings = time_job(
      node, options, [&] { input.restore(); }, [&] { return cholesky(a); });
  double residual = 0;
  if (options.check) {
    const Columns actual = product(a, product(a, x, Operand::lower_transposed), Operand::lower);
    residual = distance(expected, actual).scaled(static_cast<double>(options.n));
  }
  if (trace) trace->finish(about(timings));
  if (node.rank() == 0) {
    fmt::print(
        "peer=heddle op=cholesky n={} nb={} strip={} small={} nodes={} workers={} gpus={} "
        "backend={} {}{}\n",
        options.n, a.layout().tile, a.layout().strip, a.layout().small, node.size(),
        node.facts().cpu_workers, node.facts().devices, node.facts().device_backend,
        figures(cholesky_flops(static_cast<double>(options.n)), timings),
        options.check ? fmt::format(" residual={:.3g}", residual) : "");
  }
  return residual < 10 ? 0 : 1;  // 1 for what is no number
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"Cholesky factorization rate on devices"};
  app.add_option("-n,--n", options.n, "order")->check(CLI::Range(1, 1 << 20));
  heddle::add_device_options(app, options);
  CLI11_PARSE(app, argc, argv);
  return heddle::run_on_node(heddle::configuration(options), options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
