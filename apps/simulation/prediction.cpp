#include "apps/simulation/prediction.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "algorithms/qr/layout.hpp"
#include "apps/report.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "kernels/cpu/blas.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

constexpr std::string_view machine_prefix = "machine.";

NodeFacts facts_of(const PredictionCase& one) {
  const replay::SimulatedMachine& machine = one.machine.machine;
  NodeFacts facts;
  facts.nodes = machine.nodes;
  facts.nodes_on_host = machine.nodes_per_host;
  facts.cpu_workers = machine.cpu_workers;
  facts.cpu_workers_of_all = machine.cpu_workers * machine.nodes;
  facts.devices = machine.devices;
  facts.device_backend = machine.devices > 0 ? "cuda" : "none";
  Config config;
  config.layout = one.layout;
  facts.distribution = grid_of(config, machine.nodes);
  facts.distribution.devices = machine.devices;
  // What was measured here tells about the machine as long as its kernels are this one's.
  if (one.machine.host.empty() && machine.devices == 0) facts.tuning = one.tuning;
  return facts;
}

bool is_cholesky(const PredictionCase& one) {
  return one.problem.factorization == config::Factorization::cholesky;
}

std::string row(const char* label, const std::string& text) {
  return fmt::format("  {:<18}{}\n", label, text);
}

}  // namespace

std::pair<std::vector<std::string>, std::vector<std::string>> split_overrides(
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

// ---- this machine ----------------------------------------------------------------------------

ThisMachine::ThisMachine(const Config& config) {
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

MachineDescription ThisMachine::description() const {
  MachineDescription result;
  result.machine.name = "this machine";
  result.machine.cpu_workers = workers_.count;
  const Measurements& measured = profile_.tuning.measured;
  if (measured.messages) {
    result.machine.network = {measured.messages->latency_us * 1e-6, measured.messages->rate * 1e9};
    if (measured.messages->reading) {
      result.machine.memory = {measured.messages->reading->short_us * 1e-6,
                               measured.messages->reading->rate * 1e9};
    }
  }
  return result;
}

std::unique_ptr<MeasuredClock> ThisMachine::clock() const {
  static_cast<void>(load_blas(profile_.blas));
  return std::make_unique<MeasuredClock>(workers_);
}

// ---- the case --------------------------------------------------------------------------------

PredictionCase prediction_case(const Config& config, const std::string& source,
                               MachineDescription machine, const Tuning& tuning) {
  if (!config.problem) throw Error(ErrorCode::usage, fmt::format("{}: problem: missing", source));
  if (!config.problem->matrix.generate || config.problem->matrix.n < 1) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: problem.matrix: a simulation reads no file; write its size: "
                            "{{generate: spd, n: 4096}}",
                            source));
  }
  if (machine.machine.devices > 0 && machine.device.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("machine '{}' has devices, but no rates of kernels on them "
                            "(kernels.device)",
                            machine.machine.name));
  }
  return {*config.problem, config.layout, std::move(machine), tuning,
          static_cast<std::int32_t>(config.runtime.window.value_or(8192))};
}

CutProblem cut_problem(const PredictionCase& one) {
  const config::Matrix& matrix = one.problem.matrix;
  const NodeFacts facts = facts_of(one);
  CutProblem result;
  if (is_cholesky(one)) {
    const TileLayout layout = choose_layout(matrix.n, matrix.n, one.layout, facts);
    result.distribution = facts.distribution;
    result.cut = fmt::format("{}", layout.tile);
    if (layout.strip > 0) {
      result.cut += fmt::format(", strips of {} in pieces of {}", layout.strip, layout.small);
    }
    result.layout.tile = layout.tile;
    result.layout.strip = layout.strip;
    result.layout.small = layout.small;
    result.what = simulated_cholesky(matrix.n, layout, result.distribution,
                                     facts.devices > 0 ? one.machine.inverse_block : 0);
  } else {
    const QrCut cut = choose_qr_cut(matrix.rows(), matrix.n, one.layout, facts);
    result.distribution = cut.distribution;
    result.cut = fmt::format("{} x {}, inner {}", cut.layout.tile * cut.layout.virtual_tiles,
                             cut.layout.tile, cut.layout.inner);
    result.layout.tile = cut.layout.tile;
    result.layout.strip = cut.layout.strip;
    result.layout.small = cut.layout.small;
    result.layout.inner = cut.layout.inner;
    result.layout.virtual_tiles = cut.layout.virtual_tiles;
    result.layout.tree =
        cut.layout.tree == QrTree::flat ? config::Tree::flat : config::Tree::binomial;
    result.what = simulated_qr(matrix.rows(), matrix.n, cut.layout, result.distribution);
  }
  return result;
}

