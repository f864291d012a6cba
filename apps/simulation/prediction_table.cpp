#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/report.hpp"
#include "apps/simulation/machine_hosts.hpp"
#include "apps/simulation/prediction.hpp"
#include "base/median.hpp"
#include "base/units.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"

namespace heddle {
namespace {

/// What does not fit a line goes on below, behind a comma or a semicolon.
std::string row(const char* label, std::string_view text) {
  constexpr std::size_t indent = 20;
  constexpr std::size_t columns = 80 - indent;
  std::string rows = fmt::format("  {:<18}", label);
  while (text.size() > columns) {
    const std::size_t mark = text.find_last_of(",;", columns - 1);
    if (mark == std::string_view::npos || mark + 2 >= text.size()) break;
    rows += fmt::format("{}\n{:{}}", text.substr(0, mark + 1), "", indent);
    text.remove_prefix(mark + 2);
  }
  return rows + fmt::format("{}\n", text);
}

std::string bounds_text(const Prediction& prediction) {
  const PredictionBounds& bounds = prediction.bounds;
  std::string text = fmt::format("{:.1f} % of the best: area {}", 100 * prediction.share_of_bound(),
                                 format_seconds(bounds.node_s));
  if (bounds.critical_path_s) {
    text += fmt::format(", critical path {}", format_seconds(*bounds.critical_path_s));
  }
  return text;
}

/// The text of a row about drawn values, with their seed; several seeds have a row of their own.
std::string with_seed(const std::string& text, const Prediction& prediction) {
  return prediction.repeats ? text : fmt::format("{}; seed {}", text, prediction.seed);
}

std::string noise_text(const PredictionCase& one, const Prediction& prediction) {
  const KernelNoise& noise = one.machine.noise;
  const std::string text = noise.recorded
                               ? std::string("as times differed in the run")
                               : fmt::format("{:g} of the mean, log-normal", noise.variation);
  return with_seed(text, prediction);
}

/// How workers differ.
std::string paces_text(const Prediction& prediction) {
  const auto [least, most] = std::ranges::minmax(prediction.paces);
  const std::string text = fmt::format("workers take {:.2f} to {:.2f} of what is usual, {}", least,
                                       most, prediction.paces_source);
  return with_seed(text, prediction);
}

/// What waiting workers need, where that was learned from a run.
std::string wakings_text(const std::vector<replay::WakingTimes>& wakings,
                         const Prediction& prediction) {
  std::vector<double> medians;
  for (const replay::WakingTimes& one : wakings) medians.push_back(median(one.seconds) * 1e6);
  const auto [least, most] = std::ranges::minmax(medians);
  return with_seed(fmt::format("{:.0f} to {:.0f} us, by how long a worker has waited", least, most),
                   prediction);
}

std::string placement_text(const PredictionCase& one, const replay::SimulationResult& result) {
  const std::string text(name_of(one.placement()));
  if (!one.lends()) return text;
  return text + fmt::format("; {} of devices' tasks run by CPUs, {} of tiles to and fro",
                            result.tasks_lent,
                            format_bytes(result.written_bytes + result.fetched_bytes));
}

std::string repeats_text(const Repeats& repeats) {
  return fmt::format("{}; this is the median, 5 to 95 %: {} to {}", repeats.count,
                     format_seconds(repeats.low_s), format_seconds(repeats.high_s));
}

}  // namespace

std::string problem_name(const PredictionCase& one) {
  return fmt::format("{} of {} x {}", one.is_cholesky() ? "Cholesky" : "QR",
                     one.problem().matrix.rows(), one.problem().matrix.n);
}

std::string runtime_name(const PredictionCase& one) {
  return fmt::format("window {}, priorities {}", one.window(),
                     name_of(one.config.runtime.priorities));
}

std::string nodes_name(const PredictionCase& one, const Prediction& prediction) {
  const replay::SimulatedMachine& m = one.machine.machine;
  const Distribution& grid = prediction.problem.distribution;
  return fmt::format(
      "{} as a grid of {} x {}; {} worker{}{} each", m.nodes, grid.grid_rows, grid.grid_columns,
      m.cpu_workers, m.cpu_workers == 1 ? "" : "s",
      m.devices > 0 ? fmt::format(", {} device{}", m.devices, m.devices == 1 ? "" : "s") : "");
}

std::string prediction_table(const PredictionCase& one, const Prediction& prediction) {
  const replay::SimulatedMachine& m = one.machine.machine;
  const replay::SimulationResult& r = prediction.result;
  std::string text = fmt::format("heddle {}: simulated on {}\n{}\n", heddle_version(), m.name,
                                 std::string(80, '-'));
  text += row("problem", problem_name(one));
  text += row("nodes", nodes_name(one, prediction));
  if (const std::string hosts = hosts_text(m); !hosts.empty()) text += row("hosts", hosts);
  if (!one.machine.note.empty()) text += row("devices", one.machine.note);
  if (m.lacks_cores_for_workers()) {
    text += row("cores", fmt::format("only {} for {} workers of a host; "
                                     "sharing them shows only if kernels' times had it",
                                     m.cores, m.workers_on_host()));
  }
  text += row("tiles", prediction.problem.cut);
  text += row("runtime", runtime_name(one));
  text += row("kernels", prediction.kernels);
  text += row("time",
              fmt::format("{}, {:.2f} GFLOP/s", format_seconds(r.seconds), prediction.gflops()));
  text += row("busy", fmt::format("{:.1f} % of the workers' time{}", 100 * prediction.busy,
                                  m.devices > 0 ? fmt::format(", {:.1f} % of the devices'",
                                                              100 * prediction.busy_devices)
                                                : ""));
  text += row("bound", bounds_text(prediction));
  if (!one.machine.noise.is_none()) text += row("noise", noise_text(one, prediction));
  if (!prediction.paces.empty()) text += row("paces", paces_text(prediction));
  if (!m.wakings.empty()) text += row("waking", wakings_text(m.wakings, prediction));
  if (!m.first_tasks.empty()) {
    text += row("first tasks",
                fmt::format("{:.2f} times what later ones take", fmt::join(m.first_tasks, ", ")));
  }
  if (prediction.repeats) text += row("seeds", repeats_text(*prediction.repeats));
  text += row("tasks", fmt::format("{}", r.tasks));
  if (m.nodes > 1) {
    text += row("messages", fmt::format("{}, {}", r.messages, format_bytes(r.message_bytes)));
  }
  if (m.devices > 0) {
    text += row("copies", fmt::format("{}, {}", r.copies, format_bytes(r.copied_bytes)));
    if (r.evictions > 0) {
      text += row("evictions", fmt::format("{}; {} of tiles to and fro", r.evictions,
                                           format_bytes(r.written_bytes + r.fetched_bytes)));
    }
    text += row("placement", placement_text(one, r));
  }
  text +=
      row("simulated in",
          fmt::format("{}, {:.2f} us for each task; {}", format_seconds(prediction.simulated_in_s),
                      1e6 * prediction.simulated_in_s /
                          static_cast<double>(std::max<std::int64_t>(1, r.tasks)),
                      format_bytes(prediction.peak_bytes)));
  return text;
}

namespace {

/// What messages and the runtime's threads are said to take.
nlohmann::json costs_json(const replay::SimulatedMachine& machine) {
  const auto of_way = [](const replay::Way& way) {
    return nlohmann::json{{"latency_us", way.latency_s * 1e6}, {"rate", way.bytes_per_s * 1e-9}};
  };
  return {{"memory", of_way(machine.memory)},    {"network", of_way(machine.network)},
          {"append_us", machine.append_s * 1e6}, {"task_us", machine.task_s * 1e6},
          {"wake_us", machine.wake_s * 1e6},     {"refill_us", machine.refill_s * 1e6},
          {"look_us", machine.look_s * 1e6},     {"message_us", machine.message_s * 1e6},
          {"read_us", machine.read_s * 1e6},     {"job_us", machine.job_s * 1e6}};
}

}  // namespace

nlohmann::json to_json(const PredictionCase& one, const Prediction& prediction) {
  const replay::SimulatedMachine& machine = one.machine.machine;
  const replay::SimulationResult& r = prediction.result;
  nlohmann::json all{
      {"simulated", true},
      {"machine", machine.name},
      {"costs", costs_json(machine)},
      {"factorization", one.is_cholesky() ? "cholesky" : "qr"},
      {"m", one.problem().matrix.rows()},
      {"n", one.problem().matrix.n},
      {"nodes", machine.nodes},
      {"grid",
       {prediction.problem.distribution.grid_rows, prediction.problem.distribution.grid_columns}},
      {"cpu_workers", machine.cpu_workers},
      {"lacks_cores_for_workers", machine.lacks_cores_for_workers()},
      {"devices", machine.devices},
      {"seconds", {{"factor", r.seconds}}},
      {"gflops", prediction.gflops()},
      {"busy", {{"workers", prediction.busy}, {"devices", prediction.busy_devices}}},
      {"tasks", r.tasks},
      {"messages", r.messages},
      {"bytes_sent", r.message_bytes},
      {"copies", r.copies},
      {"bytes_copied", r.copied_bytes},
      {"placement", name_of(one.placement())},
      {"tasks_lent", r.tasks_lent},
      {"write_backs", r.write_backs},
      {"bytes_written_back", r.written_bytes},
      {"fetches", r.fetches},
      {"evictions", r.evictions},
      {"bytes_fetched", r.fetched_bytes},
      {"events", r.events},
      {"simulated_in_seconds", prediction.simulated_in_s},
      {"peak_bytes", prediction.peak_bytes}};
  const PredictionBounds& bounds = prediction.bounds;
  all["bounds"] = {{"area", bounds.area_s}, {"node", bounds.node_s}};
  all["bounds"]["critical_path"] = nullptr;
  if (bounds.critical_path_s) all["bounds"]["critical_path"] = *bounds.critical_path_s;
  all["share_of_bound"] = prediction.share_of_bound();
  all["window"] = one.window();
  all["priorities"] = name_of(one.config.runtime.priorities);
  all["seed"] = prediction.seed;
  all["noise"] = one.machine.noise.variation;
  if (one.machine.noise.recorded) all["noise"] = "recorded";
  all["paces"] = prediction.paces;
  all["repeats"] = nullptr;
  if (const auto& repeats = prediction.repeats) {
    all["repeats"] = {{"count", repeats->count},
                      {"first_seed", repeats->first_seed},
                      {"median", r.seconds},
                      {"low", repeats->low_s},
                      {"high", repeats->high_s}};
  }
  all["policies"] = {{"priorities", all["priorities"]}};  // where it was before
  const config::Layout& layout = prediction.problem.layout;
  all["nodes_per_host"] = machine.nodes_per_host;
  all["hosts"] = hosts_json(machine);
  all["interface"] = interface_json(machine);
  all["tile"] = *layout.tile;
  all["strip"] = *layout.strip;
  all["small"] = *layout.small;
  all["hierarchy"] = layout.hierarchy == config::Hierarchy::on ? "on" : "off";
  if (layout.inner) all["inner"] = *layout.inner;
  if (layout.virtual_tiles) all["virtual"] = *layout.virtual_tiles;
  if (layout.tree) all["tree"] = name_of(*layout.tree);
  all["chosen"] = config::keys_left_open(one.config.layout);
  return all;
}

}  // namespace heddle
