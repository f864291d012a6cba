/// How fast are many Cholesky factorizations that are in flight together on a node with devices?
/// All are submitted at once; prints one line, as peer_cusolver_many does.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "bench/device_run.hpp"
#include "bench/random_check.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

struct Options : DeviceOptions {
  std::int64_t n = 4096;
  int count = 64;
};

/// Waits for all, the failed ones too; throws Error(internal) if one failed.
void wait_for(std::vector<Job>& jobs) {
  std::int64_t failed = 0;
  for (Job& job : jobs) failed += job.wait().status != JobResult::Status::done ? 1 : 0;
  jobs.clear();
  if (failed > 0) throw Error(ErrorCode::internal, fmt::format("{} jobs failed\n", failed));
}

int run(const Options& options, Node& node) {
  const MatrixSpec spec(options.n, options.n, Storage::lower);
  const Matrix<double> input = node.matrix<double>(spec);
  Matrix<double>(input).for_each_tile(spd_fill(input.layout()));
  std::vector<Matrix<double>> matrices;
  for (int k = 0; k < options.count; ++k) matrices.push_back(node.matrix<double>(spec));

  std::vector<double> seconds;
  std::vector<Job> jobs;
  for (int r = -options.warm_up; r < options.repetitions; ++r) {
    for (const Matrix<double>& a : matrices) jobs.push_back(node.submit(copy_job(a, input)));
    wait_for(jobs);
    node.barrier();
    const double start = now();
    for (const Matrix<double>& a : matrices) jobs.push_back(node.submit(cholesky(a)));
    wait_for(jobs);
    if (r >= 0) seconds.push_back(now() - start);
  }
  std::sort(seconds.begin(), seconds.end());

  double residual = 0;
  if (options.check) {
    const Columns x = random_columns(options.n);
    const Columns expected = product(input, x, Operand::symmetric);
    for (const Matrix<double>& a : matrices) {
      const Columns actual = product(a, product(a, x, Operand::lower_transposed), Operand::lower);
      const double here = distance(expected, actual).scaled(static_cast<double>(options.n));
      residual = here <= residual ? residual : here;
    }
  }
  if (node.rank() == 0) {
    const double flops = cholesky_flops(static_cast<double>(options.n)) * options.count;
    fmt::print(
        "peer=heddle op=many_cholesky n={} count={} nb={} nodes={} gpus={} backend={} "
        "gflops_median={:.2f} gflops_best={:.2f} seconds={:.5f}{}\n",
        options.n, options.count, input.layout().tile, node.size(), node.facts().devices,
        node.facts().device_backend, flops * 1e-9 / seconds[seconds.size() / 2],
        flops * 1e-9 / seconds.front(), seconds[seconds.size() / 2],
        options.check ? fmt::format(" residual={:.3g}", residual) : "");
  }
  return residual < 10 ? 0 : 1;  // 1 for what is no number
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  heddle::Options options;
  CLI::App app{"Rate of many Cholesky factorizations in flight together on devices"};
  app.add_option("-n,--n", options.n, "order of each")->check(CLI::Range(1, 1 << 20));
  app.add_option("--count", options.count, "matrices")->check(CLI::Range(1, 10000));
  heddle::add_device_options(app, options);
  CLI11_PARSE(app, argc, argv);
  return heddle::run_on_node(heddle::configuration(options), options.nodes_run,
                             [&](heddle::Node& node) { return heddle::run(options, node); });
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
