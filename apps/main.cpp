#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/analyze.hpp"
#include "apps/bench_p2p.hpp"
#include "apps/crash_handlers.hpp"
#include "apps/doctor.hpp"
#include "apps/generate.hpp"
#include "apps/launcher.hpp"
#include "apps/replay.hpp"
#include "apps/report.hpp"
#include "apps/run.hpp"
#include "apps/simulate.hpp"
#include "apps/solve.hpp"
#include "apps/trace_export.hpp"
#include "apps/tune.hpp"
#include "base/nearest.hpp"
#include "config/describe.hpp"

namespace heddle {
namespace {

using Work = std::function<int(Run&)>;

/// What the command line asks for.
struct CommandLine {
  SolveOptions solve;
  GenerateOptions generate;
  TuneOptions tune;
  DoctorOptions doctor;
  BenchP2pOptions bench_p2p;
  AnalyzeOptions analyze;
  SimulateOptions simulate;
  ReplayOptions replay;
  TraceExportOptions trace_export;
  Work work;
};

void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const char* text) {
  command.add_option("--set", overrides, text)
      ->type_name("KEY.PATH=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_verbosity(CLI::App& command, Verbosity& verbosity) {
  auto* verbose = command.add_flag_callback(
      "-v,--verbose", [&verbosity] { verbosity = Verbosity::verbose; }, "tell more");
  command
      .add_flag_callback(
          "-q,--quiet", [&verbosity] { verbosity = Verbosity::quiet; }, "tell errors only")
      ->excludes(verbose);
}

void add_solve(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("solve", "factorize, solve, check, write");
  SolveOptions& o = line.solve;
  command->add_option("file", o.file, "the problem, YAML")->required()->type_name("FILE.yaml");
  add_overrides(*command, o.overrides,
                "change one key of the file; may be given many times, the last one counts");
  command->add_option("--report", o.report, "write the report there")->type_name("FILE.json");
  command
      ->add_option(
          "--trace", o.trace,
          "write the trace there, as trace.file: a folder for heddle analyze, or FILE.json "
          "for a viewer")
      ->type_name("RUN");
  command->add_flag("--dry-run", o.dry_run, "stop after the plan");
  add_verbosity(*command, o.verbosity);
  command->footer(
      "Alone, or on P nodes: mpiexec.mpich -n P heddle solve FILE.yaml\n\nKeys of the file:\n" +
      config::option_help() +
      "\nExit status: 0 solved, 1 internal failure, 2 bad usage, configuration or input,\n3 "
      "numerical failure, 4 a node or its communication failed, 130 interrupted.");
  command->callback([&line] { line.work = [&line](Run& run) { return solve(line.solve, run); }; });
}

void add_generate(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("generate", "write a generated matrix as a NumPy file");
  GenerateOptions& o = line.generate;
  const std::string kinds = fmt::format("{}", fmt::join(generator_names(), ", "));
  const auto kind = [&o, kinds](const std::string& name) {
    const auto found = generator_kind(name);
    if (!found) {
      throw CLI::ValidationError("--kind",
                                 fmt::format("expected one of {}; found '{}'", kinds, name));
    }
    o.matrix.kind = *found;
  };
  command->add_option_function<std::string>("--kind", kind, kinds)->required()->type_name("KIND");
  command->add_option("-n", o.matrix.n, "columns")->required()->check(CLI::NonNegativeNumber);
  command->add_option("-m", o.matrix.m, "rows, n unless given");
  command->add_option("--seed", o.matrix.seed, "of all kinds that are random")
      ->capture_default_str();
  command
      ->add_option("--condition", o.matrix.condition,
                   "spd: largest over smallest eigenvalue; conditioned: singular value; graded: "
                   "scale of a column")
      ->capture_default_str();
  command->add_option("--range", o.matrix.range, "kriging: correlation length")
      ->capture_default_str();
  command->add_option("--smoothness", o.matrix.smoothness, "kriging: order of the covariance")
      ->capture_default_str();
  command->add_option("--nugget", o.matrix.nugget, "kriging: added to the diagonal")
      ->capture_default_str();
  command->add_option("--rank", o.matrix.rank,
                      "dependent: independent columns, n - 1 unless given");
  command
      ->add_option("--distance", o.matrix.distance,
                   "dependent: largest deviation from the linear dependence")
      ->capture_default_str();
  command->add_option("--matrix", o.matrix_file, "the file to write")
      ->required()
      ->type_name("OUT.npy");
  command->add_option("--rhs", o.sides, "number of right-hand sides")->type_name("COLUMNS");
  command->add_option("--right-hand-sides", o.sides_file, "the file for them")
      ->type_name("OUT.npy");
  command->add_option("--rhs-seed", o.sides_seed, "of the right-hand sides")->capture_default_str();
  command->callback([&line] {
    line.work = [&line](Run& run) {
      generate(line.generate, run);
      return 0;
    };
  });
}

void add_tune(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "tune", "measure this machine and write the machine file that sizes of tiles follow from");
  TuneOptions& o = line.tune;
  command->add_option("--output", o.output, "write it there instead of the default place")
      ->type_name("FILE.yaml");
  command->add_option("--seconds", o.seconds, "to measure for")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 120.0));
  add_overrides(*command, o.overrides,
                "a key of configuration files: runtime.devices, runtime.cpu_workers, machine; may "
                "be given many times");
  add_verbosity(*command, o.verbosity);
  command->footer(
      "Alone, or on two nodes and more, which measures messages too: mpiexec.mpich -n 2 heddle "
      "tune\nNothing else should run on the machine meanwhile.\n\nExit status: 0 the file is "
      "written, 1 internal failure, 2 bad usage, 130 interrupted.");
  command->callback([&line] {
    line.work = [&line](Run& run) {
      tune(line.tune, run);
      return 0;
    };
  });
}

