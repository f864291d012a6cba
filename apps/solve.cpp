#include "apps/solve.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/io/trace_file.hpp"
#include "apps/file_uses.hpp"
#include "apps/gpu_need.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/seen_inputs.hpp"
#include "apps/solver.hpp"
#include "base/process_limits.hpp"
#include "config/problem.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {
namespace {

/// Time for a failed node to notify the others and end its threads.
constexpr std::chrono::seconds leaving_time_max{5};

/// Files that the run reads and writes, with their names in messages.
FileUses files_of(const SolveOptions& options, const Config& config) {
  FileUses files;
  const auto reads = [&](const char* name, const std::optional<std::string>& path) {
    if (path) files.reads(name, *path);
  };
  const auto writes = [&](const char* name, const std::optional<std::string>& path) {
    if (path) files.writes(name, *path);
  };
  files.reads("the problem file", options.file);
  reads("problem.matrix.file", config.problem->matrix.file);
  if (config.problem->rhs) reads("problem.rhs.file", config.problem->rhs->file);
  files.reads_machine_file(config.machine);
  writes("--report", options.report);
  writes("logging.file", config.logging.file);
  writes("problem.output.solution", config.problem->output.solution);
  writes("problem.output.factor", config.problem->output.factor);
  writes("problem.output.q", config.problem->output.q);
  if (const auto& trace = config.trace.file) {
    const char* const name = options.trace ? "--trace" : "trace.file";
    is_chrome_trace(*trace) ? files.writes(name, *trace) : files.writes_run(name, *trace);
  }
  return files;
}

/// Results of all checks before a node exists.
struct Preparation {
  Config config;
  std::unique_ptr<Problem> problem;
  std::shared_ptr<spdlog::logger> log;
  bool is_configured = false;  ///< the configuration was read
  bool may_report = false;     ///< the report's name was checked
  std::string device_note;     ///< what the plan adds about devices

  void run(const SolveOptions& options, Run& surroundings) {
    const Launcher& launcher = surroundings.launcher();
    config = Config::from_file(options.file, options.overrides);
    static_cast<void>(config.require_problem());
    is_configured = true;
    if (options.trace) config.trace.file = options.trace;
    const FileUses files = files_of(options, config);
    files.check_distinct();
    if (launcher.rank == 0) files.check_writable(surroundings.janitor());
    may_report = true;
    problem = std::make_unique<Problem>(*config.problem);
    log = make_log(config.logging, options.verbosity, launcher.rank, launcher.size);
    // Before anything asks CUDA, for which every GPU in sight takes its time.
    const int gpus = gpus_in_sight();
    const int worth = gpus_worth_starting(config, problem->m(), problem->n(), launcher.size, gpus);
    if (worth == gpus) return;
    leave_gpus_in_sight(worth);
    device_note = fmt::format(
        "the first{} of {} GPUs: for a problem of this size the others take longer to start than "
        "they save; runtime.devices.per_node: {} takes all",
        worth == 1 ? "" : fmt::format(" {}", worth), gpus, gpus);
  }
};

/// Writes the report of a failed run, as far as known, if possible.
void save_failure(Report report, const std::string& message, const SolveOptions& options,
                  Run& run) {
  if (!options.report || options.dry_run || run.launcher().rank != 0) return;
  if (run.results().are_written()) return;  // those match their report
  report.status = RunStatus::failed;
  report.hint = message;
  try {
    run.results().discard();
    run.results().add_text(*options.report, json_text(to_json(report)));
    run.results().commit();
  } catch (const Error&) {
    // The failure itself must be shown; writing the report may have the same cause.
  }
}

/// After the results were written, adds that they are valid.
std::string with_results(const std::string& message, Run& run) {
  if (!run.results().are_written()) return message;
  return fmt::format("{}; {}", message, run.results().account());
}

/// After a failure of this or another node: notifies the others, ends the threads within a bounded
/// time, and exits without waiting.
[[noreturn]] void fall(Node& node, const Error& reason, Solver& solver, const SolveOptions& options,
                       Run& run) {
  NodeInternals(node).engine().fail(reason);
  const Error error = NodeInternals(node).engine().failure().value_or(reason);
  const int status = exit_status(run.interrupted() ? ErrorCode::interrupted : error.code());
  if (!run.interrupted()) {
    run.complain(with_results(error.what(), run));
    // After the loss of a node there is no time for a report: the launcher may kill this process.
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

/// Commits the results with the report and prints the summary. Node 0 has all files.
int finish(const Report& report, const std::vector<std::string>& explanations,
           const SolveOptions& options, Run& run) {
  if (options.dry_run) return 0;
  const bool first = run.launcher().rank == 0;
  if (first && options.report) {
    run.results().add_text(*options.report, json_text(to_json(report)));
  }
  run.results().commit();
  if (first && options.verbosity != Verbosity::quiet) {
    std::string text = fmt::format("\n{}", final_table(report));
    if (!explanations.empty()) text += "\nMessages to node 0, of each kind:\n";
    for (const std::string& explanation : explanations) text += explanation + "\n";
    print(text);
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
  Solver solver(run, options, preparation.config, *preparation.problem, node, *preparation.log,
                preparation.device_note);
  try {
    solver.solve();
    int status = 0;
    together(node, [&] {
      status = finish(solver.report(), NodeInternals(node).explained_messages(), options, run);
    });
    solver.save_trace();
    return status;
  } catch (const AgreedError& error) {
    const std::string message = with_results(error.what(), run);
    save_failure(solver.report(), error.what(), options, run);
    throw AgreedError(error.code(), message);
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
      preparation.run(options, run);
    } catch (const Error& error) {
      trouble = error;
    }
    // Before local errors are thrown: the other nodes may have read other inputs.
    compare_inputs(run.mpi(), preparation.is_configured ? &preparation.config : nullptr);
    run.mpi().throw_together(trouble);
    node = run.mpi().active() ? std::make_unique<Node>(preparation.config, MPI_COMM_WORLD)
                              : std::make_unique<Node>(preparation.config);
  } catch (const Error& error) {
    if (preparation.may_report) save_failure({}, error.what(), options, run);
    throw;
  }
  try {
    const int status = solve_on(*node, preparation, options, run);
    node->stop();
    return status;
  } catch (const AgreedError&) {
    node->stop();  // all nodes are here
    throw;
  }
}

}  // namespace heddle
