#include <CLI/CLI.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string>

#include "apps/analyze.hpp"
#include "apps/bench_p2p.hpp"
#include "apps/command_line.hpp"
#include "apps/doctor.hpp"
#include "apps/option_checks.hpp"
#include "apps/replay.hpp"
#include "apps/simulate.hpp"
#include "apps/tools.hpp"
#include "apps/trace_export.hpp"
#include "apps/tune.hpp"

namespace heddle {
namespace {

void add_tune(CLI::App& app, TuneOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("tune", std::string(purpose_of("tune")));
  command->add_option("--output", o.output, "write it there instead of the default place")
      ->type_name("FILE.yaml")
      ->check(option_checks::written());
  command->add_option("--seconds", o.seconds, "to measure for")
      ->capture_default_str()
      ->check(option_checks::number(1, 120));
  add_overrides(*command, o.overrides,
                "a key of configuration files: runtime.devices, runtime.cpu_workers, machine; may "
                "be given many times");
  add_verbosity(*command, o.verbosity);
  command->footer(
      "Alone, or on two nodes and more, which measures messages too: mpiexec.mpich -n 2 heddle "
      "tune\nNothing else should run on the machine meanwhile.\n\nExit status: 0 the file is "
      "written, 1 internal failure, 2 bad usage, 130 interrupted.");
  command->callback([&o, &work] {
    work = [&o](Run& run) {
      tune(o, run);
      return 0;
    };
  });
}

void add_doctor(CLI::App& app, DoctorOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("doctor", std::string(purpose_of("doctor")));
  command->add_option("--report", o.report, "write the same there")
      ->type_name("FILE.json")
      ->check(option_checks::written());
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
  command->callback([&o, &work] { work = [&o](Run& run) { return doctor(o, run); }; });
}

void add_bench(CLI::App& app, BenchP2pOptions& o, Work& work) {
  CLI::App* bench = app.add_subcommand("bench", std::string(purpose_of("bench")));
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "p2p", "latency and bandwidth of messages between two nodes, from and to hosts and devices");
  command->add_option("--report", o.report, "write the same there")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  add_overrides(*command, o.overrides,
                "a key of configuration files: runtime.devices; may be given many times");
  add_verbosity(*command, o.verbosity);
  command->add_option("--path", o.path,
                      "eager, message, shared, get, put or ring, wherever it can be");
  command->add_flag("--explain", o.explains,
                    "say how each message comes, and why not otherwise; with -v its fragments too");
  command->add_flag("--apart", o.apart, "share nothing, as nodes of different hosts");
  command->add_option("--only", o.only, "rows that contain it: 'device-device', 'triangle'");
  command->add_option("--bytes-max", o.bytes_max, "largest message")
      ->check(option_checks::whole(1));
  command->add_option("-n,--orders", o.orders, "of matrices")
      ->check(option_checks::whole(1, 1'000'000'000));
  command->add_option("--ring-piece", o.ring_piece_bytes, "bytes of a slot of path ring")
      ->check(option_checks::whole(4096, std::int64_t{1} << 30U))
      ->capture_default_str();
  command->add_option("--ring-slots", o.ring_slots, "slots of a message of path ring")
      ->check(option_checks::whole(1, 64))
      ->capture_default_str();
  command->add_option("--window", o.window, "messages under way together, at most")
      ->check(option_checks::whole(2, 256))
      ->capture_default_str();
  command->add_option("--repetitions", o.repetitions, "timings of each")
      ->check(option_checks::whole(1, 1000));
  command->add_option("--seconds", o.seconds, "least time of one timing")
      ->check(option_checks::number(0));
  command->footer(
      "On two nodes: mpiexec.mpich -n 2 heddle bench p2p\n\nExit status: 0 all messages arrived as "
      "they should, 1 some did not, 2 bad usage\nor configuration, 4 a node or its communication "
      "failed.");
  command->callback([&o, &work] { work = [&o](Run& run) { return bench_p2p(o, run); }; });
}

void add_analyze(CLI::App& app, AnalyzeOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("analyze", std::string(purpose_of("analyze")));
  command->add_option("runs", o.runs, "what heddle solve --trace has written")
      ->required()
      ->type_name("RUN");
  command->add_option("--job", o.job, "which of the run's jobs; the factorization, unless given")
      ->check(option_checks::whole(0, std::numeric_limits<std::int32_t>::max()));
  command->add_option("--report", o.report, "write the same there")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  command
      ->add_option("--html", o.html,
                   "write a page for a browser there, with a timeline; several runs side by side")
      ->type_name("FILE.html")
      ->check(option_checks::written());
  command->footer(
      "Of a run's folder, or the file of one node. Several runs are put side by side, with what "
      "changed\nagainst the first. What is cut, damaged or missing is named, and the rest is "
      "read.\n\nExit status: 0 all is there, 1 part of a trace could not be read, 2 bad usage, or "
      "nothing\ncould.");
  command->callback([&o, &work] { work = [&o](Run& run) { return analyze(o, run.results()); }; });
}

/// What simulate and replay have in common.
void add_prediction(CLI::App& command, PredictionOptions& o) {
  add_overrides(command, o.overrides,
                "change one key of the problem, or of the machine (machine.nodes=4)");
  command
      .add_option("--sweep", o.sweeps,
                  "several values of such a key, as a table; may be given many times: all "
                  "combinations, at most 1000")
      ->type_name("KEY.PATH=VALUE,VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--policies", o.policies,
                   "compare rules of priorities, and windows of several sizes");
  command
      .add_option("--seed", o.seed,
                  "of what is drawn: times of kernels with noise, random priorities, workers' "
                  "paces (1)")
      ->check(option_checks::whole(0));
  command
      .add_option("--repeat", o.repeat,
                  "simulate with so many seeds, and tell the median and where 90 % of them lie "
                  "(9 where a run's paces are drawn and tasks are few, else 1)")
      ->check(option_checks::whole(1, 1000));
  command.add_option("--report", o.report, "write the figures there")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  command.add_option("--picture", o.picture, "draw what --sweep or --policies compares")
      ->type_name("FILE.svg")
      ->check(option_checks::written());
  command.add_option("--trace", o.trace, "write the trace there, for heddle analyze")
      ->type_name("RUN")
      ->check(option_checks::written());
}

/// Behind the exit status.
constexpr const char* prediction_help =
    "\n\nRules to compare, for --set and --sweep:\n"
    "  runtime.priorities  program (the program's own), fifo, reverse, random, or path: the\n"
    "                      longest way to the end first, by kernels' times and transfers\n"
    "  runtime.window      tasks that a node looks ahead (8192)\n\nNoise, likewise:\n"
    "  machine.kernels.noise  standard deviation over mean of kernels' times, log-normal (0);\n"
    "                         recorded: drawn from those of the run that is replayed";

void add_simulate(CLI::App& app, SimulateOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("simulate", std::string(purpose_of("simulate")));
  command->add_option("file", o.file, "the problem, YAML, as for heddle solve")
      ->required()
      ->type_name("FILE.yaml");
  command
      ->add_option("--machine", o.machine,
                   "the machine (config/machines); this one with measured kernels, unless given")
      ->type_name("MACHINE.yaml");
  add_prediction(*command, o);
  command->footer(
      fmt::format("Exit status: 0 simulated, 2 bad usage or input.{}", prediction_help));
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return simulate_problem(o, run.results()); }; });
}

