#include "apps/replay.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/report.hpp"
#include "apps/simulation/prediction.hpp"
#include "apps/simulation/recorded_clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// What a run says of itself as a configuration.
std::string configuration_of(const json& about, const std::string& run) {
  try {
    json layout;
    for (const char* key : {"grid", "tile", "strip", "small", "inner", "virtual", "tree"}) {
      if (about.contains(key) && !about.at(key).is_null()) layout[key] = about.at(key);
    }
    // Without a strip there is no small size.
    if (layout.value("strip", 0) == 0) layout.erase("small");
    const bool is_qr = about.at("factorization") == "qr";
    json matrix{{"generate", is_qr ? "random" : "spd"}, {"n", about.at("n")}};
    if (is_qr) matrix["m"] = about.at("m");
    const json all{{"problem", {{"factorization", about.at("factorization")}, {"matrix", matrix}}},
                   {"layout", layout},
                   {"runtime", {{"cpu_workers", about.at("cpu_workers")}}}};
    return all.dump();
  } catch (const json::exception& error) {
    throw Error(
        ErrorCode::usage,
        fmt::format("'{}' does not say what was factorized, and how ({}); only whole runs of "
                    "heddle solve can be replayed",
                    run, error.what()));
  }
}

bool sets(const std::vector<std::string>& overrides, std::string_view key) {
  return std::ranges::any_of(overrides, [&](const std::string& text) {
    return text.starts_with(fmt::format("{}=", key));
  });
}

/// A grid of other nodes than the run's follows from their number.
void drop_grid(Config& config, const std::vector<std::string>& of_problem,
               const MachineDescription& machine) {
  if (sets(of_problem, "layout.grid") || !config.layout.grid) return;
  const config::Grid& grid = *config.layout.grid;
  if (grid.rows * grid.columns != machine.machine.nodes) config.layout.grid.reset();
}

}  // namespace

int replay_run(const ReplayOptions& options) {
  const replay::RunTrace run = replay::load_run(options.run);
  for (const std::string& damage : run.damages) fmt::print("not whole: {}\n", damage);
  const json about = json::parse(run.about);
  const std::string text = configuration_of(about, options.run);
  const auto [of_machine, of_problem] = split_overrides(options.overrides);
  const Config recorded = Config::from_text(text, options.run, {});
  Config config = Config::from_text(text, options.run, of_problem);
  if (about.value("devices", 0) > 0) {
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is a run with devices: what their kernels took side by side does "
                            "not tell what one takes; only runs of CPU workers can be replayed",
                            options.run));
  }
  const ThisMachine here(recorded);
  MachineDescription defaults = here.description();
  defaults.machine.name = fmt::format("the machine of '{}'", options.run);
  defaults.machine.nodes = about.value("nodes", 1);
  // Another number of nodes: each on a host of its own, unless that is said too.
  defaults.machine.nodes_per_host =
      sets(of_machine, "nodes") ? 1 : about.value("nodes_per_host", 1);
  defaults.machine.cpu_workers = about.value("cpu_workers", 1);
  const PredictionCase as_it_was = prediction_case(recorded, options.run, defaults, here.tuning());
  const MachineDescription machine =
      read_machine_description(options.machine, of_machine, defaults);
  drop_grid(config, of_problem, machine);
  const PredictionCase one = prediction_case(config, options.run, machine, here.tuning());
  std::unique_ptr<KernelClock> others;
  if (machine.host.empty()) {
    others = here.clock();
  } else {
    others = std::make_unique<RatesClock>(machine);
  }
  const auto job = replay::main_job(run);
  if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", options.run));
  RecordedClock clock(run, *job, cut_problem(as_it_was).what, *others);
  Prediction prediction = predict(one, clock, {}, options.trace.has_value());
  prediction.kernels =
      clock.estimated() == 0
          ? "as the run had them"
          : fmt::format("as the run had them; {} shapes that it had not are scaled",
                        clock.estimated());
  const double was = replay::analyze(run, *job).seconds();
  const double is = prediction.result.seconds;
  fmt::print("{}  {:<18}{}, {:+.1f} % of which {}\n", prediction_table(one, prediction),
             "the run took", format_seconds(was), 100 * (is / was - 1),
             options.overrides.empty() && !options.machine ? "is the prediction's error"
                                                           : "the changes make");
  std::fflush(stdout);
  json report = to_json(one, prediction);
  report["recorded_seconds"] = was;
  if (options.trace) write_simulated_run(prediction.result.traces, *options.trace, report);
  if (options.report) write_json(report, *options.report);
  return run.damages.empty() ? 0 : 1;
}

}  // namespace heddle
