#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fmt/core.h>
#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

#include "algorithms/io/trace_file.hpp"
#include "base/error.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// What heddle's own drivers share.
namespace heddle {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Between -0.5 and 0.5, from a cheap hash of the position.
inline double hashed(std::int64_t i, std::int64_t j) {
  auto h = static_cast<std::uint64_t>(i) << 32 ^ static_cast<std::uint64_t>(j);
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11) * 0x1p-53 - 0.5;
}

/// Calls `run` with a node alone, or with one of those that mpiexec has started; its exit status.
template <class Run>
int run_on_node(const Config& config, bool is_one_of_several, const Run& run) {
  if (!is_one_of_several) {
    Node node(config);
    return run(node);
  }
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  {
    Node node(config, MPI_COMM_WORLD);
    status = run(node);
    node.stop();
  }
  MPI_Finalize();
  return status;
}

/// The options of every factorization driver.
struct RunOptions {
  int repetitions = 5;
  int warm_up = 1;
  std::string trace;
  bool check = false;
  bool nodes_run = false;
};

inline void add_run_options(CLI::App& app, RunOptions& options) {
  app.add_option("--repetitions", options.repetitions, "timed runs")->check(CLI::Range(1, 1000));
  app.add_option("--warm-up", options.warm_up, "runs before them");
  app.add_option("--trace", options.trace, "record a trace of all runs, and write it");
  app.add_flag("--check", options.check, "see whether the factors are right; not timed");
  app.add_flag("--nodes-run", options.nodes_run, "one of several processes under mpiexec");
}

/// Records what the node does from here on, to be finished when all is done; null when that was not
/// asked for. Collective.
[[nodiscard]] inline std::unique_ptr<TraceFile> recording(Node& node, const RunOptions& options) {
  if (options.trace.empty()) return nullptr;
  return std::make_unique<TraceFile>(node, options.trace, "null");
}

/// Seconds that this node's threads have spent in kernels (workers and device managers) and in
/// copies, by the clock, and that all of them have computed.
struct Work {
  double kernels = 0;
  double copies = 0;
  double processor = 0;
};

inline Work work_of(const Node& node) {
  Work work;
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  work.processor = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  for (const ThreadReport& thread : NodeInternals(node).threads()) {
    const bool computes = thread.role.starts_with("worker") || thread.role.starts_with("device");
    if (computes) work.kernels += thread.busy_seconds;
    if (thread.role == "copy") work.copies += thread.busy_seconds;
  }
  return work;
}

/// What the timed runs of a job gave.
struct Timings {
  std::vector<double> seconds;  ///< sorted
  Work work;                    ///< of one run on average, on this node
  std::int64_t sends = 0;       ///< of the last run, on this node
  std::int32_t job = -1;        ///< of the last run

  [[nodiscard]] double best() const { return seconds.front(); }
  [[nodiscard]] double median() const { return seconds[seconds.size() / 2]; }
};

/// Runs the job that `make()` describes, `options.repetitions` times after those to warm up;
/// `prepare()` comes before each run and is not timed. Throws Error(internal) when the job fails.
template <class Prepare, class Make>
Timings time_job(Node& node, const RunOptions& options, const Prepare& prepare, const Make& make) {
  Timings timings;
  for (int r = -options.warm_up; r < options.repetitions; ++r) {
    prepare();
    node.barrier();
    const Work before = work_of(node);
    const double start = now();
    Job job = node.submit(make());
    const JobResult result = job.wait();
    const double seconds = now() - start;
    if (result.status != JobResult::Status::done) {
      throw Error(ErrorCode::internal,
                  fmt::format("the factorization failed, info {}\n", result.info));
    }
    timings.sends = JobInternals(job).counters().sends;
    timings.job = JobInternals(job).number();
    if (r < 0) continue;
    timings.seconds.push_back(seconds);
    const Work after = work_of(node);
    timings.work.kernels += (after.kernels - before.kernels) / options.repetitions;
    timings.work.copies += (after.copies - before.copies) / options.repetitions;
    timings.work.processor += (after.processor - before.processor) / options.repetitions;
  }
  std::sort(timings.seconds.begin(), timings.seconds.end());
  return timings;
}

/// Says in a trace which job was timed last: fillings and checks are jobs, too.
inline std::string about(const Timings& timings) {
  return fmt::format("{{\"job\": {}}}", timings.job);
}

/// The figures at the end of a driver's line.
inline std::string figures(double flops, const Timings& timings) {
  return fmt::format(
      "gflops_median={:.2f} gflops_best={:.2f} seconds={:.5f} kernel_seconds={:.5f} "
      "copy_seconds={:.5f} processor_seconds={:.5f}",
      flops * 1e-9 / timings.median(), flops * 1e-9 / timings.best(), timings.median(),
      timings.work.kernels, timings.work.copies, timings.work.processor);
}

}  // namespace heddle