void add_replay(CLI::App& app, ReplayOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("replay", std::string(purpose_of("replay")));
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
      prediction_help));
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return replay_run(o, run.results()); }; });
}

void add_trace(CLI::App& app, TraceExportOptions& o, Work& work) {
  CLI::App* trace = app.add_subcommand("trace", std::string(purpose_of("trace")));
  trace->require_subcommand(1);
  CLI::App* command = trace->add_subcommand("export", "write a run's trace for other programs");
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
  command->add_option("--output", o.output, "the file to write")
      ->required()
      ->type_name("FILE")
      ->check(option_checks::written());
  command->footer(
      "Exit status: 0 all is there, 1 part of the trace could not be read, 2 bad usage, or nothing "
      "could.");
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return export_trace(o, run.results()); }; });
}

}  // namespace
}  // namespace heddle

/// The commands of tools.hpp. Started by `heddle COMMAND`.
int main(int count, char** words) {
  using namespace heddle;
  TuneOptions tune_options;
  DoctorOptions doctor_options;
  BenchP2pOptions bench_options;
  AnalyzeOptions analyze_options;
  SimulateOptions simulate_options;
  ReplayOptions replay_options;
  TraceExportOptions export_options;
  return run_program(count, words, [&](CLI::App& app, Work& work) {
    add_tune(app, tune_options, work);
    add_doctor(app, doctor_options, work);
    add_bench(app, bench_options, work);
    add_analyze(app, analyze_options, work);
    add_simulate(app, simulate_options, work);
    add_replay(app, replay_options, work);
    add_trace(app, export_options, work);
  });
}