void add_doctor(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "doctor", "try every way between every two places, and say what does not work and why");
  DoctorOptions& o = line.doctor;
  command->add_option("--report", o.report, "write the same there")->type_name("FILE.json");
  add_overrides(*command, o.overrides,
                "a key of configuration files: runtime.devices; may be given many times");
  add_verbosity(*command, o.verbosity);
  command->add_option("--inject", o.faults, "for tests")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("");  // not in --help
  command->footer(
      "Alone, or on P nodes: mpiexec.mpich -n P heddle doctor\n\nExit status: 0 all places reach "
      "each other, 1 some do not, 2 bad usage or\nconfiguration, 4 a node or its communication "
      "failed, 130 interrupted.");
  command->callback(
      [&line] { line.work = [&line](Run& run) { return doctor(line.doctor, run); }; });
}

void add_bench(CLI::App& app, CommandLine& line) {
  CLI::App* bench = app.add_subcommand("bench", "measure this machine with heddle's own means");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "p2p", "latency and bandwidth of messages between two nodes, from and to hosts and devices");
  BenchP2pOptions& o = line.bench_p2p;
  command->add_option("--report", o.report, "write the same there")->type_name("FILE.json");
  add_overrides(*command, o.overrides,
                "a key of configuration files: runtime.devices; may be given many times");
  add_verbosity(*command, o.verbosity);
  command->add_option("--path", o.path,
                      "eager, message, shared, get, put or ring, wherever it can be");
  command->add_flag("--explain", o.explains,
                    "say how each message comes, and why not otherwise; with -v its fragments too");
  command->add_flag("--apart", o.apart, "share nothing, as nodes of different hosts");
  command->add_option("--only", o.only, "rows that contain it: 'device-device', 'triangle'");
  command->add_option("--bytes-max", o.bytes_max, "largest message")->check(CLI::PositiveNumber);
  command->add_option("-n,--orders", o.orders, "of matrices")->check(CLI::PositiveNumber);
  command->add_option("--ring-piece", o.ring_piece_bytes, "bytes of a slot of path ring")
      ->check(CLI::Range(std::int64_t{4096}, std::int64_t{1} << 30U))
      ->capture_default_str();
  command->add_option("--ring-slots", o.ring_slots, "slots of a message of path ring")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--window", o.window, "messages under way together, at most")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  command->add_option("--repetitions", o.repetitions, "timings of each")
      ->check(CLI::Range(1, 1000));
  command->add_option("--seconds", o.seconds, "least time of one timing")
      ->check(CLI::NonNegativeNumber);
  command->footer(
      "On two nodes: mpiexec.mpich -n 2 heddle bench p2p\n\nExit status: 0 all messages arrived as "
      "they should, 1 some did not, 2 bad usage\nor configuration, 4 a node or its communication "
      "failed.");
  command->callback(
      [&line] { line.work = [&line](Run& run) { return bench_p2p(line.bench_p2p, run); }; });
}

