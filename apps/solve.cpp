#include "apps/solve.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/io/trace_file.hpp"
#include "apps/output_file.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/seen_inputs.hpp"
#include "apps/solver.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {
namespace {

/// How long a failed node may take to tell the others and to end its threads.
constexpr std::chrono::seconds leaving_time_max{5};

/// How the user has named the trace.
const char* name_of_trace(const SolveOptions& options) {
  return options.trace ? "--trace" : "trace.file";
}

/// What the run writes, by what it is called in messages.
std::map<std::string, std::string> written_files(const SolveOptions& options,
                                                 const Config& config) {
  std::map<std::string, std::string> files;
  const auto add = [&](const char* name, const std::optional<std::string>& path) {
    if (path) files[name] = *path;
  };
  add("--report", options.report);
  add(name_of_trace(options), config.trace.file);
  add("logging.file", config.logging.file);
  add("problem.output.solution", config.problem->output.solution);
  add("problem.output.factor", config.problem->output.factor);
  add("problem.output.q", config.problem->output.q);
  return files;
}

void check_trace_writable(const std::string& path) {
  if (is_chrome_trace(path)) return check_writable(path);
  check_run_writable(path);
}

void check_written_files(const SolveOptions& options, const Config& config, std::int32_t rank) {
  std::map<std::string, std::string> uses;  // by file
  const auto use = [&](const std::string& name, const std::string& path) {
    const std::string file = std::filesystem::absolute(path).lexically_normal().string();
    const auto [other, is_new] = uses.emplace(file, name);
    if (is_new) return;
    throw Error(ErrorCode::usage, fmt::format("{}: would overwrite '{}', which {} uses; choose "
                                              "another name",
                                              name, path, other->second));
  };
  if (const auto& file = config.problem->matrix.file) use("problem.matrix.file", *file);
  if (const auto& rhs = config.problem->rhs; rhs && rhs->file) {
    uses.emplace(std::filesystem::absolute(*rhs->file).lexically_normal().string(),
                 "problem.rhs.file");
  }
  const std::string trace_name = name_of_trace(options);
  for (const auto& [name, path] : written_files(options, config)) {
    use(name, path);
    if (rank != 0) continue;
    try {
      name == trace_name ? check_trace_writable(path) : check_writable(path);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", name, error.what()));
    }
  }
}

/// Everything that can be known to be wrong before a node exists.
struct Preparation {
  Config config;
  std::unique_ptr<Problem> problem;
  std::shared_ptr<spdlog::logger> log;
  bool is_configured = false;  ///< the configuration was read
  bool may_report = false;     ///< the report's name was checked

  void run(const SolveOptions& options, const Launcher& launcher) {
    config = Config::from_file(options.file, options.overrides);
    static_cast<void>(config.require_problem());
    is_configured = true;
    if (options.trace) config.trace.file = options.trace;
    check_written_files(options, config, launcher.rank);
    may_report = true;
    problem = std::make_unique<Problem>(*config.problem);
    log = make_log(config.logging, options.verbosity, launcher.rank, launcher.size);
  }
};

void save_report(const Report& report, const SolveOptions& options, Run& run) {
  if (!options.report || options.dry_run || run.launcher().rank != 0) return;
  const TemporaryName name(run.janitor(), report_temporary_path(*options.report));
  write_report(report, *options.report);
}

/// The report of a run that failed before it had figures, if it can be written at all.
void save_failure(Report report, const std::string& message, const SolveOptions& options,
                  Run& run) {
  report.status = RunStatus::failed;
  report.hint = message;
  try {
    save_report(report, options, run);
  } catch (const Error&) {
    // The failure itself is what the user has to hear of; it may be the report's folder.
  }
}

/// This node cannot go on, or another one has failed: tells the others, ends the threads within a
/// bounded time, and leaves without waiting for anybody.
[[noreturn]] void fall(Node& node, const Error& reason, Solver& solver, const SolveOptions& options,
                       Run& run) {
  node.engine().fail(reason);
  const Error error = node.engine().failure().value_or(reason);
  const int status = exit_status(run.interrupted() ? ErrorCode::interrupted : error.code());
  if (!run.interrupted()) {
    run.complain(error.what());
    // After the loss of a node nothing may be left under a final name.
    if (error.code() != ErrorCode::communication && error.code() != ErrorCode::interrupted) {
      save_failure(solver.report(), error.what(), options, run);
    }
  }
  std::mutex mutex;
  std::condition_variable stopped;
  bool is_stopped = false;
  std::thread stopping = start_thread("the node's end", [&] {
    try {
      node.stop();
    } catch (const std::exception& failure) {
      run.complain(failure.what());
    }
    const std::lock_guard lock(mutex);
    is_stopped = true;
    stopped.notify_all();
  });
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, leaving_time_max, [&] { return is_stopped; });
  stopping.detach();
  solver.abandon_trace();
  run.leave(status);
}

int finish(const Report& report, const std::vector<std::string>& explanations,
           const SolveOptions& options, Run& run) {
  save_report(report, options, run);
  if (options.dry_run) return 0;
  const bool first = run.launcher().rank == 0;
  if (first && options.verbosity != Verbosity::quiet) {
    const std::string table = fmt::format("\n{}", final_table(report));
    static_cast<void>(std::fwrite(table.data(), 1, table.size(), stdout));
    if (!explanations.empty()) fmt::print("\nMessages to node 0, of each kind:\n");
    for (const std::string& text : explanations) fmt::print("{}\n", text);
    static_cast<void>(std::fflush(stdout));
  }
  if (first && report.status != RunStatus::ok) print_error(report.hint);
  switch (report.status) {
    case RunStatus::ok:
      return 0;
    case RunStatus::not_positive_definite:
    case RunStatus::rank_deficient:
      return exit_status(ErrorCode::numerical);
    case RunStatus::failed:
      break;
  }
  return exit_status(ErrorCode::internal);
}

int solve_on(Node& node, Preparation& preparation, const SolveOptions& options, Run& run) {
  Solver solver(run, options, preparation.config, *preparation.problem, node, *preparation.log);
  try {
    solver.solve();
    // Only node 0 writes the report; what goes wrong there is everybody's end.
    std::optional<Error> trouble;
    int status = 0;
    try {
      status = finish(solver.report(), node.explained_messages(), options, run);
    } catch (const Error& error) {
      trouble = error;
    }
    agree(node, trouble);
    return status;
  } catch (const AgreedError& error) {
    save_failure(solver.report(), error.what(), options, run);
    throw;
  } catch (const Error& error) {
    fall(node, error, solver, options, run);
  } catch (const std::exception& error) {
    fall(node, as_error(error), solver, options, run);
  }
}

}  // namespace

int solve(const SolveOptions& options, Run& run) {
  Preparation preparation;
  std::unique_ptr<Node> node;
  try {
    std::optional<Error> trouble;
    try {
      preparation.run(options, run.launcher());
    } catch (const Error& error) {
      trouble = error;
    }
    // Before what one of them found wrong: it may have read something else than the others.
    compare_inputs(run.mpi(), preparation.is_configured ? &preparation.config : nullptr);
    run.mpi().throw_together(trouble);
    node = run.mpi().active() ? std::make_unique<Node>(preparation.config, MPI_COMM_WORLD)
                              : std::make_unique<Node>(preparation.config);
  } catch (const Error& error) {
    if (preparation.may_report) save_failure({}, error.what(), options, run);
    throw;
  }
  return solve_on(*node, preparation, options, run);
}

}  // namespace heddle
