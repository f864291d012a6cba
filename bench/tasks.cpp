/// What does the runtime cost per task when the kernels do nothing? Empty tasks without and with
/// three tile accesses through the real threads; the cost of generating alone; the walk of a 100 x
/// 100 tile Cholesky on a simulated 64-node grid, compared with an even share of all tasks.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fmt/core.h>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "base/median.hpp"
#include "bench/node_run.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/plan_listener.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using protocol::Access;

/// Seconds that this thread has computed, whatever else the machine does.
double cpu_now() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t nothing(const KernelArguments& /*arguments*/) {
  return 0;
}
constexpr Kernel empty_kernel{.name = "empty", .host = nothing, .emulated = nothing};

/// Every task writes a tile of its own, as often as there are tiles.
Program independent(TaskStream& tasks, Matrix<double> matrix, std::int64_t count) {
  const std::int32_t tiles = matrix.layout().tile_rows();
  for (std::int64_t t = 0; t < count; ++t) {
    co_await tasks.insert(
        empty_kernel,
        {write(matrix(TileRow{static_cast<std::int32_t>(t % tiles)}, TileColumn{0}))});
  }
}

/// Like a matrix product: two shared inputs, one of many accumulators.
Program three_accesses(TaskStream& tasks, Matrix<double> matrix, std::int64_t count) {
  const auto tile = [&](std::int64_t i) {
    return matrix(TileRow{static_cast<std::int32_t>(i)}, TileColumn{0});
  };
  for (std::int64_t t = 0; t < count; ++t) {
    co_await tasks.insert(empty_kernel, {read_write(tile(32 + t % 224)), read(tile(t % 16)),
                                         read(tile(16 + (t * 7 + 3) % 16))});
  }
}

struct Measured {
  double us_median;
  double us_best;
};

Measured measure(Node& node, const Matrix<double>& matrix, bool three, std::int64_t count,
                 int repetitions) {
  std::vector<double> times;
  for (int r = -1; r < repetitions; ++r) {
    JobSpec spec;
    spec.name = "empty tasks";
    spec.matrices = {matrix.id()};
    spec.keep_alive = {matrix.state()};
    spec.program = [&](TaskStream& tasks) {
      return three ? three_accesses(tasks, matrix, count) : independent(tasks, matrix, count);
    };
    Job job = node.prepare(std::move(spec));  // the plan's walk is not the runtime's cost
    const double start = now();
    job.start();
    job.wait();
    if (r >= 0) times.push_back((now() - start) * 1e6 / static_cast<double>(count));
  }
  return {median(times), *std::min_element(times.begin(), times.end())};
}

/// The protocol alone on one thread: append a window, finish it, and so on.
void generation(std::int64_t count) {
  protocol::Protocol node({NodeId{0}, 1});
  protocol::MatrixOptions matrix;
  matrix.tile_count = 256;
  matrix.pools = {0};
  const protocol::MatrixId id = node.add_matrix(matrix);
  constexpr std::int32_t window = 4096;
  protocol::Job& job =
      node.begin_job({.window = window, .pools = {{1, 0, 0}}, .readers = {}, .route = {}});
  protocol::Actions actions;
  const auto access = [&](std::int64_t tile, protocol::AccessMode mode, std::int32_t home) {
    return Access{
        {id, static_cast<std::int32_t>(tile)}, {NodeId{home}, host_place}, mode, Version{0}};
  };
  double append = 0;
  double finish = 0;
  std::size_t bytes = 0;
  for (std::int64_t t = 0; t < count;) {
    const double start = now();
    for (; t < count && !job.window_is_full(); ++t) {
      std::array<Access, 3> accesses{access(32 + t % 224, protocol::AccessMode::read_write, 0),
                                     access(t % 16, protocol::AccessMode::read, 0),
                                     access(16 + (t * 7 + 3) % 16, protocol::AccessMode::read, 0)};
      accesses[0].version = protocol::count_here;
      node.append(job, {}, 0, accesses, actions);
    }
    const double middle = now();
    bytes = std::max(bytes, node.bytes());
    std::vector<protocol::Task*> ready;
    while (!actions.ready.empty()) {
      ready.swap(actions.ready);
      actions.clear();
      for (protocol::Task* task : ready) node.task_finished(*task, actions);
      ready.clear();
    }
    append += middle - start;
    finish += now() - middle;
  }
  const double start = now();
  for (std::int64_t t = 0; t < count; ++t) {
    const std::array<Access, 3> elsewhere{access(t % 224, protocol::AccessMode::read_write, 1),
                                          access(t % 16, protocol::AccessMode::read, 1),
                                          access(16 + t % 16, protocol::AccessMode::read, 1)};
    node.append(job, {}, 0, elsewhere, actions);
  }
  const double skip = now() - start;
  const auto per = [&](double seconds) { return seconds * 1e9 / static_cast<double>(count); };
  fmt::print(
      "peer=heddle op=protocol ns_append={:.1f} ns_finish={:.1f} ns_skip={:.1f} "
      "bytes_per_task={:.0f}\n",
      per(append), per(finish), per(skip), static_cast<double>(bytes) / window);
  node.end_generation(job, actions);
}

