#include "apps/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "algorithms/qr/layout.hpp"
#include "apps/report.hpp"
#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/measured_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "config/config.hpp"
#include "kernels/cpu/blas.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "node-runtime/tuning.hpp"
#include "replay/simulation/simulator.hpp"

namespace heddle {
namespace {

constexpr std::string_view machine_prefix = "machine.";

/// What of the overrides is about the machine, without the prefix, and what is not.
std::pair<std::vector<std::string>, std::vector<std::string>> split(
    const std::vector<std::string>& overrides) {
  std::pair<std::vector<std::string>, std::vector<std::string>> both;
  for (const std::string& text : overrides) {
    if (text.starts_with(machine_prefix)) {
      both.first.push_back(text.substr(machine_prefix.size()));
    } else {
      both.second.push_back(text);
    }
  }
  return both;
}

/// This machine: its workers, and what `heddle tune` has measured of links.
class HereAndNow {
 public:
  explicit HereAndNow(const Config& config) {
    std::optional<std::filesystem::path> named;
    if (config.machine) named = *config.machine;
    profile_ = prepare_machine(named);
    const CpuTopology topology = CpuTopology::detect();
    workers_.count = static_cast<std::int32_t>(
        config.runtime.cpu_workers.value_or(topology.compute_thread_count()));
    const auto cores = topology.cores();
    if (static_cast<std::size_t>(workers_.count) <= cores.size()) {
      workers_.cores.assign(cores.begin(), cores.begin() + workers_.count);
    }
  }

  [[nodiscard]] MachineDescription description() const {
    MachineDescription result;
    result.machine.name = "this machine";
    result.machine.cpu_workers = workers_.count;
    const Measurements& measured = profile_.tuning.measured;
    if (measured.messages) {
      result.machine.network = {measured.messages->latency_us * 1e-6,
                                measured.messages->rate * 1e9};
      if (measured.messages->reading) {
        result.machine.memory = {measured.messages->reading->short_us * 1e-6,
                                 measured.messages->reading->rate * 1e9};
      }
    }
    return result;
  }
  [[nodiscard]] const Tuning& tuning() const { return profile_.tuning; }
  [[nodiscard]] std::unique_ptr<MeasuredClock> clock() const {
    static_cast<void>(load_blas(profile_.blas));
    return std::make_unique<MeasuredClock>(workers_);
  }