void add_analyze(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("analyze", "tell what bounded a run, from its trace");
  AnalyzeOptions& o = line.analyze;
  command->add_option("runs", o.runs, "what heddle solve --trace has written")
      ->required()
      ->type_name("RUN");
  command->add_option("--job", o.job, "which of the run's jobs; the factorization, unless given");
  command->add_option("--report", o.report, "write the same there")->type_name("FILE.json");
  command
      ->add_option("--html", o.html,
                   "write a page for a browser there, with a timeline; several runs side by side")
      ->type_name("FILE.html");
  command->footer(
      "Of a run's folder, or the file of one node. Several runs are put side by side, with what "
      "changed\nagainst the first. What is cut, damaged or missing is named, and the rest is "
      "read.\n\nExit status: 0 all is there, 1 part of a trace could not be read, 2 bad usage, or "
      "nothing\ncould.");
  command->callback([&line] { line.work = [&line](Run&) { return analyze(line.analyze); }; });
}

/// What simulate and replay have in common.
void add_prediction(CLI::App& command, PredictionOptions& o) {
  add_overrides(command, o.overrides,
                "change one key of the problem, of the machine (machine.nodes=4), or of policies");
  command
      .add_option("--sweep", o.sweeps,
                  "several values of such a key, as a table; may be given many times: all "
                  "combinations, at most 1000")
      ->type_name("KEY.PATH=VALUE,VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--policies", o.policies,
                   "compare rules of priorities, and windows of several sizes");
  command.add_option("--seed", o.seed,
                     "of what is drawn: times of kernels with noise, random priorities, workers' "
                     "paces (1)");
  command
      .add_option("--repeat", o.repeat,
                  "simulate with so many seeds, and tell the median and where 90 % of them lie "
                  "(9 where a run's paces are drawn and tasks are few, else 1)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--report", o.report, "write the figures there")->type_name("FILE.json");
  command.add_option("--picture", o.picture, "draw what --sweep or --policies compares")
      ->type_name("FILE.svg");
  command.add_option("--trace", o.trace, "write the trace there, for heddle analyze")
      ->type_name("RUN");
}

/// Behind the exit status.
constexpr const char* policies_help =
    "\n\nPolicies, for --set and --sweep:\n"
    "  policy.priorities  program (the program's own), fifo, reverse, random, or path: the\n"
    "                     longest way to the end first, by kernels' times and transfers\n"
    "  runtime.window     tasks that a node looks ahead (8192)\n\nNoise, likewise:\n"
    "  machine.kernels.noise  standard deviation over mean of kernels' times, log-normal (0);\n"
    "                         recorded: drawn from those of the run that is replayed";

void add_simulate(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("simulate", "predict a factorization on another machine");
  SimulateOptions& o = line.simulate;
  command->add_option("file", o.file, "the problem, YAML, as for heddle solve")
      ->required()
      ->type_name("FILE.yaml");
  command
      ->add_option("--machine", o.machine,
                   "the machine (config/machines); this one with measured kernels, unless given")
      ->type_name("MACHINE.yaml");
  add_prediction(*command, o);
  command->footer(fmt::format("Exit status: 0 simulated, 2 bad usage or input.{}", policies_help));
  command->callback(
      [&line] { line.work = [&line](Run&) { return simulate_problem(line.simulate); }; });
}

void add_replay(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("replay", "walk a recorded factorization once more, or with changes");
  ReplayOptions& o = line.replay;
  command->add_option("run", o.run, "what heddle solve --trace has written")
      ->required()
      ->type_name("RUN");
  command->add_option("--machine", o.machine, "another machine (config/machines)")
      ->type_name("MACHINE.yaml");
  command
      ->add_option("--actual", o.actual,
                   "a recorded run of what the changes lead to: tells the prediction's error")
      ->type_name("RUN");
  add_prediction(*command, o);
  command->footer(fmt::format(
      "Exit status: 0 replayed, 1 part of the trace could not be read, 2 bad usage or input.{}",
      policies_help));
  command->callback([&line] { line.work = [&line](Run&) { return replay_run(line.replay); }; });
}

