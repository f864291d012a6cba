#include "apps/simulate.hpp"

#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/configuration_keys.hpp"
#include "apps/simulation/machine_hosts.hpp"
#include "apps/simulation/predict.hpp"
#include "apps/simulation/rehearsal_plan.hpp"
#include "apps/simulation/rehearsed_clock.hpp"
#include "apps/simulation/this_machine.hpp"
#include "base/error.hpp"
#include "config/words.hpp"
#include "kernels/kernel_case.hpp"

namespace heddle {
namespace {

/// A clock for the order in which tasks begin, before their times are known.
class DraftClock final : public KernelClock {
 public:
  explicit DraftClock(KernelClock& devices) : devices_(devices) {}

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override {
    constexpr double call_s = 5e-6;
    constexpr double flops_per_s = 30e9;
    if (runner == Runner::device) return devices_.seconds(what, runner);
    return call_s + flops_of(what) / flops_per_s;
  }
  [[nodiscard]] std::string source() const override { return {}; }

 private:
  KernelClock& devices_;
};

/// The problem of a file, on the machine of another file or on this one.
class ProblemOfFile final : public PredictionSubject {
 public:
  explicit ProblemOfFile(const SimulateOptions& options)
      : options_(options),
        here_(Config::from_file(options.file, SplitOverrides(options.overrides).problem)) {}

  [[nodiscard]] PredictionCase with(const SplitOverrides& changes) override {
    const Config config = Config::from_file(options_.file, changes.problem);
    check_measured_keys(config, Config{});
    check_said_once(changes);
    here_.check_file(config);
    const config::Devices& devices = config.runtime.devices;
    MachineDescription defaults = here_.description();
    if (!options_.machine) {
      here_.add_devices(devices, defaults);
      defaults.machine.wake_s = here_.waking().wake_s;
      defaults.machine.refill_s = defaults.machine.wake_s;
    } else if (devices.backend && *devices.backend != config::DeviceBackend::none) {
      defaults.device_backend = name_of(*devices.backend);
    }
    // The configuration's machine settings, overridden by explicit changes.
    std::vector<std::string> of_machine = machine_changes(config, Config());
    of_machine.insert(of_machine.end(), changes.machine.begin(), changes.machine.end());
    const MachineDescription machine =
        options_.machine ? read_machine_description(options_.machine, of_machine, defaults)
                         : here_.with_reading(of_machine, defaults);
    check_device_kind(devices, machine, changes);
    if (machine.machine.devices > 0 && machine.device.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("machine '{}' has devices, but no rates of kernels on them "
                              "(kernels.device)",
                              machine.machine.name));
    }
    return prediction_case(config, machine, here_.tuning(machine));
  }
  [[nodiscard]] std::shared_ptr<KernelClock> clock(const PredictionCase& one) override {
    std::shared_ptr<KernelClock> timed = here_.clock_of(one.machine, one.matrix_bytes());
    if (!one.machine.host.empty()) return timed;
    std::shared_ptr<const RehearsedTimes> rehearsed = this->rehearsed(one, *timed);
    return std::make_shared<RehearsedClock>(std::move(rehearsed), std::move(timed));
  }

 private:
  /// Measured once for all cases with the same computation, workers and nodes: so these differ only
  /// by the change, not by measurement noise.
  [[nodiscard]] std::shared_ptr<const RehearsedTimes> rehearsed(const PredictionCase& one,
                                                                KernelClock& timed) {
    const CutProblem problem = cut_problem(one);
    std::shared_ptr<const RehearsedTimes>& known = rehearsed_[signature(one, problem)];
    if (known == nullptr) {
      known = std::make_shared<const RehearsedTimes>(
          here_.rehearse({problem.what, one.machine, orders_of(one, problem, timed)}));
    }
    return known;
  }
  [[nodiscard]] static std::string signature(const PredictionCase& one, const CutProblem& problem) {
    const replay::SimulatedMachine& machine = one.machine.machine;
    const auto chosen = [](const auto& key) {
      return key ? static_cast<std::int64_t>(*key) : std::int64_t{-1};
    };
    return fmt::format(
        "{} in {} ({}, {}, tree {}) on {} x {}, {} a host ({}), {} workers, {} devices",
        problem_name(one), problem.cut, chosen(problem.layout.strip), chosen(problem.layout.small),
        chosen(problem.layout.tree), problem.distribution.grid_rows,
        problem.distribution.grid_columns, machine.nodes_per_host, hosts_json(machine).dump(),
        machine.cpu_workers, machine.devices);
  }
  /// By start time; if there are many tasks, in the order of the walk.
  [[nodiscard]] static std::vector<BeginOrder> orders_of(const PredictionCase& one,
                                                         const CutProblem& problem,
                                                         KernelClock& timed) {
    constexpr double tasks_max = 200'000;
    const auto tile = static_cast<double>(problem.layout.tile.value_or(1));
    if (problem.what.flops / (2 * tile * tile * tile) > tasks_max) return {};
    DraftClock clock(timed);
    PreparedPrediction draft(one, clock);
    const Prediction prediction = draft.run(1, true);
    return begin_orders(replay::make_run("simulated", prediction.result.traces), 0);
  }

  const SimulateOptions& options_;
  ThisMachine here_;
  std::map<std::string, std::shared_ptr<const RehearsedTimes>> rehearsed_;
};

}  // namespace

int simulate_problem(SimulateOptions options, Results& results) {
  take_old_spellings(options);
  FileUses files;
  files.reads("the problem file", options.file);
  files.reads_machine_file(
      Config::from_file(options.file, SplitOverrides(options.overrides).problem).machine);
  add_files(files, options);
  files.check_distinct();
  files.check_writable(results.janitor());
  ProblemOfFile problem(options);
  predict(problem, options, results);
  return 0;
}

}  // namespace heddle
