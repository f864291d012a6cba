#include <CLI/CLI.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string>

#include "apps/analyze.hpp"
#include "apps/bench_collectives.hpp"
#include "apps/bench_p2p.hpp"
#include "apps/bench_virtual.hpp"
#include "apps/collective_cases.hpp"
#include "apps/collective_elements.hpp"
#include "apps/command_line.hpp"
#include "apps/doctor.hpp"
#include "apps/option_checks.hpp"
#include "apps/replay.hpp"
#include "apps/simulate.hpp"
#include "apps/tools.hpp"
#include "apps/trace_export.hpp"
#include "apps/tune.hpp"
#include "config/tree.hpp"

namespace heddle {
namespace {

void add_tune(CLI::App& app, TuneOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("tune", std::string(purpose_of("tune")));
  command->add_option("-o,--output", o.output, "the file to write, instead of the default one")
      ->type_name("FILE.yaml")
      ->check(option_checks::written());
  command->add_option("--seconds", o.seconds, "most time for measuring, 1 to 120")
      ->capture_default_str()
      ->check(option_checks::number(1, 120));
  add_overrides(*command, o.overrides,
                "runtime.devices, runtime.cpu_workers or machine, as in configuration files; "
                "repeatable");
  add_verbosity(*command, o.verbosity);
  command->footer(
      "One node, or two, which measures messages too: mpiexec.mpich -n 2 heddle tune\nNothing "
      "else should run on the machine meanwhile.\n\nExit status: 0 the file is "
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
  command->add_option("--report", o.report, "write the figures, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  add_overrides(*command, o.overrides, "runtime.devices, as in configuration files; repeatable");
  add_verbosity(*command, o.verbosity);
  command->add_option("--inject", o.faults, "for tests")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("");  // hidden in --help
  command->footer(
      "Start it like the run: mpiexec.mpich -n P heddle doctor\n\nExit status: 0 every transfer "
      "works in some way, 1 some do not, 2 bad usage or\nconfiguration, 4 a node or its "
      "communication failed, 130 interrupted.");
  command->callback([&o, &work] { work = [&o](Run& run) { return doctor(o, run); }; });
}

/// Options of collectives in virtual time.
void add_simulated_nodes(CLI::App& command, SimulatedNodes& o) {
  CLI::Option* const machine =
      command
          .add_option("--machine", o.machine,
                      "simulate a machine, as psg.yaml in config/machines, without MPI")
          ->type_name("MACHINE.yaml");
  for (const char* const of_this_machine :
       {"--set", "--datatype", "--only", "--repeat", "--seconds", "--place", "--stream",
        "--blocking", "--skew"}) {
    machine->excludes(command.get_option(of_this_machine));
  }
  command.add_option("--nodes", o.nodes, "simulated nodes, up to 10,000; several: 8,16,32 [all]")
      ->delimiter(',')
      ->check(option_checks::whole(1, 10'000))
      ->needs(machine);
  command.add_option("--map", o.map, "how nodes are dealt to hosts: by-core, by-node or random")
      ->capture_default_str()
      ->needs(machine);
  command.add_option("--maps", o.maps, "random maps, of which the median counts, 1 to 1000")
      ->check(option_checks::whole(1, 1000))
      ->capture_default_str()
      ->needs(machine);
  command.add_option("--seed", o.seed, "of the first random map")
      ->check(option_checks::whole(0))
      ->capture_default_str()
      ->needs(machine);
}

void add_bytes(CLI::App& command, BenchCollectivesOptions& o) {
  command
      .add_option_function<std::string>(
          "--bytes",
          [&o](const std::string& text) {
            const auto range = bytes_range(text);
            if (!range) {
              throw CLI::ValidationError(
                  "--bytes", fmt::format("expected SIZE or SIZE:SIZE, 8 B to 1 GiB; found '{}'",
                                         config::shown(text)));
            }
            o.bytes_min = range->min;
            o.bytes_max = range->max;
          },
          "of the smallest and of the largest block: 8:16MiB; or of all: 4KiB")
      ->type_name("SIZE[:SIZE]")
      ->excludes("--bytes-min")
      ->excludes("--bytes-max");
}

void add_bench_collectives(CLI::App& bench, BenchCollectivesOptions& o, Work& work) {
  CLI::App* command = bench.add_subcommand(
      "collectives", "operations of all nodes on memory of hosts and devices, beside MPI's own");
  command->add_option("--report", o.report, "write the figures, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  add_overrides(*command, o.overrides, "runtime, as in configuration files; repeatable");
  add_verbosity(*command, o.verbosity);
  command->add_option("--operation", o.operations, "only this one: all_reduce; repeatable");
  command->add_option("--bytes-min", o.bytes_min, "bytes of the smallest block, 8 or more")
      ->check(option_checks::whole(8))
      ->capture_default_str();
  command->add_option("--bytes-max", o.bytes_max, "of the largest")
      ->check(option_checks::whole(8, std::int64_t{1} << 30U))
      ->capture_default_str();
  command->add_option("--algorithm", o.algorithm, "as CollectiveOptions::algorithm has it");
  command->add_option("--order", o.order, "of reductions: ranks or places")
      ->check(CLI::IsMember({"ranks", "places"}));
  command->add_option("--fragment", o.fragment_bytes, "bytes of a fragment; 0: chosen")
      ->check(option_checks::whole(0));
  command
      ->add_option("--place", o.place,
                   "of the memory: host, device (the node's first), or mixed: odd nodes on devices")
      ->check(CLI::IsMember({"host", "device", "mixed"}))
      ->capture_default_str();
  command
      ->add_option("--ranks-per-device", o.ranks_per_device,
                   "nodes that share a device, or the figures are refused")
      ->check(option_checks::whole(1, 1024));
  command->add_flag("--stream,!--blocking", o.on_stream,
                    "operations of a stream of the device, which is waited for; or blocking ones");
  command
      ->add_option("--skew", o.skew_us, "microseconds that the last node begins behind the first")
      ->check(option_checks::whole(0, 1'000'000));
  command->add_option("--datatype", o.datatype, "how a block's doubles lie")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(block_kind_names), std::end(block_kind_names))))
      ->capture_default_str();
  command->add_option("--only", o.only,
                      "only rows whose operation and way contain this text: binomial, all_");
  command->add_flag("--explain", o.explains, "print what was chosen, and what else could be");
  command->add_option("--repeat", o.repetitions, "turns of heddle and MPI, 1 to 100")
      ->check(option_checks::whole(1, 100))
      ->capture_default_str();
  command->add_option("--seconds", o.seconds, "of each operation and size in a turn, seconds")
      ->check(option_checks::number(0));
  add_bytes(*command, o);
  add_simulated_nodes(*command, o.simulated);
  command->footer(
      "On four nodes: mpiexec.mpich -n 4 heddle bench collectives --operation all_reduce\n\nExit "
      "status: 0 all elements were right, 1 some were not, 2 bad usage or\nconfiguration, 4 a node "
      "or its communication failed.");
  command->callback([&o, &work] {
    work = [&o](Run& run) {
      return o.simulated.machine ? bench_virtual(o, run) : bench_collectives(o, run);
    };
  });
}

void add_bench(CLI::App& app, BenchP2pOptions& o, BenchCollectivesOptions& collectives,
               Work& work) {
  CLI::App* bench = app.add_subcommand("bench", std::string(purpose_of("bench")));
  bench->require_subcommand(1);
  add_bench_collectives(*bench, collectives, work);
  CLI::App* command = bench->add_subcommand(
      "p2p", "latency and bandwidth of messages between two nodes' hosts and devices");
  command->add_option("--report", o.report, "write the figures, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  add_overrides(*command, o.overrides, "runtime.devices, as in configuration files; repeatable");
  add_verbosity(*command, o.verbosity);
  command->add_option("--path", o.path,
                      "take this path where possible: eager, message, shared, get, put, ring");
  command->add_flag("--explain", o.explains,
                    "print the path of each message, and why not another; with -v its fragments");
  command->add_flag("--apart", o.apart, "share nothing, like nodes of different hosts");
  command->add_option("--only", o.only,
                      "only rows that contain this text: device-device, triangle");
  command->add_option("--bytes-max", o.bytes_max, "bytes of the largest message")
      ->check(option_checks::whole(1));
  command->add_option("-n,--orders", o.orders, "orders of the matrices")
      ->check(option_checks::whole(1, 1'000'000'000));
  command
      ->add_option("--ring-piece", o.ring_piece_bytes, "path ring: bytes of a slot, 4096 to 2^30")
      ->check(option_checks::whole(4096, std::int64_t{1} << 30U))
      ->capture_default_str();
  command->add_option("--ring-slots", o.ring_slots, "path ring: slots of a message, 1 to 64")
      ->check(option_checks::whole(1, 64))
      ->capture_default_str();
  command->add_option("--window", o.window, "most messages in flight, 2 to 256")
      ->check(option_checks::whole(2, 256))
      ->capture_default_str();
  command->add_option("--repeat", o.repetitions, "timings of each message, 1 to 1000")
      ->check(option_checks::whole(1, 1000));
  command->add_option("--seconds", o.seconds, "least time of one timing, seconds")
      ->check(option_checks::number(0));
  command->footer(
      "On two nodes: mpiexec.mpich -n 2 heddle bench p2p\n\nExit status: 0 all messages arrived as "
      "they should, 1 some did not, 2 bad usage\nor configuration, 4 a node or its communication "
      "failed.");
  command->callback([&o, &work] { work = [&o](Run& run) { return bench_p2p(o, run); }; });
}

void add_analyze(CLI::App& app, AnalyzeOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("analyze", std::string(purpose_of("analyze")));
  command->add_option("runs", o.runs, "the trace that heddle solve --trace wrote")
      ->required()
      ->type_name("RUN");
  command
      ->add_option("--job", o.job, "number of the job to analyze; the factorization unless given")
      ->check(option_checks::whole(0, std::numeric_limits<std::int32_t>::max()));
  command->add_option("--report", o.report, "write the figures, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  command->add_option("--html", o.html, "write a page with a timeline for a browser")
      ->type_name("FILE.html")
      ->check(option_checks::written());
  command->footer(
      "RUN is a run's folder, or one node's file. Several runs are put side by side, with the "
      "changes against\nthe first. What is missing or damaged is named; the rest is used."
      "\n\nExit status: 0 analyzed, 1 part of a trace could not be read, 2 bad usage, or no trace "
      "could be read.");
  command->callback([&o, &work] { work = [&o](Run& run) { return analyze(o, run.results()); }; });
}

/// Options shared by simulate and replay.
void add_prediction(CLI::App& command, PredictionOptions& o) {
  add_overrides(command, o.overrides,
                "change one key of the problem, or of the machine (machine.nodes=4)");
  command
      .add_option("--sweep", o.sweeps,
                  "several values of such a key; repeatable, for a table of all combinations, "
                  "at most 1000")
      ->type_name("KEY.PATH=VALUE,VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--policies", o.policies,
                   "compare all runtime.priorities and several runtime.window");
  command
      .add_option("--seed", o.seed,
                  "seed of all random numbers: noise, random priorities, workers' speeds [1]")
      ->check(option_checks::whole(0));
  command
      .add_option("--repeat", o.repeat,
                  "number of seeds, 1 to 1000; prints the median and where 90 % lie [9 for a "
                  "replay with other workers and up to 100,000 tasks, otherwise 1]")
      ->check(option_checks::whole(1, 1000));
  command.add_option("--report", o.report, "write the figures, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  command.add_option("--picture", o.picture, "draw the comparison of --sweep or --policies")
      ->type_name("FILE.svg")
      ->check(option_checks::written());
  command.add_option("--trace", o.trace, "write the simulated run's trace, for heddle analyze")
      ->type_name("RUN")
      ->check(option_checks::written());
}

/// Help text after the exit status.
constexpr const char* prediction_help =
    "\n\nRules to compare, for --set and --sweep:\n"
    "  runtime.priorities  program (the program's own), fifo, reverse, random, or path: the\n"
    "                      longest way to the end first, by kernels' times and transfers\n"
    "  runtime.window      tasks that a node looks ahead (8192)\n\nNoise, likewise:\n"
    "  machine.kernels.noise  standard deviation over mean of kernels' times, log-normal (0);\n"
    "                         recorded: drawn from those of the run that is replayed";

void add_simulate(CLI::App& app, SimulateOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("simulate", std::string(purpose_of("simulate")));
  command->add_option("file", o.file, "the problem, as for heddle solve")
      ->required()
      ->type_name("FILE.yaml");
  command
      ->add_option("--machine", o.machine,
                   "the machine to simulate, as in config/machines; this machine unless given")
      ->type_name("MACHINE.yaml");
  add_prediction(*command, o);
  command->footer(
      fmt::format("Exit status: 0 simulated, 2 bad usage or input.{}", prediction_help));
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return simulate_problem(o, run.results()); }; });
}

void add_replay(CLI::App& app, ReplayOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("replay", std::string(purpose_of("replay")));
  command->add_option("run", o.run, "the trace that heddle solve --trace wrote")
      ->required()
      ->type_name("RUN");
  command
      ->add_option("--machine", o.machine,
                   "the machine to simulate, as in config/machines; the run's unless given")
      ->type_name("MACHINE.yaml");
  command
      ->add_option("--actual", o.actual,
                   "a recorded run with these settings: prints the prediction's error")
      ->type_name("RUN");
  add_prediction(*command, o);
  command->footer(fmt::format(
      "Exit status: 0 replayed, 1 part of the trace could not be read, 2 bad usage or input.{}",
      prediction_help));
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return replay_run(o, run.results()); }; });
}

void add_export(CLI::App& app, TraceExportOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("export", std::string(purpose_of("export")));
  command->add_option("run", o.run, "the trace that heddle solve --trace wrote")
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
          "perfetto: ui.perfetto.dev and trace_processor, with all dependencies; chrome: JSON "
          "for ui.perfetto.dev and chrome://tracing; csv: tables; paje: ViTE and pajeng")
      ->required()
      ->type_name("FORMAT");
  command->add_option("-o,--output", o.output, "the file to write")
      ->required()
      ->type_name("FILE")
      ->check(option_checks::written());
  command->footer(
      "Exit status: 0 written, 1 part of the trace could not be read, 2 bad usage, or no trace "
      "could be read.");
  command->callback(
      [&o, &work] { work = [&o](Run& run) { return export_trace(o, run.results()); }; });
}

}  // namespace
}  // namespace heddle

/// The commands of tools.hpp; started by `heddle COMMAND`.
int main(int count, char** words) {
  using namespace heddle;
  TuneOptions tune_options;
  DoctorOptions doctor_options;
  BenchP2pOptions bench_options;
  BenchCollectivesOptions collectives_options;
  AnalyzeOptions analyze_options;
  SimulateOptions simulate_options;
  ReplayOptions replay_options;
  TraceExportOptions export_options;
  return run_program(count, words, [&](CLI::App& app, Work& work) {
    add_tune(app, tune_options, work);
    add_doctor(app, doctor_options, work);
    add_bench(app, bench_options, collectives_options, work);
    add_analyze(app, analyze_options, work);
    add_simulate(app, simulate_options, work);
    add_replay(app, replay_options, work);
    add_export(app, export_options, work);
  });
}