/// Walks a Cholesky of `tiles` tiles for each node of a grid, with the plan as the listener, and
/// counts what each visits.
void pruned_walk(Node& node, std::int32_t tiles, std::int32_t rows, std::int32_t columns) {
  MatrixSpec spec(tiles, tiles, Storage::lower);
  spec.layout.tile = 1;
  spec.distribution = {rows, columns, 0};
  const Matrix<double> a = node.matrix<double>(spec);
  const JobSpec job = cholesky(a);
  const double all = static_cast<double>(tiles) * (tiles + 1) * (tiles + 2) / 6;
  double worst = 0;
  double total = 0;
  double seconds_worst = 0;
  for (std::int32_t n = 0; n < rows * columns; ++n) {
    protocol::PoolPlan plan(NodeId{n}, 1);
    PlanListener listener(plan);
    TaskStream stream(listener, NodeId{n});
    Program program = job.program(stream);
    const double start = cpu_now();
    while (program.resume()) {
    }
    seconds_worst = std::max(seconds_worst, cpu_now() - start);
    const auto walked = static_cast<double>(plan.walked());
    worst = std::max(worst, walked);
    total += walked;
  }
  const double share = all / (rows * columns);
  fmt::print(
      "peer=heddle op=pruned_walk tiles={} nodes={} all={:.0f} "
      "ratio_worst={:.2f} ratio_mean={:.2f} ns_walk_worst={:.1f}\n",
      tiles, rows * columns, all, worst / share, total / (rows * columns) / share,
      seconds_worst * 1e9 / share);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  int workers = 2;
  int repetitions = 5;
  std::int64_t tasks = 200000;
  bool traced = false;
  CLI::App app{"Cost of empty tasks"};
  app.add_option("--workers", workers, "CPU workers");
  app.add_option("--repetitions", repetitions, "timed runs");
  app.add_option("--tasks", tasks, "tasks of a run");
  app.add_flag("--trace", traced, "with the trace on; empty tasks alone");
  CLI11_PARSE(app, argc, argv);
  // Nobody writes the file: this measures recording.
  const heddle::Config config = heddle::Config::from_text(
      fmt::format("runtime: {{cpu_workers: {}, devices: {{backend: none}}}}\n{}", workers,
                  traced ? "trace: {file: unwritten.json}\n" : ""),
      "tasks");
  heddle::Node node(config);
  heddle::MatrixSpec spec(4096, 1);
  spec.layout.tile = 1;
  const auto matrix = node.matrix<double>(spec);
  for (const bool three : {false, true}) {
    const heddle::Measured m = heddle::measure(node, matrix, three, tasks, repetitions);
    fmt::print(
        "peer=heddle{} op=tasks kind={} workers={} tasks={} us_median={:.3f} us_best={:.3f}\n",
        traced ? "-traced" : "", three ? "three_handles" : "independent", workers, tasks,
        m.us_median, m.us_best);
  }
  if (traced) return 0;
  heddle::generation(tasks);
  heddle::pruned_walk(node, 100, 8, 8);
  return 0;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