void add_trace(CLI::App& app, CommandLine& line) {
  CLI::App* trace = app.add_subcommand("trace", "what to do with the traces of runs");
  trace->require_subcommand(1);
  CLI::App* command = trace->add_subcommand("export", "write a run's trace for other programs");
  TraceExportOptions& o = line.trace_export;
  command->add_option("run", o.run, "what heddle solve --trace has written")
      ->required()
      ->type_name("RUN");
  const auto format = [&o](const std::string& name) {
    const auto found = trace_format(name);
    if (!found) {
      throw CLI::ValidationError(
          "--to", fmt::format("expected one of {}; found '{}'", trace_format_names(), name));
    }
    o.format = *found;
  };
  command
      ->add_option_function<std::string>(
          "--to", format,
          "perfetto: for ui.perfetto.dev and trace_processor, with all dependencies; chrome: JSON "
          "for ui.perfetto.dev and chrome://tracing; csv: a table; paje: for ViTE and pajeng")
      ->required()
      ->type_name("FORMAT");
  command->add_option("--output", o.output, "the file to write")->required()->type_name("FILE");
  command->footer(
      "Exit status: 0 all is there, 1 part of the trace could not be read, 2 bad usage, or nothing "
      "could.");
  command->callback(
      [&line] { line.work = [&line](Run&) { return export_trace(line.trace_export); }; });
}

/// The command that was given, as it is written behind the program's name: " bench p2p".
std::string commands_of(const CLI::App& app) {
  std::string commands;
  for (auto given = app.get_subcommands(); !given.empty();) {
    commands += " " + given.front()->get_name();
    given = given.front()->get_subcommands();
  }
  return commands;
}

/// What is wrong with the first word that should be a command and is none, up to the end of that
/// clause; empty where there is no such word.
std::string unknown_command(const CLI::App& app, int count, char** words) {
  const CLI::App* at = &app;
  for (int i = 1; i < count; ++i) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    const std::string_view word = words[i];
    if (commands.empty() || word.starts_with('-')) return {};
    std::vector<std::string_view> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* command : commands) {
      names.push_back(command->get_name());
      if (command->get_name() == word) found = command;
    }
    if (found == nullptr) {
      const std::string_view meant = nearest(word, names);
      return fmt::format("unknown command '{}'{}", word,
                         meant.empty() ? ";" : fmt::format("; did you mean '{}'?", meant));
    }
    at = found;
  }
  return {};
}

/// The exit status when there is nothing to do but to print; else `line.work` is set, or an error
/// is thrown.
std::optional<int> parse(int count, char** words, CommandLine& line, bool first) {
  CLI::App app("Dense factorizations on clusters whose nodes mix CPU cores and GPUs.", "heddle");
  app.set_version_flag("--version", fmt::format("heddle {}", heddle_version()));
  app.require_subcommand(1);
  add_solve(app, line);
  add_generate(app, line);
  add_tune(app, line);
  add_doctor(app, line);
  add_bench(app, line);
  add_analyze(app, line);
  add_simulate(app, line);
  add_replay(app, line);
  add_trace(app, line);
  CLI::App* schema = app.add_subcommand("schema", "print the JSON Schema of configuration files");
  app.footer("heddle COMMAND --help tells more.");
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& stop) {
    std::ostringstream out;
    std::ostringstream error;
    if (app.exit(stop, out, error) == 0) {
      if (first) static_cast<void>(std::fputs(out.str().c_str(), stdout));
      return 0;
    }
    std::string wrong = unknown_command(app, count, words);
    if (wrong.empty()) wrong = fmt::format("{};", stop.what());
    throw Error(ErrorCode::usage,
                fmt::format("{} heddle{} --help tells more", wrong, commands_of(app)));
  }
  if (schema->parsed()) {
    if (first) static_cast<void>(std::puts(config::json_schema().dump(2).c_str()));
    return 0;
  }
  return std::nullopt;
}

int run_program(int count, char** words) {
  const Launcher launcher = Launcher::detect();
  CommandLine line;
  std::optional<Error> trouble;
  try {
    if (const auto status = parse(count, words, line, launcher.rank == 0)) return *status;
  } catch (const Error& error) {
    trouble = error;
  }
  // Whatever one process finds, all know, and one tells.
  Run run(launcher);
  try {
    run.mpi().throw_together(trouble);
    return line.work(run);
  } catch (const Error& error) {
    if (run.interrupted()) run.leave(exit_status(ErrorCode::interrupted));
    if (launcher.rank == 0) print_error(error.what());
    return exit_status(error.code());
  }
}

}  // namespace
}  // namespace heddle

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);  // who reads the output decides nothing about the results
  heddle::remove_crash_handlers();
  try {
    return heddle::run_program(count, words);
  } catch (const heddle::Error& error) {
    heddle::print_error(error.what());
    return heddle::exit_status(error.code());
  } catch (const std::exception& error) {
    heddle::print_error(error.what());
    return heddle::exit_status(heddle::ErrorCode::internal);
  }
}