 private:
  MachineProfile profile_;
  tuning::Workers workers_;
};

/// A problem's factorization, cut for a machine that is described.
struct Undertaking {
  SimulatedFactorization what;
  std::string cut;  ///< "192, inner 32"
  Distribution distribution;
};

NodeFacts facts_of(const MachineDescription& machine, const Config& config, const Tuning& tuning) {
  NodeFacts facts;
  facts.nodes = machine.machine.nodes;
  facts.nodes_on_host = machine.machine.nodes_per_host;
  facts.cpu_workers = machine.machine.cpu_workers;
  facts.cpu_workers_of_all = machine.machine.cpu_workers * machine.machine.nodes;
  facts.devices = machine.machine.devices;
  facts.device_backend = machine.machine.devices > 0 ? "cuda" : "none";
  facts.distribution = grid_of(config, machine.machine.nodes);
  facts.distribution.devices = machine.machine.devices;
  // What was measured here tells about the machine as long as its kernels are this one's.
  if (machine.host.empty() && machine.machine.devices == 0) facts.tuning = tuning;
  return facts;
}

Undertaking undertaking_of(const config::Problem& problem, const config::Layout& wanted,
                           const MachineDescription& machine, const NodeFacts& facts) {
  const config::Matrix& matrix = problem.matrix;
  if (!matrix.generate || matrix.n < 1) {
    throw Error(ErrorCode::usage,
                "problem.matrix: a simulation reads no file; write its size: {generate: spd, n: "
                "4096}");
  }
  Undertaking result;
  if (problem.factorization == config::Factorization::cholesky) {
    const TileLayout layout = choose_layout(matrix.n, matrix.n, wanted, facts);
    result.distribution = facts.distribution;
    result.cut = fmt::format("{}", layout.tile);
    if (layout.strip > 0) {
      result.cut += fmt::format(", strips of {} in pieces of {}", layout.strip, layout.small);
    }
    result.what = simulated_cholesky(matrix.n, layout, result.distribution,
                                     machine.machine.devices > 0 ? machine.inverse_block : 0);
  } else {
    const QrCut cut = choose_qr_cut(matrix.rows(), matrix.n, wanted, facts);
    result.distribution = cut.distribution;
    result.cut = fmt::format("{} x {}, inner {}", cut.layout.tile * cut.layout.virtual_tiles,
                             cut.layout.tile, cut.layout.inner);
    result.what = simulated_qr(matrix.rows(), matrix.n, cut.layout, result.distribution);
  }
  return result;
}

/// What one simulation came to.
struct Outcome {
  replay::SimulationResult result;
  double simulated_in_s = 0;
  double busy = 0;          ///< of all workers' time
  double busy_devices = 0;  ///< of all devices'
};

Outcome outcome_of(const MachineDescription& machine, SimulatedProgram& program,
                   const replay::SimulationOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  outcome.result = replay::simulate(machine.machine, program, options);
  outcome.simulated_in_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double workers = 0;
  double devices = 0;
  for (const replay::SimulatedNodeTotals& node : outcome.result.nodes) {
    workers += node.busy_workers_s;
    devices += node.busy_devices_s;
  }
  const double time = outcome.result.seconds * machine.machine.nodes;
  if (time <= 0) return outcome;
  outcome.busy = workers / time / machine.machine.cpu_workers;
  if (machine.machine.devices > 0) outcome.busy_devices = devices / time / machine.machine.devices;
  return outcome;
}

std::string row(const char* label, const std::string& text) {
  return fmt::format("  {:<18}{}\n", label, text);
}

std::string table(const config::Problem& problem, const MachineDescription& machine,
                  const Undertaking& undertaking, const Outcome& outcome) {
  const replay::SimulatedMachine& m = machine.machine;
  const replay::SimulationResult& r = outcome.result;
  const bool is_cholesky = problem.factorization == config::Factorization::cholesky;
  std::string text = fmt::format("heddle {}: simulated on {}\n{}\n", heddle_version(), m.name,
                                 std::string(80, '-'));
  text += row("problem", fmt::format("{} of {} x {}", is_cholesky ? "Cholesky" : "QR",
                                     problem.matrix.rows(), problem.matrix.n));
  text += row("nodes",
              fmt::format("{} as a grid of {} x {}; {} worker{}{} each", m.nodes,
                          undertaking.distribution.grid_rows, undertaking.distribution.grid_columns,
                          m.cpu_workers, m.cpu_workers == 1 ? "" : "s",
                          m.devices > 0 ? fmt::format(", {} devices", m.devices) : ""));
  text += row("tiles", undertaking.cut);
  text += row("kernels", machine.host.empty() && m.devices == 0
                             ? "as measured on this machine, all workers at work"
                             : "by the machine file's rates");
  text += row("time", fmt::format("{}, {:.2f} GFLOP/s", format_seconds(r.seconds),
                                  undertaking.what.flops / r.seconds * 1e-9));
  text += row("busy", fmt::format("{:.1f} % of the workers' time{}", 100 * outcome.busy,
                                  m.devices > 0 ? fmt::format(", {:.1f} % of the devices'",
                                                              100 * outcome.busy_devices)
                                                : ""));
  text += row("tasks", fmt::format("{}", r.tasks));
  if (m.nodes > 1) {
    text += row("messages", fmt::format("{}, {}", r.messages, format_bytes(r.message_bytes)));
  }
  if (m.devices > 0) {
    text += row("copies", fmt::format("{}, {}", r.copies, format_bytes(r.copied_bytes)));
  }
  text += row("simulated in",
              fmt::format("{}, {:.2f} us for each task", format_seconds(outcome.simulated_in_s),
                          1e6 * outcome.simulated_in_s /
                              static_cast<double>(std::max<std::int64_t>(1, r.tasks))));
  return text;
}

nlohmann::json report(const config::Problem& problem, const MachineDescription& machine,
                      const Undertaking& undertaking, const Outcome& outcome) {
  const replay::SimulationResult& r = outcome.result;
  return {{"simulated", true},
          {"machine", machine.machine.name},
          {"factorization",
           problem.factorization == config::Factorization::cholesky ? "cholesky" : "qr"},
          {"m", problem.matrix.rows()},
          {"n", problem.matrix.n},
          {"nodes", machine.machine.nodes},
          {"grid", {undertaking.distribution.grid_rows, undertaking.distribution.grid_columns}},
          {"cpu_workers", machine.machine.cpu_workers},
          {"devices", machine.machine.devices},
          {"seconds", {{"factor", r.seconds}}},
          {"gflops", undertaking.what.flops / r.seconds * 1e-9},
          {"busy", {{"workers", outcome.busy}, {"devices", outcome.busy_devices}}},
          {"tasks", r.tasks},
          {"messages", r.messages},
          {"bytes_sent", r.message_bytes},
          {"copies", r.copies},
          {"bytes_copied", r.copied_bytes},
          {"events", r.events},
          {"simulated_in_seconds", outcome.simulated_in_s}};
}

void write_traces(std::vector<trace::NodeTrace>& traces, const std::string& folder,
                  const nlohmann::json& about) {
  trace::prepare_run_folder(folder, static_cast<std::int32_t>(traces.size()));
  const auto begun = std::chrono::system_clock::now().time_since_epoch();
  const std::string run = fmt::format("simulated-{}", begun.count());
  for (trace::NodeTrace& trace : traces) {
    const nlohmann::json metadata{{"run", run},
                                  {"about", trace.node == NodeId{0} ? about : nlohmann::json()}};
    trace.info.metadata = metadata.dump();
    trace::write_node_file(std::filesystem::path(folder) / trace::node_file_name(trace.node),
                           trace);
  }
}

}  // namespace

int simulate_problem(const SimulateOptions& options) {
  const auto [of_machine, of_problem] = split(options.overrides);
  const Config config = Config::from_file(options.file, of_problem);
  if (!config.problem) {
    throw Error(ErrorCode::usage, fmt::format("{}: problem: missing", options.file));
  }
  const config::Problem& problem = *config.problem;
  const HereAndNow here(config);
  const MachineDescription machine =
      read_machine_description(options.machine, of_machine, here.description());
  const bool measures = machine.host.empty();
  if (machine.machine.devices > 0 && machine.device.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("machine '{}' has devices, but no rates of kernels on them "
                            "(kernels.device)",
                            machine.machine.name));
  }
  Undertaking undertaking =
      undertaking_of(problem, config.layout, machine, facts_of(machine, config, here.tuning()));
  std::unique_ptr<KernelClock> clock;
  if (measures && machine.machine.devices == 0) {
    clock = here.clock();
  } else {
    clock = std::make_unique<RatesClock>(machine);
  }
  SimulatedProgram program(undertaking.what, *clock);
  replay::SimulationOptions wanted;
  wanted.window = static_cast<std::int32_t>(config.runtime.window.value_or(8192));
  wanted.traces = options.trace.has_value();
  Outcome outcome = outcome_of(machine, program, wanted);
  fmt::print("{}", table(problem, machine, undertaking, outcome));
  std::fflush(stdout);
  nlohmann::json about = report(problem, machine, undertaking, outcome);
  if (options.trace) {
    about["job"] = 0;
    write_traces(outcome.result.traces, *options.trace, about);
  }
  if (options.report) write_json(about, *options.report);
  return 0;
}

}  // namespace heddle
