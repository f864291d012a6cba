#include "apps/simulate.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/report.hpp"
#include "apps/simulation/prediction.hpp"

namespace heddle {

int simulate_problem(const SimulateOptions& options) {
  const auto [of_machine, of_problem] = split_overrides(options.overrides);
  const Config config = Config::from_file(options.file, of_problem);
  const ThisMachine here(config);
  const MachineDescription machine =
      read_machine_description(options.machine, of_machine, here.description());
  const PredictionCase one = prediction_case(config, options.file, machine, here.tuning());
  const bool measures = machine.host.empty() && machine.machine.devices == 0;
  std::unique_ptr<KernelClock> clock;
  if (measures) {
    clock = here.clock();
  } else {
    clock = std::make_unique<RatesClock>(machine);
  }
  Prediction prediction = predict(
      one, *clock,
      measures ? "as measured on this machine, all workers at work" : "by the machine file's rates",
      options.trace.has_value());
  fmt::print("{}", prediction_table(one, prediction));
  std::fflush(stdout);
  const nlohmann::json about = to_json(one, prediction);
  if (options.trace) write_simulated_run(prediction.result.traces, *options.trace, about);
  if (options.report) write_json(about, *options.report);
  return 0;
}

}  // namespace heddle