Prediction predict(const PredictionCase& one, KernelClock& clock, std::string kernels,
                   bool traces) {
  const replay::SimulatedMachine& machine = one.machine.machine;
  Prediction prediction;
  prediction.problem = cut_problem(one);
  prediction.kernels = std::move(kernels);
  SimulatedProgram program(prediction.problem.what, clock);
  const auto begin = std::chrono::steady_clock::now();
  prediction.result = replay::simulate(machine, program, {.window = one.window, .traces = traces});
  prediction.simulated_in_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double workers = 0;
  double devices = 0;
  for (const replay::SimulatedNodeTotals& node : prediction.result.nodes) {
    workers += node.busy_workers_s;
    devices += node.busy_devices_s;
  }
  const double time = prediction.result.seconds * machine.nodes;
  if (time <= 0) return prediction;
  prediction.busy = workers / time / machine.cpu_workers;
  if (machine.devices > 0) prediction.busy_devices = devices / time / machine.devices;
  return prediction;
}

std::string prediction_table(const PredictionCase& one, const Prediction& prediction) {
  const replay::SimulatedMachine& m = one.machine.machine;
  const replay::SimulationResult& r = prediction.result;
  std::string text = fmt::format("heddle {}: simulated on {}\n{}\n", heddle_version(), m.name,
                                 std::string(80, '-'));
  text += row("problem", fmt::format("{} of {} x {}", is_cholesky(one) ? "Cholesky" : "QR",
                                     one.problem.matrix.rows(), one.problem.matrix.n));
  text += row("nodes", fmt::format("{} as a grid of {} x {}; {} worker{}{} each", m.nodes,
                                   prediction.problem.distribution.grid_rows,
                                   prediction.problem.distribution.grid_columns, m.cpu_workers,
                                   m.cpu_workers == 1 ? "" : "s",
                                   m.devices > 0 ? fmt::format(", {} devices", m.devices) : ""));
  text += row("tiles", prediction.problem.cut);
  text += row("kernels", prediction.kernels);
  text += row("time", fmt::format("{}, {:.2f} GFLOP/s", format_seconds(r.seconds),
                                  prediction.problem.what.flops / r.seconds * 1e-9));
  text += row("busy", fmt::format("{:.1f} % of the workers' time{}", 100 * prediction.busy,
                                  m.devices > 0 ? fmt::format(", {:.1f} % of the devices'",
                                                              100 * prediction.busy_devices)
                                                : ""));
  text += row("tasks", fmt::format("{}", r.tasks));
  if (m.nodes > 1) {
    text += row("messages", fmt::format("{}, {}", r.messages, format_bytes(r.message_bytes)));
  }
  if (m.devices > 0) {
    text += row("copies", fmt::format("{}, {}", r.copies, format_bytes(r.copied_bytes)));
  }
  text += row("simulated in",
              fmt::format("{}, {:.2f} us for each task", format_seconds(prediction.simulated_in_s),
                          1e6 * prediction.simulated_in_s /
                              static_cast<double>(std::max<std::int64_t>(1, r.tasks))));
  return text;
}

nlohmann::json to_json(const PredictionCase& one, const Prediction& prediction) {
  const replay::SimulatedMachine& machine = one.machine.machine;
  const replay::SimulationResult& r = prediction.result;
  nlohmann::json all{
      {"simulated", true},
      {"machine", machine.name},
      {"factorization", is_cholesky(one) ? "cholesky" : "qr"},
      {"m", one.problem.matrix.rows()},
      {"n", one.problem.matrix.n},
      {"nodes", machine.nodes},
      {"grid",
       {prediction.problem.distribution.grid_rows, prediction.problem.distribution.grid_columns}},
      {"cpu_workers", machine.cpu_workers},
      {"devices", machine.devices},
      {"seconds", {{"factor", r.seconds}}},
      {"gflops", prediction.problem.what.flops / r.seconds * 1e-9},
      {"busy", {{"workers", prediction.busy}, {"devices", prediction.busy_devices}}},
      {"tasks", r.tasks},
      {"messages", r.messages},
      {"bytes_sent", r.message_bytes},
      {"copies", r.copies},
      {"bytes_copied", r.copied_bytes},
      {"events", r.events},
      {"simulated_in_seconds", prediction.simulated_in_s}};
  const config::Layout& layout = prediction.problem.layout;
  all["nodes_per_host"] = machine.nodes_per_host;
  all["tile"] = *layout.tile;
  all["strip"] = *layout.strip;
  all["small"] = *layout.small;
  if (layout.inner) all["inner"] = *layout.inner;
  if (layout.virtual_tiles) all["virtual"] = *layout.virtual_tiles;
  if (layout.tree) all["tree"] = name_of(*layout.tree);
  return all;
}

void write_simulated_run(std::vector<trace::NodeTrace>& traces, const std::string& folder,
                         nlohmann::json about) {
  about["job"] = 0;
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

}  // namespace heddle
